"""A request in progress: through origins, redirects and retries to its one outcome."""

from resourcesync.adapters.http.addresses import Address, crosses_origin
from resourcesync.ports import FetchRequest, PartialBody


class RequestState:
    """The state of a request in progress.

    Once ``crossed``, by a redirect to another origin, the request carries no secrets. ``hops`` are
    the redirects since the last try began. ``reading`` is the digest of the last body of which
    nothing said that it was whole, ``readings`` the number of such bodies. With ``whole``, ranges
    failed, so a body that breaks off starts again from the first byte.
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
