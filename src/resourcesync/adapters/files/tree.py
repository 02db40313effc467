"""The ``Originals`` port on a folder's files.

All digests of a file are computed in one read.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

from resourcesync.adapters.files.folders import (
    GONE,
    FolderStack,
    LinkNotFollowedError,
    ScannedFolder,
    listing_error,
    open_below,
    open_root,
    resolve_link,
    sorted_keys,
)
from resourcesync.adapters.files.names import (
    MAX_URI,
    media_type,
    to_name,
    to_names,
    to_segment,
    uri_fault,
)
from resourcesync.adapters.files.selection import (
    LEFT_OUT,
    FileSelection,
    PathFilter,
    RereadSchedule,
)
from resourcesync.errors import ConfigurationError, OriginalChangedError, StorageError
from resourcesync.model.digests import ALGORITHMS, Digest
from resourcesync.model.resources import Resource, plain_resource
from resourcesync.model.timestamps import EPOCH, to_microseconds
from resourcesync.ports import Clock
from resourcesync.ports.catalogue import Omission, Original

_CHUNK: Final = 262_144
_digest: Final[Callable[[tuple[str, str]], Digest]] = partial(tuple.__new__, Digest)


class Digester:
    """A reader of files that computes their digests.

    Args:
        algorithms: Digest algorithms, the strongest first; at least one.

    Raises:
        ConfigurationError: One of them cannot be published.
    """

    def __init__(self, algorithms: Sequence[str]) -> None:
        self._hashes = tuple((name, _hash_constructor(name)) for name in algorithms or ("",))
        self._first, self._start = self._hashes[0]
        self._is_alone = len(self._hashes) == 1

    def read(self, descriptor: int, size: int) -> tuple[int, tuple[Digest, ...]]:
        """Read a file of ``size`` bytes to its end; return the bytes read and their digests.

        A file that grows meanwhile is not read further: it is enough to notice the growth.
        """
        chunk = os.read(descriptor, min(size + 1, _CHUNK))
        length = len(chunk)
        if self._is_alone and length >= size:  # nearly every file
            return length, (_digest((self._first, self._start(chunk).hexdigest())),)
        hashes = [(name, new(chunk)) for name, new in self._hashes]
        while chunk and length < size:
            chunk = os.read(descriptor, _CHUNK)
            length += len(chunk)
            for _, running in hashes:
                running.update(chunk)
        return length, tuple([Digest(name, running.hexdigest()) for name, running in hashes])


def _hash_constructor(algorithm: str) -> Callable[[bytes], Any]:
    """Return the constructor of a running digest; its type is private to ``hashlib``."""
    if algorithm not in ALGORITHMS:
        raise ConfigurationError(
            f"{algorithm!r} is not a hash algorithm that can be published",
            evidence=(("known", ", ".join(ALGORITHMS)),),
        )
    return partial(getattr(hashlib, algorithm.replace("-", "")), usedforsecurity=False)


FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
"""Flags to open a file that may have become anything by now."""

FileOpener = Callable[[str], BinaryIO | None]


class SiblingCache:
    """An opener of files by URI, fast for files in the same folder; for one thread.

    Special cases take the slow path: links, invalid names, missing files.

    Args:
        root: A descriptor of the tree's root; the caller closes it.
        base: The URI of the root.
        judge: The filter of what is published.
        slowly: Opens any file, by the slow path.
    """

    def __init__(self, root: int, base: str, judge: PathFilter, slowly: FileOpener) -> None:
        self._root = root
        self._base = base
        self._judge = judge
        self._slowly = slowly
        self._folder: str | None = None
        self._path, self._descriptor = "", -1

    def close(self) -> None:
        """Close the descriptor."""
        if self._folder is not None:
            os.close(self._descriptor)
            self._folder = None

    def __call__(self, uri: str) -> BinaryIO | None:
        """Open a published file for reading; ``None`` when the URI stands for none.

        Raises:
            StorageError: It is there, but cannot be read.
        """
        folder, _, segment = uri.rpartition("/")
        if folder != self._folder and not self._open_folder(folder):
            return self._slowly(uri)
        name = to_name(segment)
        if name is None or self._judge.exclusion_of_file(self._path, name) is not None:
            return None
        try:
            descriptor = os.open(name, FILE_FLAGS, dir_fd=self._descriptor)
        except OSError:
            return self._slowly(uri)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.fdopen(descriptor, "rb", buffering=0)
        os.close(descriptor)
        return None

    def _open_folder(self, folder: str) -> bool:
        """Open a folder instead of the last one; return whether it is there and published."""
        self.close()
        if not f"{folder}/".startswith(self._base):
            return False
        path = folder[len(self._base) :]
        names = to_names(path) if path else ()
        if names is None or self._judge.exclusion_of_target(names) is not None:
            return False
        try:
            self._descriptor = open_below(self._root, names)
        except OSError:
            return False
        self._folder = folder
        self._path = "".join(name + "/" for name in names)
        return True


MAX_OMISSIONS: Final = 10_000
"""The most omissions of one scan that are stored with their reasons."""
_TRIES: Final = 3
_SECOND: Final = 1_000_000_000
_FRESH: Final = 20_000_000  # the coarsest tick of a kernel's file times, doubled
_FRESH_WHOLE: Final = 2 * _SECOND  # the coarsest file times there are (FAT)
_KIND: Final = 0o170000
# Each scan makes one for each file, so it is made without Python code.
_original: Final[Callable[[tuple[str, str, int, datetime, str]], Original]] = partial(
    tuple.__new__, Original
)
_LAST_SECOND: Final = 253_402_300_799  # 9999-12-31T23:59:59Z


class FileTreeOriginals:
    """The files below a root, each published at the base URI plus its percent-encoded path.

    All access is by descriptor from the root, so no link that appears meanwhile can lead out of
    the tree. Links to files inside the tree are followed, links to folders never.

    One scan at a time; ``open`` and ``locate`` may be called from other threads meanwhile.

    Args:
        root: The folder.
        base_uri: The URI of the root; a ``/`` is added when it does not end with one.
        clock: The clock; files changed just now are not trusted by their times.
        selection: The files to publish; by default all but hidden files and backups.
        algorithms: Digests to compute, the strongest first.
        rereading: The schedule of files that are read again though they look unchanged.
    """

    def __init__(
        self,
        root: Path,
        base_uri: str,
        *,
        clock: Clock,
        selection: FileSelection | None = None,
        algorithms: Sequence[str] = ("sha-256",),
        rereading: RereadSchedule | None = None,
    ) -> None:
        self._root = root
        self._base = base_uri if base_uri.endswith("/") else base_uri + "/"
        self._clock = clock
        self._judge = PathFilter(selection or FileSelection())
        self._digester = Digester(algorithms)
        self._omissions: list[Omission] = []
        self._is_due = (rereading or RereadSchedule()).is_due
        self._current: tuple[str, int] | None = None
        self._second, self._lastmod = 0, EPOCH

    def omissions(self) -> Sequence[Omission]:
        """Return what the last scan omitted, other than on purpose; the first 10,000."""
        return tuple(self._omissions)

    def scan(self) -> Iterator[Original]:
        """Yield every file that is published, in rising URI order; nothing is read.

        The media type comes from ``measure``.

        Memory and descriptors stay bounded, however deep or wide the tree is.

        Raises:
            StorageError: A folder cannot be listed. What was yielded so far is not the tree.
        """
        self._omissions = []
        root = ScannedFolder(open_root(self._root), (), self._base)
        descent = FolderStack(root)
        root.keys = sorted_keys(lambda: self._keys(root))
        try:
            while descent:
                yield from self._scan_files(descent)
        finally:
            self._current = None
            descent.close()

    def _scan_files(self, descent: FolderStack) -> Iterator[Original]:
        """Yield the files of the deepest folder up to the next folder in it, which is entered.

        This runs for every file of every scan, so the common case is inlined.
        """
        folder, descriptor = descent.deepest()
        self._current = (folder.uri, descriptor)
        looked = self._now()
        old, is_due = looked - _FRESH_WHOLE, self._is_due
        for key in folder.keys:
            if key[-1] == "/":
                if self._enter(descent, key):
                    return
                continue
            found = self._stat(folder, descriptor, key)
            if found is not None:
                modified, changed = found.st_mtime_ns, found.st_ctime_ns
                is_new = modified > old or changed > old
                if (is_new and self._is_fresh(found, looked)) or is_due(found.st_ino, modified):
                    fingerprint = ""
                else:
                    fingerprint = f"{found.st_size}:{modified}:{found.st_ino}:{changed}"
                lastmod = self._last_modified(found)
                yield _original((folder.uri + key, fingerprint, found.st_size, lastmod, ""))
        descent.leave()

    def _keys(self, folder: ScannedFolder) -> Iterator[str]:
        """Yield the names of a folder as URI segments, those of folders with a ``/``, unordered."""
        assert folder.descriptor is not None
        path, judge, room = folder.path, self._judge, MAX_URI - len(folder.uri)
        try:
            with os.scandir(folder.descriptor) as entries:
                for entry in entries:
                    name = entry.name
                    key = to_segment(name)
                    if entry.is_dir(follow_symlinks=False):
                        key += "/"
                        reason = judge.exclusion_of_folder(path, name)
                    else:
                        reason = judge.exclusion_of_file(path, name)
                    if reason is None and (len(key) > room or "%0" in key):
                        reason = uri_fault(key, room)
                    if reason is None:
                        yield key
                    else:
                        self._omit(path + name, reason)
        except OSError as error:
            raise listing_error(path, error) from error

    def _enter(self, descent: FolderStack, key: str) -> bool:
        """Enter a folder; return whether it is still there and on the same device."""
        folder, descriptor = descent.deepest()
        name = to_name(key[:-1])
        assert name is not None
        try:
            below = open_below(descriptor, (name,))
        except OSError as error:
            if error.errno in GONE:
                return False
            raise listing_error(folder.path + name, error) from error
        child = ScannedFolder(below, (*folder.names, name), folder.uri + key)
        if os.fstat(below).st_dev != descent.device:
            child.close()
            self._omit(folder.path + name, "a folder on another file system")
            return False
        child.keys = sorted_keys(lambda: self._keys(child))
        descent.enter(child)
        return True

    def _stat(self, folder: ScannedFolder, descriptor: int, key: str) -> os.stat_result | None:
        """Return the status of a file, or ``None`` if it is gone or not published."""
        name = key if "%" not in key else to_name(key)
        assert name is not None
        try:
            found = os.lstat(name, dir_fd=descriptor)
            if found[stat.ST_MODE] & _KIND != stat.S_IFREG:
                found = self._stat_link_target((*folder.names, name), found)
        except LinkNotFollowedError as reason:
            self._omit(folder.path + name, str(reason))
            return None
        except OSError as error:
            if error.errno in GONE:
                return None
            raise listing_error(folder.path + name, error) from error
        return found

    def _stat_link_target(self, names: tuple[str, ...], found: os.stat_result) -> os.stat_result:
        """Return the status of a link's target; ``found`` is not a regular file itself."""
        if not stat.S_ISLNK(found.st_mode):
            raise LinkNotFollowedError("not a regular file: a socket, a pipe or a device")
        with self._opened_root() as root:
            names = self._resolve(root, names)
            folder = open_below(root, names[:-1])
            try:
                found = os.stat(names[-1], dir_fd=folder, follow_symlinks=False)
            finally:
                os.close(folder)
        if not stat.S_ISREG(found.st_mode):
            raise LinkNotFollowedError("a symbolic link to a directory (not followed)")
        return found

    def _resolve(self, root: int, names: tuple[str, ...]) -> tuple[str, ...]:
        names = resolve_link(root, os.path.realpath(self._root), names)
        if self._judge.exclusion_of_target(names) is not None:
            raise LinkNotFollowedError("a symbolic link to a file that is not published")
        return names

    def _omit(self, name: str, reason: str) -> None:
        if reason != LEFT_OUT and len(self._omissions) < MAX_OMISSIONS:
            self._omissions.append(Omission(name=name, reason=reason))

    def measure(self, original: Original) -> tuple[Resource, str]:
        """Read a file once; return the resource with its digests, and its fingerprint.

        Length, digests, times and fingerprint are all of the same bytes: the status is read before
        and after the bytes, and if it changed the file is read again, up to three times in all.

        Raises:
            OriginalChangedError: It is gone, or was being written all the time.
            StorageError: It cannot be read (code ``unreadable-file``).
        """
        seen, length = original.fingerprint, original.length
        for _ in range(_TRIES):
            looked = 0 if seen else self._now()
            descriptor = self._open(original.uri, self._open_sibling)
            try:
                if not seen:
                    seen, length = self._check_regular(original.uri, descriptor)
                count, digests = self._digester.read(descriptor, length)
                found = os.fstat(descriptor)
            except OSError as error:
                raise _unreadable(original.uri, error) from error
            finally:
                os.close(descriptor)
            if seen == _signature(found) and count == found.st_size:
                uri, kind = original.uri, media_type(original.uri)
                if not looked:  # unchanged since the scan, which trusted it: not fresh
                    return plain_resource(uri, original.lastmod, count, digests, kind), seen
                lastmod = self._last_modified(found)
                resource = plain_resource(uri, lastmod, count, digests, kind)
                return resource, self._fingerprint(found, looked)
            seen = ""
        raise OriginalChangedError(f"{original.uri} changed each time it was read")

    def locate(self, uri: str) -> str | None:
        """Return the path below the root that a URI stands for, as far as that is published.

        The disk is not read: there may be no such file.
        """
        names = self._names(uri)
        if names is None or self._judge.exclusion_of_path(names) is not None:
            return None
        return "/".join(names)

    def open(self, uri: str) -> BinaryIO | None:
        """Open a published file for reading; ``None`` when the URI stands for none.

        Raises:
            StorageError: It is there, but cannot be read.
        """
        if self.locate(uri) is None:
            return None
        try:
            descriptor = self._open(uri, self._open_from_root)
        except OriginalChangedError:
            return None
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
        return None

    @contextmanager
    def reading(self) -> Iterator[FileOpener]:
        """Return an opener like ``open`` for one thread, fast for files in the same folder."""
        with self._opened_root() as root:
            nearby = SiblingCache(root, self._base, self._judge, self.open)
            try:
                yield nearby
            finally:
                nearby.close()

    def _names(self, uri: str) -> tuple[str, ...] | None:
        return to_names(uri.removeprefix(self._base)) if uri.startswith(self._base) else None

    def _open(self, uri: str, opening: Callable[[str], int]) -> int:
        """Return a descriptor of the file at a URI, which may not be a file any more."""
        try:
            return opening(uri)
        except LinkNotFollowedError as error:
            raise OriginalChangedError(f"{uri} is {error} now") from error
        except OSError as error:
            if error.errno in GONE:
                raise OriginalChangedError(f"{uri} is no longer there") from error
            raise _unreadable(uri, error) from error

    def _check_regular(self, uri: str, descriptor: int) -> tuple[str, int]:
        """Return the signature and the length of an open file, which must be one."""
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OriginalChangedError(f"{uri} is no longer a file")
        return _signature(found), found.st_size

    def _open_sibling(self, uri: str) -> int:
        """Open a file, fast if it is in the folder that this thread's scan is in."""
        if self._current is not None:
            folder, descriptor = self._current
            segment = uri.removeprefix(folder)
            name = to_name(segment) if len(segment) < len(uri) else None
            if name is not None:
                try:
                    return os.open(name, FILE_FLAGS, dir_fd=descriptor)
                except OSError as error:
                    if error.errno != errno.ELOOP:
                        raise
        return self._open_from_root(uri)

    def _open_from_root(self, uri: str) -> int:
        names = self._names(uri)
        if names is None:
            raise OriginalChangedError(f"{uri} is not a file of this tree")
        with self._opened_root() as root:
            try:
                return _open_file(root, names)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
            return _open_file(root, self._resolve(root, names))

    def _now(self) -> int:
        return to_microseconds(self._clock.now()) * 1_000

    def _last_modified(self, found: os.stat_result) -> datetime:
        second = int(found[stat.ST_MTIME])  # whole seconds, rounded down
        if second != self._second:  # files written together share it, and it is slow to compute
            self._second = second
            self._lastmod = EPOCH + timedelta(0, min(max(second, 0), _LAST_SECOND))
        return self._lastmod

    def _fingerprint(self, found: os.stat_result, looked: int) -> str:
        """Return a text that changes with the bytes; empty if a later write might not change it.

        Args:
            found: The status of the file.
            looked: A time before that, in nanoseconds; 0 if unknown.
        """
        return "" if self._is_fresh(found, looked) else _signature(found)

    def _is_fresh(self, found: os.stat_result, looked: int) -> bool:
        latest = self._now() + _FRESH_WHOLE
        for time in (found.st_mtime_ns, found.st_ctime_ns):
            margin = _FRESH_WHOLE if time % _SECOND == 0 else _FRESH
            # A file dated well into the future is not fresh: writing to it changes that date.
            if looked - margin <= time < latest:
                return True
        return False

    @contextmanager
    def _opened_root(self) -> Iterator[int]:
        root = open_root(self._root)
        try:
            yield root
        finally:
            os.close(root)


def _open_file(root: int, names: tuple[str, ...]) -> int:
    folder = open_below(root, names[:-1])
    try:
        return os.open(names[-1], FILE_FLAGS, dir_fd=folder)
    finally:
        os.close(folder)


def _signature(found: os.stat_result) -> str:
    # Writers can set the mtime back, as cp -p and rsync -t do, but never the ctime.
    return f"{found.st_size}:{found.st_mtime_ns}:{found.st_ino}:{found.st_ctime_ns}"


def _unreadable(uri: str, error: OSError) -> StorageError:
    return StorageError(
        f"{uri} cannot be read: {error.strerror}",
        hint="make the file readable, or exclude it",
        code="unreadable-file",
    )
