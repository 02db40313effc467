"""A request in progress: through origins, redirects and retries to its one outcome."""

from resourcesync.adapters.http.addresses import Address, crosses_origin
from resourcesync.ports import FetchRequest, PartialBody


class RequestState:
    """The state of a request in progress.

    Attributes:
        request: The caller's request.
        uri: The current URI.
        authority: Scheme, host and port of ``uri``, as written.
        crossed: A redirect led to another origin: from then on the request carries no secrets.
        hops: Redirects followed since the last try began.
        tries: Tries begun.
        delay: Seconds of the last back-off.
        probe: This try is the probe of the circuit breaker.
        for_robots: The request is the fetcher's own for ``robots.txt``.
        part: The part in the sink of a body that broke off; ``None`` to begin at the first byte.
        reading: Digest of the last body of which nothing said that it was whole.
        readings: Number of such bodies.
        whole: Ranges failed, so a body that breaks off starts again from the first byte.
    """

    __slots__ = (
        "authority",
        "crossed",
        "delay",
        "first",
        "for_robots",
        "hops",
        "part",
        "probe",
        "reading",
        "readings",
        "request",
        "tries",
        "uri",
        "whole",
    )

    def __init__(
        self, request: FetchRequest, address: Address, *, for_robots: bool = False
    ) -> None:
        self.request = request
        self.first = address
        self.tries = 0
        self.delay = 0.0
        self.probe = False
        self.for_robots = for_robots
        self.part: PartialBody | None = request.part
        self.whole = False
        self.reading, self.readings = b"", 0
        self.uri, self.authority = address
        self.crossed = False
        self.hops = 0

    def restart(self) -> None:
        """Go back to the requested address."""
        self.uri, self.authority = self.first
        self.crossed = False
        self.hops = 0

    def request_whole(self) -> None:
        """Request the whole body from now on."""
        self.part, self.whole = None, True
        self.request.sink.restart()

    def redirect_to(self, address: Address) -> None:
        """Follow a redirect."""
        self.hops += 1
        self.crossed = self.crossed or crosses_origin(self.authority, address.authority)
        self.uri, self.authority = address.uri, address.authority
