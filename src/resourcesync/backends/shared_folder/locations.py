"""Paths below a root, walked one name at a time without following a link.

Each folder is opened by its name for each call: an NFS client then asks its server for the current
contents, and sees what other machines did.
"""

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from resourcesync.durable_folders import sync_folder, sync_name
from resourcesync.errors import ConfigurationError

OWN_FOLDER: Final = ".resourcesync/shared"
"""The folder of locks and staged files, which are no copies."""
FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_NAMES: Final = frozenset({"", ".", ".."})
_LONGEST: Final = 1_000
_NO_FILE: Final = frozenset({errno.ENOENT, errno.ELOOP, errno.ENXIO})
# The name that an NFS client gives to a removed file that a local process still reads.
_LEFT_BY_NFS: Final = re.compile(r"(?:.*/)?\.nfs[0-9a-f]{24}")
_MOST_NOTED: Final = 10_000


def is_key(text: str) -> bool:
    """True for a valid key: names in NFC, outside of the store's own folder.

    The empty key is invalid, and so is a name that an NFS client reserves.
    """
    try:
        length = len(text.encode())
    except UnicodeEncodeError:  # an invalid name
        return False
    return (
        length <= _LONGEST
        and "\0" not in text
        and _NO_NAMES.isdisjoint(text.split("/"))
        and not f"{text}/".startswith(f"{OWN_FOLDER}/")
        and _LEFT_BY_NFS.fullmatch(text) is None
        and unicodedata.is_normalized("NFC", text)
    )


class FolderLocations:
    """The folders below a root.

    Args:
        root: The root; created by the first write, in an existing folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._durable: set[tuple[int, int]] = set()

    @contextmanager
    def parent(self, key: str, *, create: bool) -> Iterator[tuple[int, str]]:
        """Open the folder of a key while the block runs; also return the last name of the key.

        Args:
            key: A key, or a path in the store's own folder.
            create: Create missing folders, and make the names of all folders durable.

        Raises:
            FileNotFoundError: There is no such folder, or it was removed meanwhile.
            OSError: Something that is no folder is in the way, or the file system failed.
            ConfigurationError: The parent of the root does not exist.
        """
        *above, leaf = key.split("/")
        with self._opened_root(create=create) as root:
            folder = os.dup(root)
            try:
                for name in above:
                    inner = self._open_child(folder, name, create=create)
                    os.close(folder)
                    folder = inner
                yield folder, leaf
            finally:
                os.close(folder)

    @contextmanager
    def _opened_root(self, *, create: bool) -> Iterator[int]:
        if create:
            self._make_root()
        try:
            root = os.open(self.root, FOLDER_FLAGS)
        except FileNotFoundError:
            if self.root.parent.is_dir():
                raise
            raise self._not_mounted() from None
        try:
            yield root
        finally:
            os.close(root)

    def _make_root(self) -> None:
        try:
            self.root.mkdir()
        except FileExistsError:
            return
        except FileNotFoundError as error:
            raise self._not_mounted() from error
        sync_name(self.root)

    def _not_mounted(self) -> ConfigurationError:
        return ConfigurationError(
            f"there is no folder {self.root.parent}, in which the copies are to be",
            evidence=(("kept", "nothing was changed"),),
            hint="mount the file system, or make that folder; then try again",
        )

    def _open_child(self, folder: int, name: str, *, create: bool) -> int:
        if create:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
        inner = os.open(name, FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder)
        if create:
            try:
                self._make_durable(folder, inner)
            except BaseException:
                os.close(inner)
                raise
        return inner

    def _make_durable(self, folder: int, inner: int) -> None:
        """Sync the name of a folder once, also of one that another process just created."""
        info = os.fstat(inner)
        known = (info.st_dev, info.st_ino)
        if known in self._durable:
            return
        sync_folder(folder)
        if len(self._durable) >= _MOST_NOTED:
            self._durable.clear()
        self._durable.add(known)

    def drop_empty(self, key: str) -> None:
        """Remove the empty folders above a key."""
        folder = key.rpartition("/")[0]
        with suppress(OSError):
            while folder:
                with self.parent(folder, create=False) as (above, name):
                    os.rmdir(name, dir_fd=above)
                folder = folder.rpartition("/")[0]

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys of all ordinary files with a prefix, in no order.

        Raises:
            OSError: A folder cannot be read.
        """
        start = prefix.rpartition("/")[0]
        if start and not is_key(start):
            return
        waiting = [f"{start}/" if start else ""]
        while waiting:
            above = waiting.pop()
            try:
                yield from self._listed(above, prefix, waiting)
            except (FileNotFoundError, NotADirectoryError):
                continue  # it was empty, and was removed

    def _listed(self, above: str, prefix: str, waiting: list[str]) -> Iterator[str]:
        with self.parent(above, create=False) as (folder, _), os.scandir(folder) as entries:
            for entry in entries:
                key = f"{above}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    inside = f"{key}/"
                    if (inside.startswith(prefix) or prefix.startswith(inside)) and is_key(key):
                        waiting.append(f"{key}/")
                elif _is_found(entry, key, prefix):
                    yield key


def _is_found(entry: "os.DirEntry[str]", key: str, prefix: str) -> bool:
    return key.startswith(prefix) and entry.is_file(follow_symlinks=False) and is_key(key)


def open_regular(folder: int, name: str) -> int | None:
    """Open an ordinary file to read; ``None`` if there is none.

    The file is opened, not only inspected: an NFS client then asks its server for the current one.

    Raises:
        OSError: The file system failed.
    """
    try:
        file = os.open(name, READ_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return None
