"""How a Destination synchronizes by itself (``Ways``)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from resourcesync.destination.incremental import Incremental
from resourcesync.destination.pulling import Pull

if TYPE_CHECKING:
    from resourcesync.destination.baseline import Baseline


class OwnWays:
    """Baseline and incremental synchronization on this machine alone."""

    def baseline(self, pull: Pull) -> "Baseline":
        """Return what does baseline synchronization for a pull."""
        from resourcesync.destination.baseline import Baseline  # noqa: PLC0415 - once a week

        return Baseline(pull)

    def incremental(self, pull: Pull, are_others: Callable[[], bool]) -> Incremental:
        """Return what does incremental synchronization for a pull."""
        return Incremental(pull, are_others)
