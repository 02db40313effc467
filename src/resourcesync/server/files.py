"""Files of one folder, opened name by name, so that no link and no race leads out of it.

Paths of requests become names by bytes, and are never joined. Starlette's ``StaticFiles`` resolves
links before it opens, serves hidden files, and loses names that are no UTF-8.
"""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Self, final
from urllib.parse import unquote_to_bytes

from resourcesync.errors import StorageError
from resourcesync.own_files import FILE, FOLDER, ROOT, is_regular, link_target, open_below

Names = tuple[bytes, ...]
"""The names from a folder down to a file, decoded, none of them special."""

_AUTHORITY: Final = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)
_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_REFUSED: Final = re.compile(rb"[/\x00]")

FORBIDDEN: Final = "forbidden"
"""The code of the error for a file that this process may not read."""

_MAX_HOPS: Final = 8
_NO_WAIT: Final = getattr(os, "RWF_NOWAIT", 0)

_IS_LINK: Final = frozenset({errno.ELOOP, errno.EMLINK})
_IS_ABSENT: Final = _IS_LINK | {
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ENXIO,
    errno.ENODEV,
    errno.EINVAL,
    errno.EILSEQ,
}


class FileState(NamedTuple):
    """Metadata of a file from ``stat``: equal states mean equal bytes, once they are stable.

    A named tuple, since every request makes two.
    """

    size: int
    modified_ns: int  # since 1970; anybody may set it
    changed_ns: int  # of the last change of anything; only the system sets it
    inode: int

    @classmethod
    def from_stat(cls, status: os.stat_result) -> Self:
        """Return the state that ``status`` describes."""
        # Not by the constructor, which is Python code: every request needs a state.
        figures = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        return tuple.__new__(cls, figures)

    @classmethod
    def at(cls, path: str) -> Self | None:
        """Return the state of the file at a path; ``None`` if there is none."""
        try:
            return cls.from_stat(os.stat(path))  # noqa: PTH116 - half as long
        except OSError:
            return None


@final
class OpenFile:
    """One regular file, open for reading; ``found`` is its state when it was opened."""

    __slots__ = ("_descriptor", "found")

    def __init__(self, descriptor: int, found: FileState) -> None:
        self._descriptor = descriptor
        self.found = found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def duplicate(self) -> "OpenFile":
        """Return a second handle of the same file, which lives longer than this one."""
        try:
            return OpenFile(os.dup(self._descriptor), self.found)
        except OSError as error:
            raise _unreadable(error) from error

    def stat(self) -> FileState:
        """Return the file's present state."""
        return FileState.from_stat(os.fstat(self._descriptor))

    def is_unchanged(self, since: FileState) -> bool:
        """True if the bytes are still those of a state.

        New permissions or a new name change ``changed_ns``, and leave the bytes unchanged.
        """
        now = os.fstat(self._descriptor)
        return now.st_size == since.size and now.st_mtime_ns == since.modified_ns

    def read(self, start: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``start``; fewer only where the file ends."""
        try:
            found = os.pread(self._descriptor, length, start)
            while len(found) < length:
                part = os.pread(self._descriptor, length - len(found), start + len(found))
                if not part:
                    break
                found += part
        except OSError as error:
            raise StorageError(f"a served file cannot be read: {error.strerror}") from error
        return found

    def read_now(self, start: int, length: int) -> bytes | None:
        """Return the result of ``read`` if it is in the system's cache, else ``None``.

        Where the system cannot tell, the result is ``None``.
        """
        if not _NO_WAIT:
            return None
        buffer = bytearray(length)
        try:
            got = os.preadv(self._descriptor, (buffer,), start, _NO_WAIT)
        except OSError:
            return None
        return bytes(buffer) if got == length else None


@final
class ServedFolder:
    """A folder whose files may be served: regular files below it, and nothing else.

    The folder itself is opened again for each file, so it may be swapped for a newer one, and may
    be reached by a link: the operator named it. Below it, folders that are links are not entered; a
    file that is a link is served when it leads, through at most 8 links, to a file below the same
    folder that is not hidden.
    """

    __slots__ = ("_closed", "_is_open", "_path")

    def __init__(
        self, path: Path, *, closed: Names = (), is_open: Callable[[Names], bool] = lambda _: True
    ) -> None:
        self._is_open = is_open
        self._path = os.fsencode(path.absolute())
        self._closed = tuple(name.lower() for name in closed)

    def open(self, names: Names) -> OpenFile | None:
        """Open the file at ``names``; ``None`` when there is no such regular file."""
        opened = self._open_directly(names)
        if opened is not None:
            return opened
        try:
            root = os.open(self._path, ROOT)
            try:
                return self._open_below(root, names)
            finally:
                os.close(root)
        except OSError as error:
            if error.errno in _IS_ABSENT:
                return None
            raise _unreadable(error) from error

    def _open_directly(self, names: Names) -> OpenFile | None:
        """Open a file at most one folder down, by few calls; ``None``: ``open`` finds out."""
        if not 1 <= len(names) <= 2 or self._is_closed(names):  # noqa: PLR2004 - as described
            return None
        first = b"%s/%s" % (self._path, names[0])
        try:
            if len(names) == 1:
                return _regular(os.open(first, FILE))
            folder = os.open(first, FOLDER)
            try:
                return _regular(os.open(names[1], FILE, dir_fd=folder))
            finally:
                os.close(folder)
        except OSError:
            return None

    def _open_below(self, root: int, names: Names) -> OpenFile | None:
        for _ in range(_MAX_HOPS + 1):
            if not names or self._is_closed(names):
                return None
            found = _open_real(root, names)
            if not isinstance(found, bytes):
                return found
            roots = map(os.fsdecode, (self._path, os.path.realpath(self._path)))
            folder = tuple(map(os.fsdecode, names[:-1]))
            target = tuple(map(os.fsencode, link_target(folder, os.fsdecode(found), roots)))
            if not target or is_hidden(target) or not self._is_open(target):
                return None
            names = target
        return None

    def _is_closed(self, names: Names) -> bool:
        # Without regard to case, for case-insensitive file systems.
        closed = self._closed
        if not closed or names[0].lower() != closed[0]:
            return False
        return tuple(name.lower() for name in names[: len(closed)]) == closed


def _open_real(root: int, names: Names) -> OpenFile | bytes | None:
    folder = open_below(root, names[:-1])
    try:
        try:
            descriptor = os.open(names[-1], FILE, dir_fd=folder)
        except OSError as error:
            if error.errno not in _IS_LINK:
                raise
            return os.readlink(names[-1], dir_fd=folder)
    finally:
        os.close(folder)
    return _regular(descriptor)


def _regular(descriptor: int) -> OpenFile | None:
    status = os.fstat(descriptor)
    if is_regular(status):
        return OpenFile(descriptor, FileState.from_stat(status))
    os.close(descriptor)
    return None


def _unreadable(error: OSError) -> StorageError:
    code = FORBIDDEN if error.errno in {errno.EACCES, errno.EPERM} else ""
    return StorageError(f"a served file cannot be opened: {error.strerror}", code=code)


def read_path(raw: bytes) -> Names | None:
    """Return the names in the raw path of a request; ``None`` when it is invalid.

    Each part is percent-decoded once, after the split, so an encoded slash never makes a new part.
    Refused are empty and dot parts, encoded slashes, NUL, and invalid escapes. A backslash is an
    ordinary character in a name that is never joined to a path, and such files are listed. A target
    in absolute form loses its scheme and host: they are ignored.
    """
    if not raw.startswith(b"/"):
        raw = without_authority(raw)
    if raw == b"/":
        return ()
    if not raw.startswith(b"/"):
        return None
    names = tuple(raw[1:].split(b"/"))
    if b"%" in raw:
        if _BAD_ESCAPE.search(raw) is not None:
            return None
        names = tuple(map(unquote_to_bytes, names))
    return names if all(map(is_plain, names)) else None


def without_authority(target: bytes) -> bytes:
    """Return the path of a target in absolute form (RFC 9112 §3.2.2); another one as it is."""
    authority = _AUTHORITY.match(target)
    return target if authority is None else target[authority.end() :] or b"/"


def is_plain(name: bytes) -> bool:
    """True if ``name`` is the name of an entry, and no way to another folder."""
    return name not in {b"", b".", b".."} and _REFUSED.search(name) is None


def is_hidden(names: Names) -> bool:
    """True if a name is never published: a dot file or folder, or a ``~`` backup."""
    return any(name.startswith(b".") or name.endswith(b"~") for name in names)
