"""Listed resources as rows of files, and back; pure."""

from resourcesync.destination.plan import Listed
from resourcesync.ports.tables import ListedRow


def row_of(listed: Listed) -> ListedRow:
    """Return the row of what is listed; what a patch or a link says is left out."""
    elsewhere = "\n".join((listed.memento, *listed.mirrors))
    return ListedRow(*listed[:7], elsewhere)


def listed_of(row: ListedRow) -> Listed:
    """Return what is listed in a row."""
    memento, *mirrors = row.elsewhere.split("\n")
    return Listed(*row[:7], mirrors=tuple(mirrors), memento=memento)
