"""Transports: plug-ins that fetch from schemes other than http and https."""

from collections.abc import Callable

import msgspec

from resourcesync.ports import Clock, Fetcher
from resourcesync.ports.cancellation import CancelToken


class TransportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's options for a transport.

    Attributes:
        scheme: The scheme of all URIs to fetch.
        jobs: Most requests at a time.
        timeout: Seconds without an answer after which a request has failed.
        retries: Further tries after a failure that may pass.
        clock: The clock.
        cancel: The request to stop. Call ``raise_if_cancelled`` often, and let its error pass; wait
            by ``wait``.
    """

    scheme: str
    jobs: int
    timeout: float
    retries: int
    clock: Clock
    cancel: CancelToken


TransportFactory = Callable[[TransportOptions], Fetcher]
"""Opens a transport; where the fetcher has a method ``close``, it is called at the end."""
