"""Virtual time, in which nothing waits, and the temporary folders of a simulation."""

import fcntl
import heapq
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from resourcesync.errors import StorageError
from resourcesync.model.timestamps import from_microseconds, to_microseconds

_SECOND: Final = 1_000_000


class SimulatedClock:
    """A ``Clock``, and the events that are due at their times.

    Args:
        start: The first moment, UTC.
    """

    def __init__(self, start: datetime) -> None:
        self._start = self._now = to_microseconds(start)
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()

    @property
    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return (self._now - self._start) / _SECOND

    def now(self) -> datetime:
        """Return the present moment, UTC."""
        return from_microseconds(self._now)

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return self.elapsed

    def sleep(self, seconds: float) -> None:
        """Let time pass, with all events due in it."""
        self.pass_until(self.elapsed + max(0.0, seconds))

    def call_at(self, elapsed: float, event: Callable[[], None]) -> None:
        """Schedule an event at a time, in seconds since the start; never in the past."""
        moment = max(self._now, self._start + round(elapsed * _SECOND))
        heapq.heappush(self._due, (moment, next(self._numbers), event))

    def pass_until(self, elapsed: float) -> None:
        """Let time pass up to a time; events happen at their own moments, in order."""
        until = self._start + round(elapsed * _SECOND)
        while self._due and self._due[0][0] <= until:
            moment, _, event = heapq.heappop(self._due)
            self._now = max(self._now, moment)
            event()
        self._now = max(self._now, until)

    def pass_to_next(self, elapsed: float) -> None:
        """Let time pass to the next event, which happens, or up to a time."""
        if self._due and self._due[0][0] <= self._start + round(elapsed * _SECOND):
            moment = self._due[0][0]
            self.pass_until((moment - self._start) / _SECOND)
        else:
            self.pass_until(elapsed)

    def cancel_all(self) -> None:
        """Cancel all scheduled events."""
        self._due.clear()


class SteppingClock:
    """The time of another clock plus steps: the clock of a Source whose clock is wrong.

    Args:
        true: The other clock.
    """

    def __init__(self, true: SimulatedClock) -> None:
        self._true = true
        self._ahead = 0

    def step(self, seconds: float) -> None:
        """Step by some seconds."""
        self._ahead += round(seconds * _SECOND)

    def now(self) -> datetime:
        """Return this clock's present moment, UTC."""
        return from_microseconds(to_microseconds(self._true.now()) + self._ahead)

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return self._true.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self._true.sleep(seconds)


MEMORY_FOLDER: Final = Path("/dev/shm")  # noqa: S108
"""A file system in memory, where there is one."""
_QUICK: Final = "resourcesync-simulated-"
_LARGE: Final = "resourcesync-packed-"
_NEW: Final = 60.0
"""Age in seconds below which an unlocked folder may still be in creation."""


class TemporaryFolders(NamedTuple):
    """Temporary folders of a simulation.

    Attributes:
        memory: On a file system in memory, where there is one.
        disk: On the disk, for large files.
    """

    memory: Path
    disk: Path


@contextmanager
def make_folders(within: TemporaryFolders | None = None) -> Iterator[TemporaryFolders]:
    """Make folders that are removed with all in them after the block.

    The folders of a run that was killed more than a minute ago are removed, too.

    Args:
        within: The parent folder, whose owner removes the leftovers of a killed process; ``None``
            for the folders of the system.

    Raises:
        StorageError: They cannot be made.
    """
    memory, disk = within or (MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None, None)
    with ExitStack() as held:
        try:
            found = TemporaryFolders(
                _make_folder(held, _QUICK, memory), _make_folder(held, _LARGE, disk)
            )
            if within is None:
                _remove_stale(found.memory, _QUICK)
                _remove_stale(found.disk, _LARGE)
        except OSError as error:
            raise StorageError(
                f"cannot make a temporary folder: {error.strerror}",
                hint="free some space, or set TMPDIR to a folder of another disk",
            ) from error
        yield found


def _make_folder(locks: ExitStack, prefix: str, place: Path | None) -> Path:
    """Return a new folder; it is locked, so that no other process removes it."""
    folder = Path(locks.enter_context(tempfile.TemporaryDirectory(prefix=prefix, dir=place)))
    lock = _open_folder(folder)
    locks.callback(os.close, lock)
    with suppress(OSError):  # without locks nothing is ever removed
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return folder


def _remove_stale(ours: Path, prefix: str) -> None:
    """Remove unlocked folders of simulations beside our own; other ones stay."""
    latest = ours.stat().st_mtime - _NEW
    for folder in ours.parent.glob(f"{prefix}*"):
        with suppress(OSError), ExitStack() as held:
            lock = _open_folder(folder)
            held.callback(os.close, lock)
            found = os.fstat(lock)
            if found.st_mtime < latest and found.st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)


def _open_folder(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
