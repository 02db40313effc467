"""What a Source lists now, as rows that can be compared with what the mirror holds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter

from resourcesync.destination.history import ChangeHistory
from resourcesync.destination.linking import merge_linked
from resourcesync.destination.ordering import ExternalSorter, merge_sorted
from resourcesync.destination.plan import ListedEntry, deduplicate

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
