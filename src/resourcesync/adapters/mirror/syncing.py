"""The sync of a group of staged files, and of the folders that got their names.

On a fast disk, as in memory, one file is synced after the other. On a slow one, a sync of the whole
file system stands for the syncs of a group where it promises the same: on Linux from 5.17, for ext4
with a journal, XFS and Btrfs. Before 5.8 ``syncfs`` reported no failed write, and before 5.17 no
failed commit of a journal. It waits for what others have written too, so that must not be much.

Else several files are synced at a time: a journaling file system commits once for all callers that
wait. Where one ``fsync`` takes two milliseconds, four threads finish a group more than ten times as
fast.
"""

import os
import re
from collections.abc import Callable, Sequence
from itertools import chain
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

from resourcesync.adapters.mirror.own_folder import mirror_error
from resourcesync.adapters.mirror.staging import StagedFile
from resourcesync.errors import StorageError
from resourcesync.ports import CopyInstallation

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

PROBED: Final = 8
"""Files that are synced one by one, to see whether the disk is slow."""
SLOW_SECONDS: Final = 50e-6
"""Seconds of one sync from which a disk counts as slow."""
_THREADS: Final = 4
WORTH: Final = 16
"""Files or folders from which a group is synced together on a slow disk."""
_AT_ONCE: Final = 256
"""The most files that are open to be synced."""

MAX_WAITING: Final = 64 << 20
"""The most bytes that wait for the disks of this machine while a whole file system is synced."""

_EXT, _XFS, _BTRFS = 0xEF53, 0x58465342, 0x9123683E
_MEMORY: Final = Path("/proc/meminfo")


def is_trusted(release: str, kind: int, *, has_journal: bool) -> bool:
    """True if ``syncfs`` promises what ``fsync`` does, by the kernel's release and ``f_type``."""
    numbers = re.match(r"(\d+)\.(\d+)", release)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < (5, 17):
        return False
    return kind in {_XFS, _BTRFS} or (kind == _EXT and has_journal)


def waiting_bytes(memory: str) -> int:
    """Return how many bytes wait for the disks, by the text of ``/proc/meminfo``."""
    return sum(map(int, re.findall(r"(?m)^(?:Dirty|Writeback): +(\d+) kB$", memory))) << 10


def syncer_of(folder: int) -> Callable[[], bool] | None:
    """Return what makes all that was written beside a folder durable; ``None``: cannot be trusted.

    It returns false where each file has to be synced: others have written much, or a write failed.
    The folder stays open, since errors are reported to descriptors that were open before.
    """
    import ctypes  # noqa: PLC0415 - on slow disks only

    try:
        library = ctypes.CDLL(None, use_errno=True)
        syncfs, fstatfs = library.syncfs, library.fstatfs
    except (AttributeError, OSError, TypeError):  # no such system
        return None
    about = (ctypes.c_long * 64)()
    if fstatfs(folder, about):
        return None
    has_journal = about[0] == _EXT and _has_journal(os.fstat(folder).st_dev)
    if not is_trusted(os.uname().release, about[0], has_journal=has_journal):
        return None

    def sync() -> bool:
        try:
            is_quiet = waiting_bytes(_MEMORY.read_text("ascii")) <= MAX_WAITING
        except OSError:
            return False
        return is_quiet and not syncfs(folder)

    return sync


def _has_journal(device: int) -> bool:
    number = f"{os.major(device)}:{os.minor(device)}"
    name = Path(f"/sys/dev/block/{number}").resolve().name
    return any(Path("/proc/fs/jbd2").glob(f"{name}-*"))


Synced = str | StorageError
"""The stat signature of a durable file, or why it is not durable."""


class FileSyncer:
    """A syncer that makes staged files durable, and the folders that got their names.

    On a slow disk one sync of the file system of ``folder`` does, or several threads sync files
    that the disk has begun to write.
    """

    def __init__(self, monotonic: Callable[[], float], folder: int | None = None) -> None:
        self._monotonic = monotonic
        self._folder = folder
        self._is_slow = False
        self._sync_whole: Callable[[], bool] | None = None
        self._pool: ThreadPoolExecutor | None = None

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def sync(self, batch: Sequence[CopyInstallation]) -> list[Synced]:
        """Make each file of a batch durable and close it; return its signature or its error."""
        done: list[Synced] = []
        for start in range(0, len(batch), _AT_ONCE):
            done += self._sync_files(batch[start : start + _AT_ONCE])
        return done

    def sync_together(self, count: int) -> bool:
        """Make all that was written durable at once, if for so many that is safe and sooner."""
        return (
            count >= WORTH and self._sync_whole is not None and self._is_slow and self._sync_whole()
        )

    def _sync_files(self, batch: Sequence[CopyInstallation]) -> list[Synced]:
        by_threads = self._is_slow and self._sync_whole is None
        files = [_complete(installation, start=by_threads) for installation in batch]
        done = [] if self._is_slow else self._probe(files[:PROBED])
        rest = files[len(done) :]
        if len(rest) < WORTH or not self._is_slow:
            return done + _close_all(rest)
        if self.sync_together(len(rest)):
            return done + _close_all(rest, sync=False)
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - the same

            self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="fsync")
        share = -(-len(rest) // _THREADS)
        parts = [rest[start : start + share] for start in range(0, len(rest), share)]
        return done + list(chain.from_iterable(self._pool.map(_close_all, parts)))

    def _probe(self, files: "Sequence[StagedFile | StorageError]") -> list[Synced]:
        done: list[Synced] = []
        quickest = inf
        for file in files:
            started = self._monotonic()
            done += _close_all([file])
            quickest = min(quickest, self._monotonic() - started)
        self._is_slow = SLOW_SECONDS <= quickest < inf
        if self._is_slow and self._folder is not None:
            self._sync_whole = syncer_of(self._folder)
        return done


def _complete(installation: CopyInstallation, *, start: bool) -> "StagedFile | StorageError":
    staged: StagedFile = installation.staged  # type: ignore[assignment]  # of these very copies
    try:
        staged.complete(installation.lastmod, start=start)
    except StorageError as error:
        staged.discard()
        return error
    except OSError as error:
        staged.discard()
        return mirror_error(error, "making a copy durable")
    return staged


def _close_all(files: "Sequence[StagedFile | StorageError]", *, sync: bool = True) -> list[Synced]:
    done: list[Synced] = []
    for file in files:
        if isinstance(file, StorageError):
            done.append(file)
            continue
        try:
            done.append(file.close_durable(sync=sync))
        except OSError as error:
            # After a failed fsync the kernel may mark the lost pages clean: never retry it.
            file.discard()
            done.append(mirror_error(error, "making a copy durable"))
    return done
