"""The ``Originals`` port on a folder's files.

All digests of a file are computed in one read.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Final

from resourcesync.adapters.files import names_and_uris
from resourcesync.adapters.files.folders import (
    GONE,
    FileOpener,
    FolderStack,
    LinkNotFollowedError,
    ScannedFolder,
    SiblingCache,
    grouped_keys,
    listing_error,
    moved_error,
    open_root,
    resolve_link,
)
from resourcesync.adapters.files.selection import (
    LEFT_OUT,
    FileSelection,
    PathFilter,
    RereadSchedule,
)
from resourcesync.errors import ConfigurationError, OriginalChangedError, StorageError
from resourcesync.model.digests import ALGORITHMS, parse_digests
from resourcesync.model.entries import Resource, ResourceRun
from resourcesync.model.own_names import MAX_URI, uri_fault
from resourcesync.model.timestamps import from_seconds, to_microseconds
from resourcesync.own_files import FILE, open_below, opened
from resourcesync.ports import Clock
from resourcesync.ports.originals import MeasuredRun, Omission, Original, OriginalRun, Originals

_CHUNK: Final = 262_144


class Digester:
    """A reader of files that computes their digests."""

    def __init__(self, algorithms: Sequence[str]) -> None:
        self._hashes = tuple((name, _hash_constructor(name)) for name in algorithms or ("",))
        self._first, self._start = self._hashes[0]
        self._is_alone = len(self._hashes) == 1

    def read(self, descriptor: int, size: int) -> tuple[int, str]:
        """Read a file of ``size`` bytes to its end; return the bytes read and their ``hash``.

        A file that grows meanwhile is not read further: it is enough to notice the growth.
        """
        chunk = os.read(descriptor, size + 1 if size < _CHUNK else _CHUNK)
        length = len(chunk)
        if self._is_alone and length >= size:  # nearly every file
            return length, f"{self._first}:{self._start(chunk).hexdigest()}"
        hashes = [(name, new(chunk)) for name, new in self._hashes]
        while chunk and length < size:
            chunk = os.read(descriptor, _CHUNK)
            length += len(chunk)
            for _, running in hashes:
                running.update(chunk)
        return length, " ".join([f"{name}:{running.hexdigest()}" for name, running in hashes])


def _hash_constructor(algorithm: str) -> Callable[[bytes], Any]:
    if algorithm not in ALGORITHMS:
        raise ConfigurationError(
            f"{algorithm!r} is not a hash algorithm that can be published",
            evidence=(("known", ", ".join(ALGORITHMS)),),
        )
    return partial(getattr(hashlib, algorithm.replace("-", "")), usedforsecurity=False)


MAX_OMISSIONS: Final = 10_000
"""The most omissions of one scan that are stored with their reasons."""
_TRIES: Final = 3
_SECOND: Final = 1_000_000_000
_FRESH: Final = 20_000_000  # the coarsest tick of a kernel's file times, doubled
_FRESH_WHOLE: Final = 2 * _SECOND  # the coarsest file times there are (FAT)
_KIND: Final = 0o170000
_OTHER_DISK: Final = "a folder on another file system"
_REGULAR_ONLY: Final = {stat.S_IFREG}
_RUN: Final = 1_000


class FileTreeOriginals(Originals):
    """The files below a root, each published at the base URI plus its percent-encoded path.

    All access is by descriptor from the root, so no link that appears meanwhile can lead out of
    the tree. Links to files inside the tree are followed, links to folders never.

    One scan at a time; ``open`` and ``locate`` may be called from other threads meanwhile.
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
        self.unmatched = self._judge.unmatched
        self._digester = Digester(algorithms)
        self._omissions: list[Omission] = []
        self._due = (rereading or RereadSchedule()).due
        self._current: tuple[str, int] | None = None

    def omissions(self) -> Sequence[Omission]:
        """Return what the last scan omitted, other than on purpose; the first 10,000."""
        return tuple(self._omissions)

    def scan(self) -> Iterator[Original]:
        """Yield every file that is published, in rising URI order; nothing is read.

        The media type comes from ``measure``.

        Memory and descriptors stay bounded, however deep or wide the tree is.
        """
        for run in self.runs():
            yield from run

    def runs(self) -> Iterator[OriginalRun]:
        """Yield the same as ``scan``, as runs that are not empty, each of files in one folder."""
        self._omissions = []
        root = ScannedFolder(open_root(self._root), (), self._base)
        descent = FolderStack(root)
        root.groups = grouped_keys(lambda: self._keys(root))
        try:
            while descent:
                yield from filter(None, self._runs_of_folder(descent))
        finally:
            self._current = None
            descent.close()

    def _runs_of_folder(self, descent: FolderStack) -> Iterator[OriginalRun]:
        folder, descriptor = descent.deepest()
        self._current = (folder.uri, descriptor)
        for keys in folder.groups:
            if keys[0][-1] != "/":
                yield self._run(folder, descriptor, keys)
            elif self._enter(descent, keys[0]):
                return
        descent.leave()

    def _run(self, folder: ScannedFolder, descriptor: int, keys: list[str]) -> OriginalRun:
        looked = self._now()
        keys, found = self._statuses(folder, descriptor, keys)
        signed = list(map(_signed, found))
        lengths, modified, inodes, changed = zip(*signed, strict=True) if signed else [()] * 4
        fingerprints = [_SIGNATURE % values for values in signed]
        for at in self._due(inodes, modified):
            fingerprints[at] = ""
        if max((*modified, *changed), default=0) > looked - _FRESH_WHOLE:
            for at, status in enumerate(found):
                if self._is_fresh(status, looked):
                    fingerprints[at] = ""
        uris = [folder.uri + key for key in keys]
        return OriginalRun(uris=uris, fingerprints=fingerprints, lengths=lengths, modified=modified)

    def _statuses(
        self, folder: ScannedFolder, descriptor: int, keys: list[str]
    ) -> tuple[list[str], list[os.stat_result]]:
        try:
            found = [os.lstat(name, dir_fd=descriptor) for name in names_and_uris.names_of(keys)]
        except OSError:  # one of them is gone
            found = []
        if {status.st_mode & _KIND for status in found} == _REGULAR_ONLY:  # as in most folders
            return keys, found
        pairs = ((key, self._stat(folder, descriptor, key)) for key in keys)
        there = [(key, status) for key, status in pairs if status is not None]
        return [key for key, _ in there], [status for _, status in there]

    def _keys(self, folder: ScannedFolder) -> Iterator[Iterable[str]]:
        assert folder.descriptor is not None
        try:
            with os.scandir(folder.descriptor) as entries:
                while some := list(islice(entries, _RUN)):
                    folders = [e.name for e in some if e.is_dir(follow_symlinks=False)]
                    files = [e.name for e in some if not e.is_dir(follow_symlinks=False)]
                    yield self._folder_keys(folder, folders)
                    yield self._file_keys(folder, files)
        except OSError as error:
            raise listing_error(folder.path, error) from error

    def _folder_keys(self, folder: ScannedFolder, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            reason = self._judge.exclusion_of_folder(folder.path, name)
            if reason is None and self._has_documents(folder, name):
                continue
            if self._fits(folder, name, f"{names_and_uris.to_segment(name)}/", reason):
                yield f"{names_and_uris.to_segment(name)}/"

    def _has_documents(self, folder: ScannedFolder, name: str) -> bool:
        signs = self._judge.signs
        return (
            bool(signs and folder.names)
            and signs[0].startswith(f"{name}/")
            and all(os.access(sign, os.F_OK, dir_fd=folder.descriptor) for sign in signs)
        )

    def _file_keys(self, folder: ScannedFolder, names: Sequence[str]) -> Iterable[str]:
        room = MAX_URI - len(folder.uri)
        is_usual = names_and_uris.are_segments(names) and max(map(len, names)) <= room
        if is_usual and self._judge.publishes_all(folder.path, names):
            return names
        keys = [(name, names_and_uris.to_segment(name)) for name in names]
        judge = self._judge.exclusion_of_file
        return [
            key for name, key in keys if self._fits(folder, name, key, judge(folder.path, name))
        ]

    def _fits(self, folder: ScannedFolder, name: str, key: str, reason: str | None) -> bool:
        room = MAX_URI - len(folder.uri)
        if reason is None and (len(key) > room or "%0" in key):
            reason = uri_fault(key, room)
        if reason is not None:
            self._omit(folder.path + name, reason)
        return reason is None

    def _enter(self, descent: FolderStack, key: str) -> bool:
        folder, descriptor = descent.deepest()
        name = names_and_uris.to_name(key[:-1])
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
            name = folder.path + name
            self._omit(name, _OTHER_DISK, self._judge.exclude_hint(f"{name}/"))
            return False
        child.groups = grouped_keys(lambda: self._keys(child))
        descent.enter(child)
        return True

    def _stat(self, folder: ScannedFolder, descriptor: int, key: str) -> os.stat_result | None:
        (name,) = names_and_uris.names_of([key])
        try:
            found = os.lstat(name, dir_fd=descriptor)
            if found[stat.ST_MODE] & _KIND == stat.S_IFLNK:
                found = self._stat_link_target((*folder.names, name))
            elif found[stat.ST_MODE] & _KIND != stat.S_IFREG:
                self._omit(folder.path + name, "not a regular file: a socket, a pipe or a device")
                return None
        except LinkNotFollowedError as reason:
            name = folder.path + name
            self._omit(name, str(reason), self._judge.exclude_hint(name))
            return None
        except OSError as error:
            if error.errno in GONE:
                return None
            raise listing_error(folder.path + name, error) from error
        return found

    def _stat_link_target(self, names: tuple[str, ...]) -> os.stat_result:
        with opened(open_root(self._root)) as root:
            names = self._resolve(root, names)
            with opened(open_below(root, names[:-1])) as folder:
                found = os.stat(names[-1], dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            raise LinkNotFollowedError("a symbolic link to a directory (not followed)")
        return found

    def _resolve(self, root: int, names: tuple[str, ...]) -> tuple[str, ...]:
        names = resolve_link(root, os.path.realpath(self._root), names)
        if self._judge.exclusion_of_target(names) is not None:
            raise LinkNotFollowedError("a symbolic link to a file that is not published")
        return names

    def _omit(self, name: str, reason: str, hint: str = "") -> None:
        if reason != LEFT_OUT and len(self._omissions) < MAX_OMISSIONS:
            self._omissions.append(Omission(name=name, reason=reason, hint=hint))

    def measure(self, original: Original) -> tuple[Resource, str]:
        """Read a file once; return the resource with its digests, and its fingerprint.

        Length, digests, times and fingerprint are all of the same bytes: the status is read before
        and after the bytes, and if it changed the file is read again, up to three times in all.
        """
        uri, seen, length = original.uri, original.fingerprint, original.length
        for _ in range(_TRIES):
            looked = 0 if seen else self._now()
            descriptor = self._open(uri, self._open_sibling)
            try:
                if not seen:
                    seen, length = self._check_regular(uri, descriptor)
                count, text = self._digester.read(descriptor, length)
                found = os.fstat(descriptor)
            except OSError as error:
                raise _unreadable(self._shown(uri), error) from error
            finally:
                os.close(descriptor)
            if seen == _signature(found) and count == found.st_size:
                lastmod, digests = from_seconds(int(found[stat.ST_MTIME])), parse_digests(text)
                resource = Resource(uri, lastmod, count, digests, names_and_uris.media_type(uri))
                # What is unchanged since the scan, which trusted it, is not fresh.
                is_trusted = not looked or not self._is_fresh(found, looked)
                return resource, seen if is_trusted else ""
            seen = ""
        raise OriginalChangedError(f"{self._shown(uri)} changed each time it was read")

    def measure_run(self, run: Sequence[Original]) -> MeasuredRun:
        """Read some files of the folder that the scan is in.

        Those that are not as they were listed are left to ``measure``, as are those that the scan
        did not trust.
        """
        assert self._current is not None
        assert isinstance(run, OriginalRun), "as runs yields them"
        folder, descriptor = self._current
        names = names_and_uris.names_of([uri[len(folder) :] for uri in run.uris])
        files = zip(names, run.fingerprints, run.lengths, strict=True)
        hashes = [self._hash_of_trusted(descriptor, *file) for file in files]
        rest = run.select([at for at, text in enumerate(hashes) if not text])
        if rest:
            run = run.select([at for at, text in enumerate(hashes) if text])
            hashes = [text for text in hashes if text]
        resources = ResourceRun(
            uris=run.uris,
            lastmods=run.lastmods,
            lengths=run.lengths,
            hashes=hashes,
            media_types=names_and_uris.media_types(run.uris),
        )
        return MeasuredRun(resources, run.fingerprints, rest)

    def _hash_of_trusted(self, folder: int, name: str, fingerprint: str, length: int) -> str:
        if not fingerprint:
            return ""
        try:
            descriptor = os.open(name, FILE, dir_fd=folder)
            try:
                count, text = self._digester.read(descriptor, length)
                is_same = count == length and fingerprint == _signature(os.fstat(descriptor))
            finally:
                os.close(descriptor)
        except OSError:
            return ""
        return text if is_same else ""

    def check_gone(self, uri: str) -> None:
        """Raise an error if a file may be behind a link or a mount, and is not excluded."""
        names, judge = self._names(uri), self._judge
        if names is None or judge.exclusion_of_path(names) is not None:
            return
        with opened(open_root(self._root)) as root, suppress(OSError):
            device = os.fstat(root).st_dev
            for end in range(1, len(names) + 1):
                path = "/".join(names[:end])
                found = os.lstat(path, dir_fd=root)
                if stat.S_ISLNK(found.st_mode):
                    if judge.exclusion_of_target(names[:end]) is not None:
                        return
                    if end == len(names):
                        os.stat(path, dir_fd=root)  # else it leads nowhere
                    raise moved_error(path, "a symbolic link", judge.exclude_hint(path))
                if found.st_dev != device:
                    raise moved_error(path, _OTHER_DISK, judge.exclude_hint(f"{path}/"))

    def locate(self, uri: str) -> str | None:
        """Return the path below the root that a URI stands for, as far as that is published.

        The disk is not read: there may be no such file.
        """
        names = self._names(uri)
        if names is None or self._judge.exclusion_of_path(names) is not None:
            return None
        return "/".join(names)

    def open(self, uri: str) -> BinaryIO | None:
        """Open a published file for reading; ``None`` when the URI stands for none."""
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
        with (
            opened(open_root(self._root)) as root,
            closing(SiblingCache(root, self._base, self._judge, self.open)) as nearby,
        ):
            yield nearby

    def _names(self, uri: str) -> tuple[str, ...] | None:
        is_here, name = uri.startswith(self._base), uri.removeprefix(self._base)
        return names_and_uris.to_names(name) if is_here else None

    def _shown(self, uri: str) -> str:
        names = self._names(uri)
        return uri if names is None else str(self._root.joinpath(*names))

    def _open(self, uri: str, opening: Callable[[str], int]) -> int:
        try:
            return opening(uri)
        except LinkNotFollowedError as error:
            raise OriginalChangedError(f"{self._shown(uri)} is {error} now") from error
        except OSError as error:
            if error.errno in GONE:
                raise OriginalChangedError(f"{self._shown(uri)} is no longer there") from error
            raise _unreadable(self._shown(uri), error) from error

    def _check_regular(self, uri: str, descriptor: int) -> tuple[str, int]:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OriginalChangedError(f"{self._shown(uri)} is no longer a file")
        return _signature(found), found.st_size

    def _open_sibling(self, uri: str) -> int:
        if self._current is not None:
            folder, descriptor = self._current
            segment = uri.removeprefix(folder)
            name = names_and_uris.to_name(segment) if len(segment) < len(uri) else None
            if name is not None:
                try:
                    return os.open(name, FILE, dir_fd=descriptor)
                except OSError as error:
                    if error.errno != errno.ELOOP:
                        raise
        return self._open_from_root(uri)

    def _open_from_root(self, uri: str) -> int:
        names = self._names(uri)
        if names is None:
            raise OriginalChangedError(f"{uri} is not a file of this tree")
        with opened(open_root(self._root)) as root:
            try:
                return _open_file(root, names)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
            return _open_file(root, self._resolve(root, names))

    def _now(self) -> int:
        return to_microseconds(self._clock.now()) * 1_000

    def _is_fresh(self, found: os.stat_result, looked: int) -> bool:
        latest = self._now() + _FRESH_WHOLE
        for time in (found.st_mtime_ns, found.st_ctime_ns):
            margin = _FRESH_WHOLE if time % _SECOND == 0 else _FRESH
            # A file dated well into the future is not fresh: writing to it changes that date.
            if looked - margin <= time < latest:
                return True
        return False


def _open_file(root: int, names: tuple[str, ...]) -> int:
    with opened(open_below(root, names[:-1])) as folder:
        return os.open(names[-1], FILE, dir_fd=folder)


# Writers can set the mtime back, as cp -p and rsync -t do, but never the ctime.
_signed: Final = attrgetter("st_size", "st_mtime_ns", "st_ino", "st_ctime_ns")
_SIGNATURE: Final = "%d:%d:%d:%d"


def _signature(found: os.stat_result) -> str:
    return _SIGNATURE % _signed(found)


def _unreadable(path: str, error: OSError) -> StorageError:
    return StorageError(
        f"{path} cannot be read: {error.strerror}",
        hint="make the file readable, or exclude it",
        code="unreadable-file",
    )
