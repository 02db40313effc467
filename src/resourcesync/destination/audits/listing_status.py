"""Status of a resource where lists contradict each other, without a request to the Source. Pure."""

from enum import Enum

from resourcesync.destination.planner import DISPUTED, ListedEntry
from resourcesync.mirror_state.rows import Copy, Pending, PendingTask


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
    if row.change != DISPUTED:
        return ListingStatus.LISTED
    return ListingStatus.GONE if copy is None or waiting is not None else ListingStatus.OPEN
