"""Listed resources as rows of files, and back; pure."""

from resourcesync.destination.plan import Listed
from resourcesync.ports.tables import ListedRow

_OF_AN_ENTRY = "["
"""What the links of an entry begin with, as they are remembered: no URI does."""


def row_of(listed: Listed) -> ListedRow:
    """Return the row of what is listed; a patch, and links that are followed, are left out."""
    entry = (listed.entry,) if listed.entry else ()
    return ListedRow(*listed[:7], "\n".join((listed.memento, *listed.mirrors, *entry)))


def listed_of(row: ListedRow) -> Listed:
    """Return what is listed in a row."""
    memento, *mirrors = row.elsewhere.split("\n")
    entry = mirrors.pop() if mirrors and mirrors[-1].startswith(_OF_AN_ENTRY) else ""
    return Listed(*row[:7], mirrors=tuple(mirrors), memento=memento, entry=entry)
