"""Probes: whether the server has a resource at this moment, and which held deletions that proves.

What answers 404 or 410 at its own address, a day after its deletion was held, is gone. A server
that answers so to everything proves nothing: first, a listed resource must be found there.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice, takewhile
from typing import Final

from resourcesync.destination.options import Dependencies
from resourcesync.discovery.uris import normalise, origin
from resourcesync.errors import OutOfScopeError, ResourceMissingError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Pending, PendingTask, StateTransaction
from resourcesync.model.timestamps import DAY
from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse

_MAX_PROBES: Final = 300
"""Resources that one run probes."""
_MAX_ALIVE: Final = 10
"""Resources found alive after which a run stops probing: the list was wrong."""
_MAX_CONTROL_PROBES: Final = 3
_LAST_PROBED: Final = "asked-whether-gone"
"""Name of the note of the URI probed last: the next run continues after it."""


def find_proven_gone(
    equipment: Dependencies, now: int, address: Callable[[str], str]
) -> list[Pending]:
    """Return held deletions whose resources the Source reports as gone."""
    state = equipment.state
    if state.read_note("refused", int):
        return []  # a resource may come back under an address that cannot be parsed
    chosen = list(islice(_due_deletions(state, now - DAY), _MAX_PROBES))
    witnesses = _ControlProbes(equipment, address)
    found: list[Pending] = []
    alive, last = 0, ""
    for row in chosen:
        uri, last = address(row.uri), row.uri
        if not witnesses.check_origin(uri):
            continue
        outcome = probe(equipment, uri)
        if is_gone(outcome, uri):
            found.append(row)
            continue
        alive += 1  # or the result is unclear
        if alive >= _MAX_ALIVE:
            break
    state.commit(StateTransaction(notes={_LAST_PROBED: last}))
    return found


def _due_deletions(state: SqliteMirrorState, held_before: int) -> Iterator[Pending]:
    last = state.note(_LAST_PROBED) or ""

    def rows() -> Iterator[Pending]:
        waiting = state.pending(PendingTask.DELETE)
        return (row for row in waiting if row.first <= held_before and not row.code)

    return chain(
        (row for row in rows() if row.uri > last), takewhile(lambda row: row.uri <= last, rows())
    )


class _ControlProbes:
    def __init__(self, equipment: Dependencies, address: Callable[[str], str]) -> None:
        self._dependencies, self._address = equipment, address
        self._results: dict[str, bool] = {}

    def check_origin(self, uri: str) -> bool:
        """Return whether the server of ``uri`` serves a listed resource, so that its 404 counts."""
        of = origin(uri)
        if of not in self._results:
            listed = map(self._address, _listed_uris(self._dependencies.state))
            few = islice((name for name in listed if origin(name) == of), _MAX_CONTROL_PROBES)
            self._results[of] = any(exists(probe(self._dependencies, name)) for name in few)
        return self._results[of]


def _listed_uris(state: SqliteMirrorState) -> Iterator[str]:
    waiting = chain((row.uri for row in state.pending(PendingTask.DELETE)), [""])
    kept = chain((row.uri for row in state.pending(PendingTask.RETAIN)), [""])
    return _exclude(_exclude((copy.uri for copy in state.copies()), waiting), kept)


def _exclude(uris: Iterator[str], others: Iterator[str]) -> Iterator[str]:
    """Yield what is not in ``others``; both are sorted, ``others`` ends in an empty string."""
    other = next(others)
    for uri in uris:
        while other and other < uri:
            other = next(others)
        if uri != other:
            yield uri


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
    def write(self, chunk: bytes) -> None:
        """Discard the chunk."""

    def restart(self) -> None:
        """Do nothing: no bytes are stored."""
