"""Look at the mirror's files without changing them: one chain of folders, held for many files."""

import errno
import os
from collections.abc import Iterator, Sequence
from typing import Final

from resourcesync.adapters.mirror.folders import OpenFolders
from resourcesync.adapters.mirror.staged import (
    digest_of,
    is_regular,
    signature_of,
    storage_error,
)
from resourcesync.errors import StorageError
from resourcesync.model.digests import Digest

READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PIECE: Final = 1 << 20
_MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


class FolderCopyInspector:
    """A look at files; each folder is opened once, so a folder moved meanwhile is seen as it was.

    Args:
        root: Descriptor of the mirror's root folder; it stays the caller's.
    """

    def __init__(self, root: int) -> None:
        self._folders = OpenFolders(root)

    def close(self) -> None:
        """Let go of the folders."""
        self._folders.close()

    def signature(self, path: str) -> str | None:
        """Return the stat signature of the copy at ``path``, or ``None`` when there is none.

        Raises:
            StorageError: The file system fails.
        """
        try:
            folder, leaf = self._folders.locate(path, create=False)
            info = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
        except StorageError:
            return None
        except OSError as error:
            if error.errno in _MISSING:
                return None
            raise storage_error(error, f"looking at {path}") from error
        return signature_of(info) if is_regular(info) else None

    def digest(self, path: str, algorithms: Sequence[str]) -> tuple[int, tuple[Digest, ...]] | None:
        """Read a copy; return its length in bytes and its digests, ``None`` when there is none.

        Raises:
            StorageError: The file cannot be read.
        """
        try:
            folder, leaf = self._folders.locate(path, create=False)
            file = os.open(leaf, READ_FLAGS, dir_fd=folder)
        except StorageError:
            return None
        except OSError as error:
            if error.errno in _MISSING:
                return None
            raise storage_error(error, f"reading {path}") from error
        try:
            info = os.fstat(file)
            return digest_of(file, algorithms, info.st_size) if is_regular(info) else None
        except OSError as error:
            raise storage_error(error, f"reading {path}") from error
        finally:
            os.close(file)

    def reading(self, path: str) -> Iterator[bytes] | None:
        """Open a copy and return its bytes, in pieces of 1 MiB; ``None`` when there is none.

        Whoever does not take all of them closes the iterator.

        Raises:
            StorageError: The file cannot be read; also while it is read.
        """
        try:
            folder, leaf = self._folders.locate(path, create=False)
            file = os.open(leaf, READ_FLAGS, dir_fd=folder)
        except StorageError:
            return None
        except OSError as error:
            if error.errno in _MISSING:
                return None
            raise storage_error(error, f"reading {path}") from error
        if not is_regular(os.fstat(file)):
            os.close(file)
            return None
        return _pieces(file, path)


def _pieces(file: int, path: str) -> Iterator[bytes]:
    try:
        while piece := os.read(file, _PIECE):
            yield piece
    except OSError as error:
        raise storage_error(error, f"reading {path}") from error
    finally:
        os.close(file)
