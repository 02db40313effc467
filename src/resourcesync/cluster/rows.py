"""Conversion of listed resources to rows of files, and back; pure."""

from resourcesync.destination.planner import (
    DISPUTED,
    FILTERED,
    ListedEntry,
    decode_contradiction,
)
from resourcesync.destination.tasks import encode_contradiction
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.tables import ListedRow

_ENTRY_PREFIX = "["
"""The first character of an entry's links, as they are stored: no URI begins with it."""


def row_of(listed: ListedEntry) -> ListedRow:
    """Return the row of a listed entry; a patch, and links that are followed, are left out.

    Where lists may contradict each other it is a disputed one, so that no comparison of columns
    takes a copy for the listed one.
    """
    entry = (listed.entry,) if listed.entry else ()
    how = encode_contradiction(listed)
    row = ListedRow(*listed[:7], "\n".join((listed.memento, *listed.mirrors, *how, *entry)))
    is_open = how and listed.change not in (ChangeKind.DELETED, FILTERED)
    return row._replace(change=DISPUTED) if is_open else row


def listed_of(row: ListedRow) -> ListedEntry:
    """Return the listed entry of a row."""
    memento, *mirrors = row.elsewhere.split("\n")
    entry = mirrors.pop() if mirrors and mirrors[-1].startswith(_ENTRY_PREFIX) else ""
    listed = ListedEntry(*row[:7], mirrors=tuple(mirrors), memento=memento, entry=entry)
    return decode_contradiction(listed)
