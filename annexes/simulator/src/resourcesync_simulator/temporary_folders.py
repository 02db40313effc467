"""Temporary folders of simulations, removed at their end, or by the next one."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from resourcesync.errors import StorageError

MEMORY_FOLDER: Final = Path("/dev/shm")  # noqa: S108
"""A file system in memory, where there is one."""
_QUICK: Final = "resourcesync-simulated-"
_LARGE: Final = "resourcesync-packed-"
_NEW: Final = 60.0
"""Age in seconds below which an unlocked folder may still be in creation."""


class TemporaryFolders(NamedTuple):
    """Temporary folders of a simulation."""

    memory: Path
    disk: Path


@contextmanager
def make_folders(within: TemporaryFolders | None = None) -> Iterator[TemporaryFolders]:
    """Make folders that are removed with all in them after the block.

    The folders of a run that was killed more than a minute ago are removed, too.
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
