"""How a Destination synchronizes by itself (``SyncStrategy``)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from resourcesync.destination.incremental import Incremental
from resourcesync.destination.pulling import SyncSession

if TYPE_CHECKING:
    from resourcesync.destination.baseline import Baseline


class LocalStrategy:
    """Baseline and incremental synchronization on this machine alone."""

    def baseline(self, pull: SyncSession) -> "Baseline":
        """Return what does baseline synchronization for a pull."""
        from resourcesync.destination.baseline import Baseline  # noqa: PLC0415 - once a week

        return Baseline(pull)

    def incremental(self, pull: SyncSession, are_others: Callable[[], bool]) -> Incremental:
        """Return what does incremental synchronization for a pull."""
        return Incremental(pull, are_others)
