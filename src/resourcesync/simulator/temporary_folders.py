"""Folders for what simulations need while they run: gone when they end, or with the next one."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from resourcesync.errors import StorageError

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a file system in memory, where there is one
_QUICK: Final = "resourcesync-simulated-"
_LARGE: Final = "resourcesync-packed-"
_NEW: Final = 60.0
"""Seconds for which a folder that nobody holds may be one that is just being made."""


class TemporaryFolders(NamedTuple):
    """Folders in which simulations keep what they need while they run.

    Attributes:
        memory: On a file system in memory, where there is one.
        disk: On the disk, for what is large.
    """

    memory: Path
    disk: Path


@contextmanager
def make_folders(within: TemporaryFolders | None = None) -> Iterator[TemporaryFolders]:
    """Make folders that are gone with all in them after the block.

    What a run left that was killed more than a minute ago is removed, too.

    Args:
        within: Where they are made, by somebody who removes what a killed process left there;
            ``None`` for the folders of the system.

    Raises:
        StorageError: They cannot be made.
    """
    memory, disk = within or (_MEMORY if _MEMORY.is_dir() else None, None)
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
                hint="make room, or name a folder of another disk in TMPDIR",
            ) from error
        yield found


def _make_folder(held: ExitStack, prefix: str, place: Path | None) -> Path:
    """Return a new folder; it is locked, so that nobody takes it for one that was left."""
    folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix=prefix, dir=place)))
    lock = _open_folder(folder)
    held.callback(os.close, lock)
    with suppress(OSError):  # where nothing can be locked, nothing is ever removed
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return folder


def _remove_stale(ours: Path, prefix: str) -> None:
    """Remove what nobody holds any more beside our folder; what is not ours stays, as it must."""
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
