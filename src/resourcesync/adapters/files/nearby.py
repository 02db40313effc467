"""Files that are opened one after the other: the folder of the last one stays open."""

import os
import stat
from collections.abc import Callable
from typing import BinaryIO, Final

from resourcesync.adapters.files.folders import open_below
from resourcesync.adapters.files.names import to_name, to_names
from resourcesync.adapters.files.selection import PathFilter

FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
"""How a file is opened that may be anything by now."""

FileOpener = Callable[[str], BinaryIO | None]


class SiblingCache:
    """Opens files by their URIs, quickly where one lies beside the one before; for one thread.

    Whatever is not plain goes the slow way: links, names that stand for nothing, what is gone.

    Args:
        root: A descriptor of the tree's root; it stays the caller's.
        base: The URI of the root.
        judge: Tells what is published.
        slowly: Opens any file.
    """

    def __init__(self, root: int, base: str, judge: PathFilter, slowly: FileOpener) -> None:
        self._root = root
        self._base = base
        self._judge = judge
        self._slowly = slowly
        self._folder: str | None = None
        self._path, self._descriptor = "", -1

    def close(self) -> None:
        """Give the descriptor back."""
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
