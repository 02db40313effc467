"""Probes: whether the server has a resource at this moment."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from resourcesync.destination.options import Dependencies
from resourcesync.discovery.uris import normalise
from resourcesync.errors import OutOfScopeError, ResourceMissingError
from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse


def probe_all(
    equipment: Dependencies, uris: Iterable[str]
) -> Iterator[tuple[str, FetchResponse | FetchFailure]]:
    """Request resources past caches, and discard what comes; yield each URI with its answer."""
    requests = (
        FetchRequest(uri=uri, sink=_DiscardingSink(), limit=0, uncached=True) for uri in uris
    )
    for outcome in equipment.fetcher.fetch(requests):
        yield outcome.request.uri, outcome


def probe(equipment: Dependencies, uri: str) -> FetchResponse | FetchFailure:
    """Request a resource past caches, and discard what comes; return the answer."""
    ((_, outcome),) = probe_all(equipment, [uri])
    return outcome


def is_gone(outcome: FetchResponse | FetchFailure, uri: str) -> bool:
    """True if an address answers 404 or 410; after a redirect to another it proves nothing."""
    if not isinstance(outcome, FetchFailure) or not isinstance(outcome.error, ResourceMissingError):
        return False
    with suppress(OutOfScopeError):  # a redirect to an unusable address
        return normalise(outcome.error.uri or uri) == normalise(uri)
    return False


def exists(outcome: FetchResponse | FetchFailure) -> bool:
    """True if the server has the resource."""
    return isinstance(outcome, FetchResponse) or outcome.error.code == "too-big"


class _DiscardingSink:
    """Sink that discards all bytes: the response headers are enough."""

    def write(self, chunk: bytes) -> None:
        """Discard the chunk."""

    def restart(self) -> None:
        """Do nothing: no bytes are stored."""
