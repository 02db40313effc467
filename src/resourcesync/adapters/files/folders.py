"""Folder access by descriptor: no link, even one planted meanwhile, leads out of the tree.

Links to files are followed by hand, one name at a time.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from heapq import nsmallest
from io import FileIO
from itertools import chain, groupby, islice
from pathlib import Path
from typing import BinaryIO, Final

from resourcesync.adapters.files.names_and_uris import to_name, to_names
from resourcesync.adapters.files.selection import PathFilter
from resourcesync.errors import StorageError
from resourcesync.own_files import ROOT, link_target, open_below, open_file, opened

GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE})
"""Errors for a listed name that is gone, or changed its type."""

MAX_OPEN: Final = 64
"""The most open descriptors of ancestors; deeper trees are walked down again."""
WINDOW: Final = 500_000
"""The most names of one folder in memory; larger folders are listed again."""
_GROUP: Final = 1_000


def open_root(root: Path) -> int:
    """Return a descriptor of the tree's root; the root itself may be a link."""
    try:
        return os.open(root, ROOT)
    except OSError as error:
        raise listing_error(str(root), error) from error


def listing_error(path: str, error: OSError) -> StorageError:
    """Return the error for a folder that cannot be listed."""
    reason = f"the folder {path!r} cannot be read: {error.strerror}"
    return _UNLISTED(reason, hint="make it readable, or exclude it")


def moved_error(path: str, now: str, hint: str) -> StorageError:
    """Return the error for published files that are not listed, and may not be called deleted."""
    return _UNLISTED(f"{path!r}, which has published files, is {now} now", hint=hint)


_KEPT: Final = ("kept", "nothing was published; what is public is as it was")
_UNLISTED: Final = partial(StorageError, evidence=(_KEPT,), code="unreadable-folder")


class ScannedFolder:
    """A folder in the path of a scan: its location, and the keys that are still to be scanned.

    The keys are in groups: of files, or one of a folder.
    """

    __slots__ = ("descriptor", "groups", "names", "path", "uri")

    def __init__(self, descriptor: int, names: tuple[str, ...], uri: str) -> None:
        self.descriptor: int | None = descriptor
        self.names = names
        self.path = "".join(name + "/" for name in names)
        self.uri = uri
        self.groups: Iterator[list[str]] = iter(())

    def close(self) -> None:
        """Close the descriptor."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


class FolderStack:
    """The folders from the root to the one being scanned, with few descriptors open."""

    def __init__(self, root: ScannedFolder) -> None:
        assert root.descriptor is not None
        self.device = os.fstat(root.descriptor).st_dev
        self._root = root
        self._folders = [root]

    def __bool__(self) -> bool:
        return bool(self._folders)

    def deepest(self) -> tuple[ScannedFolder, int]:
        """Return the folder being scanned and its descriptor."""
        folder = self._folders[-1]
        if folder.descriptor is None:
            assert self._root.descriptor is not None
            try:
                folder.descriptor = open_below(self._root.descriptor, folder.names)
            except OSError as error:
                raise listing_error(folder.path, error) from error
        return folder, folder.descriptor

    def enter(self, folder: ScannedFolder) -> None:
        """Go down one level."""
        self._folders.append(folder)
        if len(self._folders) > MAX_OPEN + 1:
            self._folders[-MAX_OPEN - 1].close()

    def leave(self) -> None:
        """Go up one level."""
        self._folders.pop().close()

    def close(self) -> None:
        """Close all descriptors."""
        while self._folders:
            self.leave()


def grouped_keys(listing: Callable[[], Iterator[Iterable[str]]]) -> Iterator[list[str]]:
    """Yield the keys of a folder in rising order: some hundred of files, or one of a folder."""
    for window in _sorted_windows(listing):
        for first in range(0, len(window), _GROUP):
            group = window[first : first + _GROUP]
            if "/" in "".join(group):
                by_folder = groupby(group, lambda key: key if key[-1] == "/" else "")
                yield from (list(keys) for _, keys in by_folder)
            else:  # as most
                yield group


def _sorted_windows(listing: Callable[[], Iterator[Iterable[str]]]) -> Iterator[list[str]]:
    keys = chain.from_iterable(listing())
    window = list(islice(keys, WINDOW))
    window.sort()
    extra = next(keys, None)
    if extra is None:
        yield window
        return
    window = nsmallest(WINDOW, chain(window, (extra,), keys))
    while window:
        yield window
        last = window[-1]
        window = nsmallest(WINDOW, (key for key in chain.from_iterable(listing()) if key > last))


_MAX_HOPS: Final = 8


class LinkNotFollowedError(Exception):
    """A symbolic link that is not published; its message is the reason."""


def resolve_link(root: int, real_root: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names, from the root, of the final target of a link in the tree."""
    for _ in range(_MAX_HOPS):
        target = _read_link(root, names)
        if target is None:
            return names
        further = link_target(names[:-1], target, [real_root])
        if not further:
            raise LinkNotFollowedError("a symbolic link out of the tree")
        names = further
    raise LinkNotFollowedError(f"a symbolic link through more than {_MAX_HOPS} others")


def _read_link(root: int, names: tuple[str, ...]) -> str | None:
    try:
        with opened(open_below(root, names[:-1])) as folder:
            return os.readlink(names[-1], dir_fd=folder)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        if error.errno not in GONE:
            raise
        raise LinkNotFollowedError("a broken symbolic link, or one through another link") from error


FileOpener = Callable[[str], BinaryIO | None]


class SiblingCache:
    """An opener of files by URI, fast for files in the same folder; for one thread.

    Special cases take the slow path: links, invalid names, missing files.
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
        """Open a published file for reading; ``None`` when the URI stands for none."""
        folder, _, segment = uri.rpartition("/")
        if folder != self._folder and not self._open_folder(folder):
            return self._slowly(uri)
        name = to_name(segment)
        if name is None or self._judge.exclusion_of_file(self._path, name) is not None:
            return None
        try:
            return FileIO(open_file(name, self._descriptor))
        except OSError:
            return self._slowly(uri)

    def _open_folder(self, folder: str) -> bool:
        self.close()
        if not f"{folder}/".startswith(self._base):
            return False
        path = folder[len(self._base) :]
        names = to_names(path) if path else ()
        if names is None or self._judge.exclusion_of_folders(names) is not None:
            return False
        try:
            self._descriptor = open_below(self._root, names)
        except OSError:
            return False
        self._folder = folder
        self._path = "".join(name + "/" for name in names)
        return True
