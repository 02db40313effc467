"""Versions and patches as files, named by their sha-256: the ``VersionStore`` port.

``ab/abcdef…`` holds the content whose sha-256 begins with ``ab``. A file is written beside its
place, proved, synced and only then given its name: what has its name is whole. Files are never
hard links of the originals, for who writes an original in place would write the past.
"""

import errno
import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import UnsupportedOperation
from pathlib import Path
from typing import BinaryIO, Final

from resourcesync.errors import DiskFullError, StorageError
from resourcesync.ports.versions import Content

_CLONE: Final = 0x40049409
"""FICLONE of Linux: the same blocks for two files, until one of them is written."""
_CHUNK: Final = 1 << 18
_TEMPORARY: Final = ".tmp-"
_NAME: Final = re.compile(r"[0-9a-f]{64}")
_SHARD: Final = re.compile(r"[0-9a-f]{2}")
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class FolderVersions:
    """Contents below a folder that is for its owner alone; made when it is needed.

    One run writes at a time, and others may read meanwhile.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._unsettled: set[str] = set()
        self._number = 0

    def keep(self, stream: BinaryIO, sha256: str, length: int) -> bool:
        """Keep the bytes of a stream, unless they are kept; return whether they are these bytes.

        Where the file system can, nothing is copied: both files share their blocks until one is
        written.

        Raises:
            DiskFullError: No space is left. Nothing was kept.
            StorageError: They cannot be read or written. Nothing was kept.
        """
        if self.holds(sha256, length):
            return True
        shard = self._root / sha256[:2]
        self._number += 1
        temporary = shard / f"{_TEMPORARY}{os.getpid()}-{self._number}"
        try:
            shard.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                if not _written(temporary, stream, sha256, length):
                    return False
                temporary.replace(shard / sha256)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            raise _failed(shard / sha256, error) from error
        self._unsettled.add(sha256[:2])
        return True

    def holds(self, sha256: str, length: int) -> bool:
        """Whether a content is there, by its name and length."""
        try:
            return os.lstat(self.path(sha256)).st_size == length
        except OSError:
            return False

    def path(self, sha256: str) -> Path:
        """Return where a content is, or would be."""
        if _NAME.fullmatch(sha256) is None:
            raise StorageError(f"{sha256[:80]!r} is no sha-256")
        return self._root / sha256[:2] / sha256

    def open(self, sha256: str) -> BinaryIO | None:
        """Open a content; ``None`` when it is not there.

        Raises:
            StorageError: It is there, but cannot be read.
        """
        try:
            return os.fdopen(os.open(self.path(sha256), os.O_RDONLY | os.O_NOFOLLOW), "rb")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(self.path(sha256), error) from error

    def settle(self) -> None:
        """Make durable what was kept so far.

        Raises:
            StorageError: The disk refuses.
        """
        folders = [self._root / shard for shard in sorted(self._unsettled)]
        try:
            for folder in (*folders, self._root, self._root.parent) if folders else ():
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise _failed(self._root, error) from error
        self._unsettled.clear()

    def remove(self, contents: Iterable[Content]) -> None:
        """Remove contents; it is no error when they are not there.

        Raises:
            StorageError: One cannot be removed.
        """
        for sha256, _ in contents:
            try:
                self.path(sha256).unlink(missing_ok=True)
            except OSError as error:
                raise _failed(self.path(sha256), error) from error

    def sweep(self, is_needed: Callable[[str], bool], before: int) -> int:
        """Remove what nothing needs and has been there since before a moment.

        Args:
            is_needed: Tells whether a content is still somebody's.
            before: The moment, in microseconds.

        Raises:
            StorageError: The folder cannot be read.
        """
        removed = 0
        try:
            shards = [it.path for it in os.scandir(self._root) if _SHARD.fullmatch(it.name)]
            for shard in sorted(shards):
                removed += _swept(Path(shard), is_needed, before * 1_000)
        except FileNotFoundError:
            return removed
        except OSError as error:
            raise _failed(self._root, error) from error
        return removed


def _swept(shard: Path, is_needed: Callable[[str], bool], before: int) -> int:
    removed = 0
    with os.scandir(shard) as entries:
        for entry in entries:
            is_ours = _NAME.fullmatch(entry.name) or entry.name.startswith(_TEMPORARY)
            if not is_ours or not entry.is_file(follow_symlinks=False) or is_needed(entry.name):
                continue
            if entry.stat(follow_symlinks=False).st_ctime_ns < before:
                Path(entry.path).unlink(missing_ok=True)
                removed += 1
    return removed


def _written(temporary: Path, stream: BinaryIO, sha256: str, length: int) -> bool:
    """Write the bytes of a stream, durably; return whether they are what was meant."""
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    descriptor = os.open(temporary, flags, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as target:
        running, count = hashlib.sha256(), 0
        source, is_copied = (target, True) if _cloned(descriptor, stream) else (stream, False)
        while count <= length and (chunk := source.read(_CHUNK)):
            running.update(chunk)
            count += len(chunk)
            if not is_copied:
                _write_all(descriptor, chunk)
        if count != length or running.hexdigest() != sha256:
            return False
        os.fsync(descriptor)
    return True


def _write_all(descriptor: int, chunk: bytes) -> None:
    left = memoryview(chunk)
    while left:
        left = left[os.write(descriptor, left) :]


def _cloned(descriptor: int, stream: BinaryIO) -> bool:
    """Let a file share the blocks of another; return whether the file system does that."""
    with suppress(OSError, UnsupportedOperation, AttributeError):
        fcntl.ioctl(descriptor, _CLONE, stream.fileno())
        return True
    return False


def _failed(path: Path, error: OSError) -> StorageError:
    kept = (("kept", "what was published before"),)
    if error.errno in _FULL:
        return DiskFullError(f"no space left for {path}: {error.strerror}", evidence=kept)
    return StorageError(f"{path}: {error.strerror}", evidence=kept)
