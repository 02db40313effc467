"""The last change of each resource, where lists report several, or contradict each other. Pure."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from resourcesync.destination.planner import (
    DISPUTED,
    FILTERED,
    MADE_AGAIN,
    NOT_WANTED,
    UNREADABLE,
    ListedEntry,
    without_patch,
)
from resourcesync.model.vocabulary import ChangeKind

_by_uri = attrgetter("uri")


def last_changes(rows: Iterable[ListedEntry]) -> Iterator[ListedEntry]:
    """Yield one row for each URI: its last change, else its row in the Resource List.

    A change that cannot be read is none; but the resource may have been created again by it, so
    that a deletion before it takes no copy. The rows are in URI order; of one URI first its row in
    the Resource List, then its changes in the order in which the Source listed them.
    """
    for _, same in groupby(rows, key=_by_uri):
        first = current = next(same)
        for row in same:  # noqa: B031 - the rest of it
            first, current = _after_change(first, current, row)
        if current.change != UNREADABLE:
            yield current


def _after_change(
    first: ListedEntry, before: ListedEntry, row: ListedEntry
) -> tuple[ListedEntry, ListedEntry]:
    if row.change == UNREADABLE:
        kept = row._replace(change=FILTERED)
        return first, kept if before.change == ChangeKind.DELETED else before
    if before.change == UNREADABLE:
        return row, row
    current = without_patch(row)  # the version between is not in the mirror
    if row.undated and row.change != FILTERED:
        current = _merge_contradicting(first, current)
    elif _is_out_of_order(before, current):
        current = _as_rivals(before, current, before.lastmod)
    return first, current


def _merge_contradicting(listed: ListedEntry, changed: ListedEntry) -> ListedEntry:
    """Return the row of a resource when it is unknown which of two rows is later."""
    if listed.change:  # the list does not give its content
        is_kept = listed.change == FILTERED and changed.change == ChangeKind.DELETED
        return listed if is_kept else changed
    if changed.change == ChangeKind.DELETED:
        was, now = changed.lastmod, listed.lastmod
        change = MADE_AGAIN if was is not None and was < (now or 0) else DISPUTED
        return listed._replace(change=change, undated=True, is_older=changed.is_older)
    is_same = listed.hash == changed.hash
    if is_same and not listed.hash:
        is_same = listed.lastmod in (None, changed.lastmod)  # without a date it claims nothing
        is_same = is_same and listed.length in (None, changed.length)
    if is_same:
        return listed
    return _as_rivals(listed, changed, listed.lastmod if changed.is_older else None)


def _is_out_of_order(before: ListedEntry, after: ListedEntry) -> bool:
    """True if a change is listed behind a later one of its resource, with other content.

    Changes are listed in the order of their times (§12.1). A list with the newest first is not; nor
    is one whose Source set its clock back. Nothing shows which of the two it is.
    """
    if before.lastmod is None or after.lastmod is None or after.lastmod >= before.lastmod:
        return False
    if not before.change or before.change in NOT_WANTED or after.change in NOT_WANTED:
        return False
    return after.hash != before.hash


def _as_rivals(one: ListedEntry, other: ListedEntry, lastmod: int | None) -> ListedEntry:
    rivals = (*one.contents, (other.hash, other.length))
    return other._replace(hash="", length=None, lastmod=lastmod, undated=True, rivals=rivals)
