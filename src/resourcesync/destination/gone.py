"""Proof that what is held is gone: the Source itself is asked, one resource after the other.

A list may be wrong, and the next one wrong in the same way. What answers 404 or 410 at its own
address, a day after its deletion was held, is gone. A server that answers so to everything proves
nothing: first, something that is listed must be there.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, islice, takewhile
from typing import Final

from resourcesync.destination.mapping import origin
from resourcesync.destination.options import Dependencies
from resourcesync.destination.uris import normalise
from resourcesync.errors import OutOfScopeError, ResourceMissingError
from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse
from resourcesync.ports.mirror import MirrorStateStore, Pending, PendingTask, StateTransaction

_MAX_PROBES: Final = 300
"""Resources that one run asks for."""
_MAX_ALIVE: Final = 10
"""Resources that are still there after which a run asks no more: the list was wrong."""
_MAX_CONTROL_PROBES: Final = 3
_DAY: Final = 24 * 3_600_000_000
_LAST_PROBED: Final = "asked-whether-gone"
"""The note of the URI that was asked for last: the next run goes on after it."""


def find_proven_gone(
    equipment: Dependencies, now: int, address: Callable[[str], str]
) -> list[Pending]:
    """Return held deletions of which the Source says that the resource is gone.

    Args:
        equipment: What to work with.
        now: Microseconds.
        address: Returns where the Source has a resource now.
    """
    state = equipment.state
    if int(state.note("refused") or 0):
        return []  # what goes under one address may come under another, which is not understood
    chosen = list(islice(_due_deletions(state, now - _DAY), _MAX_PROBES))
    witnesses = _ControlProbes(equipment, address)
    found: list[Pending] = []
    alive, last = 0, ""
    for row in chosen:
        uri, last = address(row.uri), row.uri
        if not witnesses.check_origin(uri):
            continue
        outcome = _probe(equipment, uri)
        if _is_gone(outcome, uri):
            found.append(row)
            continue
        alive += 1  # or it cannot be said
        if alive >= _MAX_ALIVE:
            break
    state.commit(StateTransaction(notes={_LAST_PROBED: last}))
    return found


def _due_deletions(state: MirrorStateStore, held_before: int) -> Iterator[Pending]:
    """Yield what has been held for long enough, beginning after what was asked for last."""
    last = state.note(_LAST_PROBED) or ""
    rows = (row for row in state.pending(PendingTask.DELETE) if row.first <= held_before)
    again = (row for row in state.pending(PendingTask.DELETE) if row.first <= held_before)
    return chain(
        (row for row in rows if row.uri > last), takewhile(lambda row: row.uri <= last, again)
    )


class _ControlProbes:
    """Says of each origin whether its server gives something that is listed.

    Args:
        equipment: What to work with.
        address: Returns where the Source has a resource now.
    """

    def __init__(self, equipment: Dependencies, address: Callable[[str], str]) -> None:
        self._dependencies, self._address = equipment, address
        self._results: dict[str, bool] = {}

    def check_origin(self, uri: str) -> bool:
        """Return whether the server of ``uri`` gives what is listed: only then its 404 counts."""
        of = origin(uri)
        if of not in self._results:
            listed = map(self._address, _listed_uris(self._dependencies.state))
            few = islice((it for it in listed if origin(it) == of), _MAX_CONTROL_PROBES)
            self._results[of] = any(_exists(_probe(self._dependencies, it)) for it in few)
        return self._results[of]


def _listed_uris(state: MirrorStateStore) -> Iterator[str]:
    """Yield the URIs of copies that nothing waits for: they are listed, and so are there."""
    waiting = chain((row.uri for row in state.pending(PendingTask.DELETE)), [""])
    kept = chain((row.uri for row in state.pending(PendingTask.RETAIN)), [""])
    return _exclude(_exclude((copy.uri for copy in state.copies()), waiting), kept)


def _exclude(uris: Iterator[str], others: Iterator[str]) -> Iterator[str]:
    """Yield what is not in the other; both are in order, the other ends in an empty text."""
    other = next(others)
    for uri in uris:
        while other and other < uri:
            other = next(others)
        if uri != other:
            yield uri


def _probe(equipment: Dependencies, uri: str) -> FetchResponse | FetchFailure:
    request = FetchRequest(uri=uri, sink=_DiscardingSink(), limit=0, uncached=True)
    (outcome,) = equipment.fetcher.fetch([request])
    return outcome


def _is_gone(outcome: FetchResponse | FetchFailure, uri: str) -> bool:
    """Return whether there is nothing at an address; where it leads elsewhere proves nothing."""
    if not isinstance(outcome, FetchFailure) or not isinstance(outcome.error, ResourceMissingError):
        return False
    with suppress(OutOfScopeError):  # it leads to what is no address
        return normalise(outcome.error.uri or uri) == normalise(uri)
    return False


def _exists(outcome: FetchResponse | FetchFailure) -> bool:
    return isinstance(outcome, FetchResponse) or outcome.error.code == "too-big"


class _DiscardingSink:
    """Takes no bytes: whether something is there is told before the first one."""

    def write(self, chunk: bytes) -> None:
        """Let them go."""

    def restart(self) -> None:
        """Do nothing: nothing was kept."""
