"""Pending tasks of resources, as rows of the mirror's state and back. Pure."""

import json
from collections.abc import Iterator
from heapq import merge
from operator import attrgetter
from typing import Final

from resourcesync.destination.links import decode_patch, encode_patch
from resourcesync.destination.planner import ListedEntry
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.mirror import Copy, MirrorStateStore, Pending, PendingTask

_CONTRADICTION_PREFIX: Final = "lists "
"""Prefix of the line that stores a contradiction between lists: no URI begins so."""
_IMMEDIATE_TRIES: Final = 5
_MINUTE: Final = 60_000_000
_MAX_WAIT: Final = 24 * 60 * _MINUTE


def next_try(tries: int, now: int) -> int:
    """Return when a resource that failed ``tries`` times is due again, in microseconds.

    The first five attempts are in the next runs; then the wait doubles, from a minute to a day.
    """
    if tries < _IMMEDIATE_TRIES:
        return now
    doublings = min(tries - _IMMEDIATE_TRIES, 16)
    return now + min(_MAX_WAIT, _MINUTE << doublings)


def is_resting(row: Pending) -> bool:
    """True if a resource failed so often that not every run tries it again."""
    return row.task == PendingTask.FETCH and row.tries >= _IMMEDIATE_TRIES


def pending_fetch(  # noqa: PLR0913 - a row has that many columns
    listed: ListedEntry,
    *,
    known: Pending | None,
    now: int,
    at: int,
    generation: int,
    code: str = "",
    reason: str = "",
    failed: bool = True,
) -> Pending:
    """Return the task to fetch a resource, after a failure or before an attempt."""
    before = known.tries if known is not None and known.task == PendingTask.FETCH else 0
    tries = before + 1 if failed else before
    return Pending(
        uri=listed.uri,
        loc=listed.loc,
        path=listed.path,
        task=PendingTask.FETCH,
        listed=listed.hash,
        length=listed.length,
        lastmod=listed.lastmod,
        code=code,
        reason=reason,
        tries=tries,
        due=next_try(tries, now) if failed else now,
        first=now,
        first_at=at,
        generation=generation,
        elsewhere="\n".join(
            (
                listed.memento,
                *listed.mirrors,
                *encode_contradiction(listed),
                *encode_patch(listed.patch),
            )
        ),
    )


def encode_contradiction(listed: ListedEntry) -> tuple[str, ...]:
    """Return the line that stores a contradiction between lists; none if there is none."""
    if not listed.undated:
        return ()
    return (
        _CONTRADICTION_PREFIX + json.dumps([listed.change, listed.rivals], separators=(",", ":")),
    )


def decode_contradiction(listed: ListedEntry) -> ListedEntry:
    """Return a row with the contradiction that its last mirror stores, if it does."""
    if not listed.mirrors or not listed.mirrors[-1].startswith(_CONTRADICTION_PREFIX):
        return listed
    *mirrors, line = listed.mirrors
    change, rivals = json.loads(line.removeprefix(_CONTRADICTION_PREFIX))
    contents = tuple((digest, length) for digest, length in rivals)
    return listed._replace(change=change, mirrors=tuple(mirrors), undated=True, rivals=contents)


def pending_delete(copy: Copy, *, reason: str, now: int, at: int, generation: int) -> Pending:
    """Return the task to delete a copy."""
    return Pending(
        uri=copy.uri,
        loc=copy.uri,
        path=copy.path,
        task=PendingTask.DELETE,
        listed="",
        length=None,
        lastmod=None,
        code="",
        reason=reason,
        tries=0,
        due=now,
        first=now,
        first_at=at,
        generation=generation,
    )


def is_gone(row: Pending) -> bool:
    """True if the resource is gone at the Source, as far as known; its copy may be retained."""
    is_kept = row.task == PendingTask.RETAIN and row.reason != "" and not row.code
    return is_kept or row.task == PendingTask.DELETE


def gone_rows(state: MirrorStateStore) -> Iterator[Pending]:
    """Yield the tasks of copies whose resources are gone at the Source, in URI order."""
    kept = filter(is_gone, state.pending(PendingTask.RETAIN))
    return merge(state.pending(PendingTask.DELETE), kept, key=attrgetter("uri"))


def quarantine_warning(path: str, place: str) -> dict[str, object]:
    """Return the fields of the warning that a file was moved to quarantine."""
    where = f".resourcesync/quarantine/{place}"
    message = f"{path} was changed locally: the local version was moved to {where}"
    return {"code": "set-aside", "message": message}


def listed_from_task(pending: Pending) -> ListedEntry:
    """Return the Source's entry that a pending task stores."""
    memento, *mirrors = pending.elsewhere.split("\n")
    patch = decode_patch(mirrors[-1]) if mirrors else None
    listed = ListedEntry(
        uri=pending.uri,
        loc=pending.loc,
        path=pending.path,
        hash=pending.listed,
        length=pending.length,
        lastmod=pending.lastmod,
        change=ChangeKind.UPDATED,
        mirrors=tuple(mirrors if patch is None else mirrors[:-1]),
        memento=memento,
        patch=patch,
    )
    return decode_contradiction(listed)
