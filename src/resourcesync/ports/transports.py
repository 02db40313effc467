"""Transports: plug-ins that fetch from schemes other than http and https."""

from collections.abc import Callable
from dataclasses import dataclass

from resourcesync.ports import Clock, Fetcher


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportOptions:
    """How the operator wants things fetched.

    Attributes:
        scheme: The scheme of all URIs that will be asked for.
        jobs: Most requests at a time.
        timeout: Seconds without an answer after which a request has failed.
        retries: Further tries after a failure that may pass.
        clock: Time. It may end a run by raising, wherever it is asked.
    """

    scheme: str
    jobs: int
    timeout: float
    retries: int
    clock: Clock


TransportFactory = Callable[[TransportOptions], Fetcher]
"""Opens a transport; where the fetcher has a method ``close``, it is called at the end."""
