"""The health of a mirror: by its status, the limits of its lag, and the room on its disk."""

from math import inf
from typing import Final, NamedTuple

from resourcesync.destination.reports import MirrorState, MirrorStatus
from resourcesync.model import formatting

LEAST_ROOM: Final = 1024 * 1024
WORST_FIRST: Final = (
    MirrorState.STOPPED,
    MirrorState.FAILING,
    MirrorState.BEHIND,
    MirrorState.NEW,
    MirrorState.SYNCING,
    MirrorState.IN_SYNC,
)
"""The states in the order in which mirrors are shown."""


class DiskSpace(NamedTuple):
    """Bytes of a file system: those in all, and those free for this user."""

    total: int
    free: int


class CheckedMirror(NamedTuple):
    """A mirror as it is now: its status, seconds with their limits, and its disk if known."""

    status: MirrorStatus
    lag: float | None = None  # since it was last found in sync
    max_lag: float | None = None
    quiet: float | None = None  # since the Source's last publication
    max_quiet: float | None = None
    disk: DiskSpace | None = None
    folder: str = ""
    is_paused: bool = False  # by an operator of a service

    @property
    def is_late(self) -> bool:
        """True if the lag is over the limit."""
        return is_over(self.lag, self.max_lag)

    @property
    def is_too_quiet(self) -> bool:
        """True if the Source has not published for longer than the limit."""
        return is_over(self.quiet, self.max_quiet)

    @property
    def is_full(self) -> bool:
        """True if the disk of the mirror's folder has no room for a pull."""
        return self.disk is not None and self.disk.free < LEAST_ROOM

    @property
    def is_fine(self) -> bool:
        """True if the mirror is in sync, within the limits, and the next pull has room.

        A run has until ``max_lag`` to do what it found; without one, the mirror is not in sync yet.
        """
        now = self.status
        found = now.listed.pending or now.listed.refused or now.deletions or now.in_sync_at is None
        if now.judged is not MirrorState.IN_SYNC or (now.left and found and self.max_lag is None):
            return False
        return not (self.is_late or self.is_too_quiet or self.is_full)

    @property
    def rank(self) -> tuple[bool, int, float, str]:
        """The key by which mirrors are sorted: the worst first, then the longest lag."""
        lag = inf if self.lag is None else self.lag
        return self.is_fine, WORST_FIRST.index(self.status.judged), -lag, self.status.mirror


def pending_of(status: MirrorStatus) -> int | None:
    """Return how many are not in the mirror as listed; ``None`` if none is known yet."""
    return status.listed.pending if status.listed.pending or status.is_counted else None


def pending_text(status: MirrorStatus) -> str:
    """Return the same as a text; ``-`` if it is not known."""
    pending = pending_of(status)
    return "-" if pending is None else formatting.count(pending)


def is_over(seconds: float | None, most: float | None) -> bool:
    """True if a time is over a limit; an unknown time is."""
    return most is not None and (seconds is None or seconds > most)
