"""Folders of the mirror, opened by descriptor and walked without following a link.

The read-only inspection of a mirror's files shares one chain of open folders among many files.
"""

import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from resourcesync.adapters.mirror.own_folder import mirror_error
from resourcesync.errors import StorageError
from resourcesync.model.digests import ALGORITHMS, Digest, new_hashers, parse_digests
from resourcesync.own_files import FILE, FOLDER, is_regular, regular_status, sync_folder
from resourcesync.ports import CopyContent, copy_path_error, is_copy_path

MAX_OPEN: Final = 288
"""The most folders that are open: those of a group of 256 copies, and some above them."""
_IN_THE_WAY: Final = frozenset({errno.ENOTDIR, errno.ELOOP})


class OpenFolders:
    """The folders of one batch of work, each opened once, closed together."""

    def __init__(self, root: int, *, at_once: bool = False) -> None:
        self._root = root
        self._at_once = at_once
        self._descriptors: dict[str, int] = {}
        self._changed: set[str] = set()
        self._allowed: set[str] = set()

    def locate(self, path: str, *, create: bool) -> tuple[int, str]:
        """Return the same as ``parent``, for a path where a copy may be."""
        folder, _, leaf = path.rpartition("/")
        if not is_copy_path(leaf if folder in self._allowed else path):
            raise copy_path_error(path)
        self._allowed.add(folder)
        descriptor = self._open(folder, create=create)
        if create:
            self._changed.add(folder)
        return descriptor, leaf

    def parent(self, path: str, *, create: bool) -> tuple[int, str]:
        """Return the descriptor of the folder that ``path`` is in, and the last part of it."""
        folder, _, leaf = path.rpartition("/")
        return self._open(folder, create=create), leaf

    def _open(self, folder: str, *, create: bool) -> int:
        if not folder:
            return self._root
        held = self._descriptors.get(folder)
        if held is not None:
            return held
        above, _, name = folder.rpartition("/")
        parent = self._open(above, create=create)
        if len(self._descriptors) >= MAX_OPEN:
            for unused in [f for f in self._descriptors if not f"{above}/".startswith(f"{f}/")]:
                if unused in self._changed:
                    sync_folder(self._descriptors[unused])
                    self._changed.discard(unused)
                os.close(self._descriptors.pop(unused))
            parent = self._open(above, create=create)
        self._descriptors[folder] = opened = self._open_child(parent, above, name, create=create)
        return opened

    def _open_child(self, parent: int, above: str, name: str, *, create: bool) -> int:
        try:
            return os.open(name, FOLDER, dir_fd=parent)
        except FileNotFoundError:
            if not create:
                raise
        except OSError as error:
            if error.errno in _IN_THE_WAY:
                raise StorageError(
                    "something that is no folder is in the way of a copy",
                    evidence=(("path", f"{above}/{name}".lstrip("/")), ("kept", "it is unchanged")),
                    hint="move it away, then try again",
                    code="path-in-the-way",
                ) from error
            raise
        with suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=parent)
        if self._at_once:
            sync_folder(parent)
        else:
            self._changed.add(above)
        return os.open(name, FOLDER, dir_fd=parent)

    def mark_changed(self, path: str) -> None:
        """Record that a name in the folder of ``path`` was added, removed or replaced."""
        self._changed.add(path.rpartition("/")[0])

    def sync(self, together: Callable[[int], bool] = lambda _: False) -> None:
        """Make all changed folders durable: ``together``, or one after the other if it cannot."""
        changed = () if together(len(self._changed)) else sorted(self._changed, reverse=True)
        for folder in changed:
            try:
                sync_folder(self._descriptors.get(folder, self._root))
            except OSError as error:
                raise mirror_error(error, "making a folder durable") from error
        self._changed.clear()

    def close(self) -> None:
        """Close all folders."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()


CONSTRUCTORS: Final = {name: getattr(hashlib, name.replace("-", "")) for name in ALGORITHMS}
CAN_ADVISE: Final = hasattr(os, "posix_fadvise")
_PIECE: Final = 1 << 20
_READ: Final = 1 << 18
"""Bytes to read and hash at a time: more do not fit into the processor's cache."""
# A socket cannot even be opened: ENXIO. EINVAL: it is no file.
_MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EINVAL})


class FolderCopyInspector:
    """An inspector of files; a folder is opened once, so one moved meanwhile is as it was."""

    def __init__(self, root: int) -> None:
        self._folders = OpenFolders(root)

    def close(self) -> None:
        """Close the folders."""
        self._folders.close()

    def signature(self, path: str) -> str | None:
        """Return the stat signature of the copy at ``path``, or ``None`` when there is none."""
        try:
            folder, leaf = self._folders.locate(path, create=False)
            info = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
        except StorageError:
            return None
        except OSError as error:
            if error.errno in _MISSING:
                return None
            raise mirror_error(error, f"looking at {path}") from error
        return signature_of(info) if is_regular(info) else None

    def digest(self, path: str, algorithms: Sequence[str]) -> tuple[int, tuple[Digest, ...]] | None:
        """Read a copy; return its length in bytes and its digests, ``None`` when there is none."""
        found = next(self.digest_all([(path, algorithms)]))
        if isinstance(found, StorageError):
            raise found
        return None if found is None else (found.length, parse_digests(found.digests))

    def digest_all(
        self, wanted: Sequence[tuple[str, Sequence[str]]]
    ) -> Iterator[CopyContent | StorageError | None]:
        """Read a few dozen files, as `CopyInspector.digest_all` describes."""
        files: list[_Opened | StorageError | None] = []
        try:
            files.extend(self._open_ahead(path) for path, _ in wanted)
            for number, (path, algorithms) in enumerate(wanted):
                file, files[number] = files[number], None
                yield _content_of(file, path, algorithms) if isinstance(file, tuple) else file
        finally:
            for file in files:
                if isinstance(file, tuple):
                    os.close(file[0])

    def _open_ahead(self, path: str) -> "_Opened | StorageError | None":
        try:
            file = self._open(path)
        except StorageError as error:
            return error
        if file is not None and CAN_ADVISE:
            try:  # noqa: SIM105 - once for each file
                os.posix_fadvise(file[0], 0, _PIECE, os.POSIX_FADV_WILLNEED)
            except OSError:
                pass  # it is advice: not every file system takes it
        return file

    def _open(self, path: str) -> "_Opened | None":
        try:
            folder, leaf = self._folders.locate(path, create=False)
            file = os.open(leaf, FILE, dir_fd=folder)
            return file, regular_status(file)
        except StorageError:
            return None
        except OSError as error:
            if error.errno in _MISSING:
                return None
            raise mirror_error(error, f"reading {path}") from error


_Opened = tuple[int, os.stat_result]
"""A descriptor, and the status before the reading: one that is outdated is of no content."""


def _content_of(copy: _Opened, path: str, algorithms: Sequence[str]) -> CopyContent | StorageError:
    file, status = copy
    try:
        return CopyContent(*content_of(file, algorithms, status.st_size), signature_of(status))
    except OSError as error:
        return mirror_error(error, f"reading {path}")
    finally:
        os.close(file)


def signature_of(info: os.stat_result) -> str:
    """Return a text that differs for another or an edited file, without reading it."""
    return f"{info.st_size}:{info.st_mtime_ns}:{info.st_ino}"


def content_of(file: int, algorithms: Sequence[str], expected: int = -1) -> tuple[int, str]:
    """Read an open file from its start; return its length, and its digests as a text."""
    size = expected + 1 if 0 <= expected < _READ else _READ  # room for one byte more
    chunk = os.pread(file, size, 0)
    if len(chunk) == expected and len(algorithms) == 1:
        name = algorithms[0]
        hasher = CONSTRUCTORS[name](chunk, usedforsecurity=False)
        return expected, f"{name}:{hasher.hexdigest()}"
    hashers = new_hashers(algorithms)
    length = 0
    while chunk:
        length += len(chunk)
        for hasher in hashers.values():
            hasher.update(chunk)
        chunk = os.pread(file, _READ, length)
    return length, " ".join(f"{name}:{hasher.hexdigest()}" for name, hasher in hashers.items())
