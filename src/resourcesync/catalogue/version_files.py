"""Versions and patches as files, named by their sha-256: the ``FolderVersions`` port.

``ab/abcdef…`` holds the content whose sha-256 begins with ``ab``. A file is written under a
temporary name, verified, synced and only then renamed: a file with its name is complete. Some
hundred files are synced together, since syncing the first writes most of the others too. Files are
never hard links of the originals: a program that writes an original in place would alter the past.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from io import UnsupportedOperation
from pathlib import Path
from typing import BinaryIO, Final

from resourcesync.catalogue.versions import ContentKey
from resourcesync.errors import StateError, StorageError, storage_error
from resourcesync.own_files import is_regular, open_file, open_folder, opened, sync_folder

_CLONE: Final = 0x40049409
"""FICLONE of Linux: the same blocks for two files, until one of them is written."""
_CHUNK: Final = 1 << 18
_BATCH: Final = 512
_TEMPORARY: Final = ".tmp-"
_NAME: Final = re.compile(r"[0-9a-f]{64}")
_SHARD: Final = re.compile(r"[0-9a-f]{2}")


class FolderVersions:
    """Contents below a folder that is for its owner alone; created on demand.

    One run writes at a time, and others may read meanwhile.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._waiting: dict[str, tuple[str, int]] = {}
        self._shards: set[str] = set()
        self._number = 0

    def store(self, stream: BinaryIO, sha256: str, length: int) -> bool:
        """Store the bytes of a stream, unless stored; return whether they match the digest.

        If the file system can, both files share their blocks, without a copy, until one is written.
        """
        if self.contains(sha256, length):
            return True
        shard = _shard_of(sha256)
        self._number += 1
        temporary = f"{_TEMPORARY}{os.getpid()}-{self._number}"
        try:
            with self._opened(shard, 0 if shard in self._shards else 0o700) as folder:
                self._shards.add(shard)
                if not _written(folder, temporary, stream, sha256, length):
                    return False
        except OSError as error:
            raise _failed(self._root / shard, error) from error
        self._waiting[sha256] = temporary, length
        if len(self._waiting) >= _BATCH:
            self.flush()
        return True

    def contains(self, sha256: str, length: int) -> bool:
        """True if a content is stored, by its name and length."""
        waiting = self._waiting.get(sha256)
        if waiting is not None:
            return waiting[1] == length
        try:
            with self._opened(_shard_of(sha256)) as folder:
                found = os.stat(sha256, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return False
        return is_regular(found) and found.st_size == length

    def _opened(self, shard: str, mode: int = 0) -> AbstractContextManager[int]:
        return opened(open_folder(self._root, mode, below=(shard,) if shard else ()))

    def open(self, sha256: str) -> BinaryIO | None:
        """Open a content; ``None`` when it is not there."""
        name, _ = self._waiting.get(sha256, (sha256, 0))
        try:
            with self._opened(_shard_of(sha256)) as folder:
                return os.fdopen(open_file(name, folder), "rb")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(self._root / name, error) from error

    def flush(self) -> None:
        """Make the stored files durable, and rename them."""
        if not self._waiting:
            return
        try:
            for sha256, (temporary, _) in self._waiting.items():
                with (
                    self._opened(sha256[:2]) as folder,
                    opened(open_file(temporary, folder, os.O_RDWR)) as file,
                ):
                    os.fsync(file)
            for sha256, (temporary, _) in self._waiting.items():
                with self._opened(sha256[:2]) as folder:
                    os.rename(temporary, sha256, src_dir_fd=folder, dst_dir_fd=folder)
            for shard in sorted({sha256[:2] for sha256 in self._waiting}):
                with self._opened(shard) as folder:
                    sync_folder(folder)
        except OSError as error:
            raise _failed(self._root, error) from error
        self._waiting.clear()

    def remove(self, contents: Iterable[ContentKey]) -> None:
        """Remove contents; missing ones are no error."""
        for sha256, _ in contents:
            name, _ = self._waiting.pop(sha256, (sha256, 0))
            try:
                with suppress(FileNotFoundError), self._opened(_shard_of(sha256)) as folder:
                    os.unlink(name, dir_fd=folder)
            except OSError as error:
                raise _failed(self._root / name, error) from error

    def sweep(self, is_needed: Callable[[str], bool], before: int) -> int:
        """Remove contents that are not needed and older than a moment."""
        removed = 0
        try:
            with self._opened("") as root:
                names = os.listdir(root)  # noqa: PTH208 - of a descriptor
                for shard in sorted(filter(_SHARD.fullmatch, names)):
                    with self._opened(shard) as folder:
                        removed += _swept(folder, is_needed, before * 1_000)
        except FileNotFoundError:
            return removed
        except OSError as error:
            raise _failed(self._root, error) from error
        return removed


def _swept(shard: int, is_needed: Callable[[str], bool], before: int) -> int:
    removed = 0
    with os.scandir(shard) as entries:
        for entry in entries:
            is_ours = _NAME.fullmatch(entry.name) or entry.name.startswith(_TEMPORARY)
            if not is_ours or not entry.is_file(follow_symlinks=False) or is_needed(entry.name):
                continue
            if entry.stat(follow_symlinks=False).st_ctime_ns < before:
                os.unlink(entry.name, dir_fd=shard)
                removed += 1
    return removed


def _shard_of(sha256: str) -> str:
    if _NAME.fullmatch(sha256) is None:
        raise StateError(f"{sha256[:80]!r} is not a sha-256")
    return sha256[:2]


def _written(folder: int, temporary: str, stream: BinaryIO, sha256: str, length: int) -> bool:
    descriptor = open_file(temporary, folder, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    is_it = False
    try:
        is_it = _copied(descriptor, stream, length) == sha256
    finally:
        os.close(descriptor)
        if not is_it:
            os.unlink(temporary, dir_fd=folder)
    return is_it


def _copied(descriptor: int, stream: BinaryIO, length: int) -> str:
    running, count, is_cloned = hashlib.sha256(), 0, _cloned(descriptor, stream)
    while count <= length:
        chunk = os.read(descriptor, _CHUNK) if is_cloned else stream.read(_CHUNK)
        if not chunk:
            break
        running.update(chunk)
        count += len(chunk)
        if not is_cloned:
            left = memoryview(chunk)
            while left:
                left = left[os.write(descriptor, left) :]
    return running.hexdigest() if count == length else ""


def _cloned(descriptor: int, stream: BinaryIO) -> bool:
    with suppress(OSError, UnsupportedOperation, AttributeError):
        fcntl.ioctl(descriptor, _CLONE, stream.fileno())
        return True
    return False


def _failed(path: Path, error: OSError) -> StorageError:
    return storage_error(error, f"using {path}", kept="what was published before")
