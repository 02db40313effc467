"""A folder of staged bytes on their way to a path beside it, or to a store.

Large copies that broke off are saved for the next run as parts: a temporary file with a note
beside it. Any other file there was left by a killed run, and is removed. Parts are not synced:
after a power cut one may hold wrong bytes. So a part is saved only for a copy whose whole a strong
digest will prove.

A group of staged files is made durable one after the other, or several at a time on a slow disk. A
journaling file system commits once for all callers that wait. Where one ``fsync`` takes two
milliseconds, four threads finish a group more than ten times as fast; where it takes two
microseconds, as in memory, threads only cost.
"""

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from resourcesync.adapters.mirror.own_folder import mirror_error
from resourcesync.adapters.mirror.staged_file import Parts, StagedFile
from resourcesync.errors import StorageError
from resourcesync.own_files import NEW, open_file, open_folder, opened
from resourcesync.ports import CopyInstallation

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


_BUFFER: Final = 64 * 1024


class _ScratchFile(io.FileIO):
    """A file whose errors are ``StorageError``."""

    def readinto(self, buffer: Any) -> int | None:
        with _guard_scratch("reading"):
            return super().readinto(buffer)

    def readall(self) -> bytes | None:  # type: ignore[override]  # as its own documentation says
        with _guard_scratch("reading"):
            return super().readall()

    def write(self, data: Any) -> int | None:  # type: ignore[override]  # the same
        with _guard_scratch("writing"):
            return super().write(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        with _guard_scratch("reading"):
            return super().seek(offset, whence)

    def truncate(self, size: int | None = None) -> int:
        with _guard_scratch("writing"):
            return super().truncate(size)


@contextmanager
def _guard_scratch(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise mirror_error(error, f"{doing} a temporary file") from error


def open_scratch(name: str, folder: int) -> BinaryIO:
    """Open an unlinked temporary file to write and read."""
    try:
        file = open_file(name, folder, NEW)
        try:
            os.unlink(name, dir_fd=folder)
            raw = _ScratchFile(file, "r+b")
        except BaseException:
            os.close(file)
            raise
    except OSError as error:
        raise mirror_error(error, "making a temporary file") from error
    return cast("BinaryIO", io.BufferedRandom(raw, _BUFFER))


class Staging:
    """A folder of temporary files."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._parts = Parts(folder)
        self._names = 0
        self._tag = os.urandom(8).hex()

    def clear(self, oldest: float) -> None:
        """Remove temporary files of killed runs."""
        self._parts.clear(oldest)

    def stage(self, algorithms: Sequence[str], of: str = "") -> StagedFile:
        """Start a staged file; digests are computed while the bytes are written.

        With ``of``, resume the part of it that an earlier run left, if there is one.
        """
        if of and (part := self._resume_part(algorithms, of)) is not None:
            return part
        self._names += 1
        return StagedFile(self._folder, f"{self._tag}-{self._names}", algorithms, self._parts, of)

    def scratch(self) -> BinaryIO:
        """Open a nameless temporary file, to read and write."""
        self._names += 1
        return open_scratch(f"{self._tag}-{self._names}", self._folder)

    def _resume_part(self, algorithms: Sequence[str], of: str) -> StagedFile | None:
        kept = self._parts.take(of)
        if kept is None:
            return None
        staged = StagedFile(self._folder, kept.name, algorithms, self._parts, of)
        try:
            staged.resume(kept.validator)
        except OSError:
            staged.discard()
            return None
        return staged


@contextmanager
def open_staging(folder: Path) -> Iterator[Staging]:
    """Open a folder of temporary files while the block runs."""
    try:
        descriptor = open_folder(folder)
    except OSError as error:
        raise mirror_error(error, f"opening {folder}") from error
    with opened(descriptor):
        yield Staging(descriptor)


_PROBED: Final = 8
SLOW_SECONDS: Final = 50e-6
"""Seconds of one sync from which a disk counts as slow."""
_THREADS: Final = 4
_WORTH: Final = 16
_AT_ONCE: Final = 256
"""The most files that are open to be synced."""

Synced = str | StorageError
"""The stat signature of a durable file, or why it is not durable."""


class FileSyncer:
    """A syncer that makes staged files durable.

    On a slow disk, several threads sync files that the disk has begun to write.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._is_slow = False
        self._pool: ThreadPoolExecutor | None = None

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def sync(self, batch: Sequence[CopyInstallation]) -> list[Synced]:
        """Make each file of a batch durable and close it; return its signature or its error.

        When it returns, no thread writes to a file any more.
        """
        done: list[Synced] = []
        for start in range(0, len(batch), _AT_ONCE):
            done += self._sync_files(batch[start : start + _AT_ONCE])
        return done

    def _sync_files(self, batch: Sequence[CopyInstallation]) -> list[Synced]:
        files = [_complete(installation, start=self._is_slow) for installation in batch]
        done = [] if self._is_slow else self._probe(files[:_PROBED])
        rest = files[len(done) :]
        if len(rest) < _WORTH or not self._is_slow:
            return done + _sync_all(rest)
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - on slow disks only

            self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="fsync")
        share = -(-len(rest) // _THREADS)
        parts = [rest[start : start + share] for start in range(0, len(rest), share)]
        return done + list(chain.from_iterable(self._pool.map(_sync_all, parts)))

    def _probe(self, files: "Sequence[StagedFile | StorageError]") -> list[Synced]:
        """Sync a few files; the disk is slow if it is with the quickest of them."""
        done: list[Synced] = []
        quickest = inf
        for file in files:
            started = self._monotonic()
            done += _sync_all([file])
            quickest = min(quickest, self._monotonic() - started)
        self._is_slow = SLOW_SECONDS <= quickest < inf
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


def _sync_all(files: "Sequence[StagedFile | StorageError]") -> list[Synced]:
    done: list[Synced] = []
    for file in files:
        if isinstance(file, StorageError):
            done.append(file)
            continue
        try:
            done.append(file.sync())
        except OSError as error:
            # After a failed fsync the kernel may mark the lost pages clean: never retry it.
            file.discard()
            done.append(mirror_error(error, "making a copy durable"))
    return done
