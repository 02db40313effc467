"""What listed entries link to, as rows of its own beside those of the list (``--link``).

A thing that is listed itself is no concern of this module: its own entry has the word. All others
that chosen entries link to become rows like those of a list, one for each, whoever links to it; so
plan, transfer, audit and repair treat them as they treat everything else.

What a Source lists now, as rows that can be compared with what the mirror holds.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import attrgetter
from typing import Final

from resourcesync.destination.change_history import ChangeHistory
from resourcesync.destination.external_sort import ExternalSorter, merge_sorted
from resourcesync.destination.planner import FILTERED, ListedEntry, deduplicate
from resourcesync.destination.session import SyncSession
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.mirror import LinkRow, MirrorStateStore, PendingTask, StateTransaction

UNLINKED_REASON: Final = "no listed entry links to it any more"
_CHUNK: Final = 1_000
_NOT_WANTED: Final = frozenset({FILTERED, ChangeKind.DELETED})
_by_uri = attrgetter("uri")


def collect_linked(
    pull: SyncSession, rows: Iterable[ListedEntry], held: ExitStack
) -> ExternalSorter[ListedEntry] | None:
    """Return a row for each link of each row, in order of what is linked to.

    Args:
        pull: What the pull works with.
        rows: The last word on each URI.
        held: Closes what is returned.

    Returns:
        The rows, several of one URI among them; ``None`` when no links are followed.
    """
    if not pull.selection.follows_links:
        return None
    spool = held.enter_context(pull.new_sorter())
    for row in rows:
        for target in row.links if row.change not in _NOT_WANTED else ():
            found = pull.selection.linked_row(target, row.uri)
            if found is not None:
                spool.add(found)
    return spool


def merge_linked(
    rows: Iterator[ListedEntry], linked: Iterable[ListedEntry] | None
) -> Iterator[ListedEntry]:
    """Return the rows, and one for each thing that is linked to and not listed itself.

    A thing that is listed, but not as the filters want it, is wanted since it is linked to; what
    its own entry says of it still holds.

    Args:
        rows: The last word on each URI, in order.
        linked: What ``collect_linked`` returned.
    """
    if linked is None:
        return rows
    return (
        _merge_group(group) for _, group in groupby(merge(rows, linked, key=_by_uri), key=_by_uri)
    )


def link_rows(
    rows: Iterator[ListedEntry], linked: Iterable[ListedEntry] | None, generation: int
) -> Iterator[LinkRow]:
    """Yield who links to what, of all that is not listed itself.

    Args:
        rows: The last word on each URI, in order.
        linked: What ``collect_linked`` returned.
        generation: The reading that they are of.
    """
    if linked is None:
        return
    listed = ""
    for row in merge(rows, linked, key=_by_uri):  # the own entry of a URI comes first
        if not row.via:
            listed = row.uri if row.change != FILTERED else listed
        elif row.uri != listed:
            yield LinkRow(row.uri, row.via, generation)


def store_links(state: MirrorStateStore, links: Iterable[LinkRow]) -> None:
    """Remember who links to what."""
    waiting: list[LinkRow] = []
    for row in links:
        waiting.append(row)
        if len(waiting) >= _CHUNK:
            state.commit(StateTransaction(linked=waiting))
            waiting = []
    if waiting:
        state.commit(StateTransaction(linked=waiting))


def remove_links(state: MirrorStateStore, rows: Iterable[ListedEntry]) -> None:
    """Forget what changed entries linked to before: what they link to now is written after.

    What is listed itself now is no longer here by links alone.

    Args:
        state: The mirror's memory.
        rows: The last change of each URI.
    """
    vias: list[str] = []
    listed: list[str] = []
    for row in rows:
        if row.change == FILTERED:
            continue  # what it links to is as wanted as it was
        vias.append(row.uri)
        if row.change != ChangeKind.DELETED:
            listed.append(row.uri)
        if len(vias) >= _CHUNK:
            state.commit(StateTransaction(unlinked=vias, listed=listed))
            vias, listed = [], []
    if vias:
        state.commit(StateTransaction(unlinked=vias, listed=listed))


def unlisted_changes(state: MirrorStateStore, rows: Iterable[ListedEntry]) -> Iterator[ListedEntry]:
    """Yield the rows of changes, without those of things that are listed themselves.

    Changes do not tell what did not change: whether a thing is listed, the mirror remembers.

    Args:
        state: The mirror's memory.
        rows: Changes, and what they link to.
    """
    for row in rows:
        if row.via:
            if is_listed(state, row.uri):
                continue
        elif row.change == FILTERED and state.is_linked(row.uri):
            if row.hash:  # else it may be a deletion, and tells of no new version anyway
                yield row._replace(change=ChangeKind.UPDATED)
            continue
        yield row


def is_listed(state: MirrorStateStore, uri: str) -> bool:
    """Whether a thing was listed itself, or not selected, when it was last told of."""
    if state.is_linked(uri):
        return False
    waiting = state.pending_of(uri)
    if waiting is not None:
        return waiting.task != PendingTask.RETAIN
    return state.copy(uri) is not None


def _merge_group(rows: Iterator[ListedEntry]) -> ListedEntry:
    """Return the one row of a URI; that of its own entry, if there is one, comes first."""
    own = next(rows)
    if own.via:
        return _merge_targets(own, rows)
    if own.change != FILTERED:
        return own
    first = next(rows, None)
    return own if first is None else _merge_with_entry(own, _merge_targets(first, rows))


def _merge_targets(first: ListedEntry, others: Iterable[ListedEntry]) -> ListedEntry:
    """Return one row for what several link to; where they differ, it claims nothing."""
    for other in others:
        if _content_of(first) != _content_of(other):
            first = first._replace(hash="", length=None, lastmod=None)
    return first


def _merge_with_entry(own: ListedEntry, linked: ListedEntry) -> ListedEntry:
    if not own.hash and own.length is None:
        return linked
    return linked._replace(loc=own.loc, hash=own.hash, length=own.length, lastmod=own.lastmod)


def _content_of(row: ListedEntry) -> tuple[str, int | None, int | None]:
    return row.hash, row.length, row.lastmod


OnConflict = Callable[[ListedEntry, ListedEntry], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRows:
    """What a Source lists now: its Resource List and the changes since.

    Attributes:
        spools: The rows of both.
        through: The Source's time up to which it tells, microseconds.
        complete: Whether what it does not list is really gone, unless it lists a URI twice.
        history: The changes as read; ``None`` where there are none to read.
        linked: What its entries link to; ``None`` when no links are followed.
        is_read: Whether a pull read these very lists, to its end.
    """

    sorters: list[ExternalSorter[ListedEntry]]
    checkpoint: int
    proves_absence: bool
    history: ChangeHistory | None = None
    linked: ExternalSorter[ListedEntry] | None = None
    was_read: bool = False

    def rows(self, on_conflict: OnConflict | None = None) -> Iterator[ListedEntry]:
        """Yield one row for each URI, in order: its last word, or what links to it say.

        Args:
            on_conflict: Takes what is listed twice, with different content.
        """
        return merge_linked(
            deduplicated_rows(self.sorters, on_conflict or ignore_conflict), self.linked
        )


def deduplicated_rows(
    spools: list[ExternalSorter[ListedEntry]],
    on_conflict: Callable[[ListedEntry, ListedEntry], None],
) -> Iterator[ListedEntry]:
    """Yield one row for each URI, in order: the last word of all spools."""
    return deduplicate(merge_sorted(spools, attrgetter("uri")), on_conflict)


def ignore_conflict(first: ListedEntry, other: ListedEntry) -> None:
    """Take a conflict that was told of already."""
    del first, other
