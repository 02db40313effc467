"""Rows of what a Source lists now, with the targets of followed links.

A resource that is listed itself is described by its own entry. Any other target of a selected entry
becomes one row like those of a list; so plan, transfer, audit and repair treat it like any other.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from enum import Enum
from heapq import merge
from itertools import chain, groupby, islice
from operator import attrgetter, itemgetter
from typing import Any, Final

import msgspec

from resourcesync.destination.external_sort import ExternalSorter, PairSorter
from resourcesync.destination.planner import (
    DISPUTED,
    FILTERED,
    MADE_AGAIN,
    MAX_MIRRORS,
    NOT_WANTED,
    UNLISTED,
    ListedEntry,
)
from resourcesync.destination.pull_session import SyncSession
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import (
    Copy,
    EntryRow,
    LinkRow,
    Pending,
    PendingTask,
    StateTransaction,
)
from resourcesync.model.digests import Digest, disagree, format_digests, parse_digests
from resourcesync.model.vocabulary import ChangeKind

ENTRY_LINKS_COMPLETE: Final = "entries-known"
"""Name of the note that a whole list was read since links of entries are stored."""
UNLINKED_REASON: Final = "no listed entry links to it any more"
_CHUNK: Final = 1_000
_PRESENT: Final = frozenset({ChangeKind.CREATED, ChangeKind.UPDATED})
_by_uri = attrgetter("uri")


def collect_linked(
    pull: SyncSession, rows: Iterable[ListedEntry], held: ExitStack
) -> ExternalSorter[ListedEntry] | None:
    """Return a row for each link of each row, in order of the targets."""
    if not pull.selection.follows_links:
        return None
    spool = held.enter_context(pull.new_sorter())
    for row in rows:
        for target in row.links if row.change not in NOT_WANTED else ():
            found = pull.selection.linked_row(target, row.uri)
            if found is not None:
                spool.add(found)
    return spool


def merge_linked(
    rows: Iterator[ListedEntry], linked: Iterable[ListedEntry] | None
) -> Iterator[ListedEntry]:
    """Return the rows, and one for each link target that is not listed itself.

    A target that is listed but filtered out is selected because of the link; the content in its own
    entry still counts.
    """
    if linked is None:
        return rows
    return (
        _merge_group(group) for _, group in groupby(merge(rows, linked, key=_by_uri), key=_by_uri)
    )


def link_rows(
    rows: Iterator[ListedEntry], linked: Iterable[ListedEntry] | None, generation: int
) -> Iterator[LinkRow]:
    """Yield the links to all targets that are not listed themselves."""
    if linked is None:
        return
    listed = ""
    for row in merge(rows, linked, key=_by_uri):  # the own entry of a URI comes first
        if not row.via:
            listed = row.uri if row.change != FILTERED else listed
        elif row.uri != listed:
            yield LinkRow(row.uri, row.via, generation)


def store_links(state: SqliteMirrorState, links: Iterable[LinkRow]) -> None:
    """Store links."""
    rows = iter(links)
    while chunk := list(islice(rows, _CHUNK)):
        state.commit(StateTransaction(linked=chunk))


def remove_links(state: SqliteMirrorState, rows: Iterable[ListedEntry]) -> None:
    """Remove the former links of changed entries, before the present ones are stored.

    A target that is listed itself now is no longer in the mirror by links alone. The links of an
    entry that is filtered out stay.
    """
    changed = (row for row in rows if row.change != FILTERED)
    while chunk := list(islice(changed, _CHUNK)):
        listed = [row.uri for row in chunk if row.change != ChangeKind.DELETED]
        state.commit(StateTransaction(unlinked=[row.uri for row in chunk], listed=listed))


def unlisted_changes(
    state: SqliteMirrorState, rows: Iterable[ListedEntry]
) -> Iterator[ListedEntry]:
    """Yield the rows of changes, without link targets that are listed themselves.

    Changes do not show unchanged entries: the mirror's state tells whether a target is listed.
    """
    for row in rows:
        if row.via:
            if is_listed(state, row.uri):
                continue
        elif row.change == FILTERED and state.is_linked(row.uri):
            if row.hash:  # else it may be a deletion, and has no new version anyway
                yield row._replace(change=ChangeKind.UPDATED)
            continue
        yield row


def orphans_after(
    pull: SyncSession, rows: Callable[[], Iterator[ListedEntry]], linked: Iterable[ListedEntry]
) -> Iterator[str]:
    """Yield, in order, the URIs that nothing will link to once the links of changes are stored."""
    state = pull.state
    if not state.linked_count():
        return
    with (
        PairSorter(pull.dependencies.scratch) as links,
        PairSorter(pull.dependencies.scratch) as remaining,
    ):
        for copy in state.copies():
            if state.is_linked(copy.uri):
                remaining.add((copy.uri, ""))
                links.add_all((via, copy.uri) for via in state.referrers(copy.uri, sys.maxsize))
        changed = ((row.uri, "") for row in rows() if row.change != FILTERED)
        for via, pairs in groupby(merge(changed, links, key=_first), key=_first):
            targets = [target for _, target in pairs]  # the empty one: its links are replaced
            remaining.add_all((target, via) for target in targets if targets[0])
        remaining.add_all((row.uri, row.via) for row in linked)
        own = (row for row in rows() if row.change not in NOT_WANTED)
        remaining.add_all((row.uri, row.uri) for row in own)
        for uri, pairs in groupby(remaining, key=_first):
            if not any(via for _, via in pairs):
                yield uri


_first = itemgetter(0)


def is_listed(state: SqliteMirrorState, uri: str) -> bool:
    """True if a target was listed itself, or not selected, when last reported."""
    if state.is_linked(uri):
        return False
    waiting = state.pending_of(uri)
    if waiting is not None:
        return waiting.task != PendingTask.RETAIN
    return state.copy(uri) is not None


def _merge_group(rows: Iterator[ListedEntry]) -> ListedEntry:
    own = next(rows)
    if own.via:
        return _merge_targets(own, rows)
    if own.change != FILTERED:
        return own
    first = next(rows, None)
    return own if first is None else _merge_with_entry(own, _merge_targets(first, rows))


def _merge_targets(first: ListedEntry, others: Iterable[ListedEntry]) -> ListedEntry:
    for other in others:
        if first[3:6] != other[3:6]:  # hash, length, lastmod
            first = first._replace(hash="", length=None, lastmod=None)
    return first


def _merge_with_entry(own: ListedEntry, linked: ListedEntry) -> ListedEntry:
    if not own.hash and own.length is None:
        return linked
    return linked._replace(loc=own.loc, hash=own.hash, length=own.length, lastmod=own.lastmod)


class ListedRows(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of what a Source lists now: its Resource List and the changes since.

    ``at`` is ``None``, and ``checkpoint`` 0, if no list states a moment. ``has_gap``: the changes
    do not reach back to the list, or a part is outdated. Up to ``absent_at`` the rows are all that
    is listed. ``was_read``: a pull read these very lists, to the end.
    """

    sorters: list[ExternalSorter[ListedEntry]]
    checkpoint: int
    at: int | None
    proves_absence: bool
    has_gap: bool = False
    absent_at: int = 0
    linked: ExternalSorter[ListedEntry] | None = None
    was_read: bool = False

    def rows(self) -> Iterator[ListedEntry]:
        """Yield one row for each URI, in order: its own one, or that of a link to it."""
        return merge_linked(deduplicated_rows(self.sorters), self.linked)


def deduplicated_rows(sorters: Sequence[ExternalSorter[ListedEntry]]) -> Iterator[ListedEntry]:
    """Yield one row for each URI, in order: its last change, else the union of its entries."""
    listed, *changed = sorters
    rows = unite_all(listed)
    if not any(map(len, changed)):
        return rows
    from resourcesync.destination.changes.last_change import last_changes  # noqa: PLC0415 - lazy

    return map(_with_age, last_changes(merge(rows, *changed, key=_by_uri)))


def _with_age(row: ListedEntry) -> ListedEntry:
    if row.is_older and not row.rivals and row.change in _PRESENT:
        return row._replace(change=UNLISTED, is_older=False)
    return row


def has_known_change(listed: Iterable[ListedEntry], changes: Iterable[ListedEntry]) -> bool:
    """True if a Change List without an interval begins before the Resource List."""
    for _, rows in groupby(merge(listed, changes, key=_by_uri), key=_by_uri):
        first, *others = rows
        is_listed = not first.change and first.hash != "" and first.lastmod is not None
        # Content and date of the list; a deletion may have both of the former list.
        changed = (row for row in others if row.change not in {"", ChangeKind.DELETED})
        if is_listed and any(row[3:6] == first[3:6] for row in changed):
            return True
    return False


def store_entry_links(
    state: SqliteMirrorState, rows: Iterable[ListedEntry], *, generation: int, now: int, anew: bool
) -> None:
    """Store the links of entries with the mirror, for a later publication of it."""
    found = _entry_rows(state, rows, generation, anew=anew)
    while chunk := list(islice(found, _CHUNK)):
        state.commit(StateTransaction(entries=chunk, now=now))


def _entry_rows(
    state: SqliteMirrorState, rows: Iterable[ListedEntry], generation: int, *, anew: bool
) -> Iterator[EntryRow]:
    for row in rows:
        if row.change in NOT_WANTED:
            continue
        if row.entry or (not anew and state.entry_links(row.uri)):
            yield EntryRow(row.uri, row.entry, generation)


Content = tuple[str, int | None]
"""What an entry tells of the bytes: its ``hash`` and its length."""

MAX_RIVALS: Final = 8
"""Contents of one resource that are told apart; of more, the list says nothing."""
_MAX_WAITING: Final = 64
"""Entries of one resource that wait to be united: a hostile list may have millions."""
_NOTHING: Final[Content] = ("", None)


def unite_all(rows: Iterable[ListedEntry]) -> Iterator[ListedEntry]:
    """Yield one row for each URI."""
    rest = iter(rows)
    current = next(rest, None)
    while current is not None:
        row = next(rest, None)
        if row is None or row.uri != current.uri:  # as most
            yield current
            current = row
            continue
        same, uri = [current], row.uri
        while row is not None and row.uri == uri:
            same.append(row)
            if len(same) >= _MAX_WAITING:
                same = [unite(same)]
            row = next(rest, None)
        yield unite(same)
        current = row


def unite(rows: Iterable[ListedEntry]) -> ListedEntry:
    """Return the one row of a resource; in which order its entries are listed makes no difference.

    An entry that cannot be used counts only if there is no other, and one that the filters exclude
    only if none of its date is selected.
    """
    rows = _best(rows, lambda row: (row.loc != "", row.lastmod is not None, row.lastmod or 0))
    rows = _best(rows, lambda row: row.change != FILTERED)
    first, *others = rows = sorted(rows, key=_order)
    if not others:
        return first
    first = first._replace(
        links=tuple(dict.fromkeys(chain.from_iterable(row.links for row in rows))),
        entry=next((row.entry for row in rows if row.entry), ""),
    )
    contents = set(chain.from_iterable(row.contents for row in rows))
    contents -= {_NOTHING}
    if any(row.undated and not row.rivals for row in rows):
        return _as_question(first, ())
    if not _is_consistent(contents):
        return _as_question(first, sorted(contents, key=repr))
    mirrors = dict.fromkeys(chain.from_iterable(row.mirrors for row in rows))
    return first._replace(
        hash=_joined(digest for digest, _ in contents),
        length=next((length for _, length in contents if length is not None), None),
        mirrors=tuple(mirrors)[:MAX_MIRRORS],
        memento=next((row.memento for row in rows if row.memento), ""),
    )


def _best(rows: Iterable[ListedEntry], key: Callable[[ListedEntry], Any]) -> list[ListedEntry]:
    rows = list(rows)
    most = max(map(key, rows))
    return [row for row in rows if key(row) == most]


def _order(row: ListedEntry) -> tuple[object, ...]:
    return row.loc, row.path, row.hash, row.length or 0, row.memento, row.mirrors, row.entry


def _is_consistent(contents: Collection[Content]) -> bool:
    digests = [digest for text, _ in contents for digest in parse_digests(text)]
    lengths = {length for _, length in contents if length is not None}
    return len(lengths) <= 1 and not disagree(digests, digests)


def _joined(texts: Iterable[str]) -> str:
    found: set[Digest] = {digest for text in texts for digest in parse_digests(text)}
    return format_digests(sorted(found))


def _as_question(row: ListedEntry, rivals: Sequence[Content]) -> ListedEntry:
    return row._replace(
        hash="",
        length=None,
        mirrors=(),
        memento="",
        undated=True,
        rivals=tuple(rivals) if len(rivals) <= MAX_RIVALS else (),
    )


class ListingStatus(Enum):
    """Status of a resource where lists may contradict each other."""

    LISTED = "listed"
    """Present at the Source: lists agree, or it served one of two candidates to a pull."""
    GONE = "gone"
    """Deleted in one list, and the Source did not serve it to a pull."""
    OPEN = "open"
    """Undecided: not requested since, no answer, or served though one list calls it deleted."""


def listing_status(
    row: ListedEntry, copy: Copy | None, waiting: Pending | None, *, is_read: bool
) -> ListingStatus:
    """Return the status of a listed resource, without a request to the Source."""
    if not row.undated:
        return ListingStatus.LISTED
    if not is_read or (waiting is not None and waiting.task == PendingTask.FETCH):
        return ListingStatus.OPEN
    if row.change in {DISPUTED, MADE_AGAIN} and (copy is None or waiting is not None):
        return ListingStatus.GONE
    return ListingStatus.OPEN if row.change == DISPUTED else ListingStatus.LISTED
