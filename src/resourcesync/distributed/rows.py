"""Listed resources as rows of files, and back; pure."""

from resourcesync.destination.planner import DISPUTED, FILTERED, ListedEntry
from resourcesync.destination.tasks import decode_contradiction, encode_contradiction
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.tables import ListedRow

_ENTRY_PREFIX = "["
"""What the links of an entry begin with, as they are remembered: no URI does."""


def row_of(listed: ListedEntry) -> ListedRow:
    """Return the row of what is listed; a patch, and links that are followed, are left out.

    Where lists may contradict each other it is a disputed one, so that no comparison of columns
    takes a copy for what is listed.
    """
    entry = (listed.entry,) if listed.entry else ()
    how = encode_contradiction(listed)
    row = ListedRow(*listed[:7], "\n".join((listed.memento, *listed.mirrors, *how, *entry)))
    is_open = how and listed.change not in (ChangeKind.DELETED, FILTERED)
    return row._replace(change=DISPUTED) if is_open else row


def listed_of(row: ListedRow) -> ListedEntry:
    """Return what is listed in a row."""
    memento, *mirrors = row.elsewhere.split("\n")
    entry = mirrors.pop() if mirrors and mirrors[-1].startswith(_ENTRY_PREFIX) else ""
    listed = ListedEntry(*row[:7], mirrors=tuple(mirrors), memento=memento, entry=entry)
    return decode_contradiction(listed)
