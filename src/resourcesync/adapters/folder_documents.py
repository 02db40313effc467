"""The ``DocumentStore`` port on a folder."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from resourcesync.errors import StorageError, storage_error
from resourcesync.own_files import NEW, open_file, open_folder, opened
from resourcesync.ports.documents import TOP_LEVEL_PREFIX, split_name

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MISSING: Final = (FileNotFoundError, NotADirectoryError)
_TEMPORARY: Final = ".rs-tmp-"
_BLOCK: Final = 1 << 20
_READ_AHEAD: Final = 1 << 17


class FolderDocuments:
    """Documents in some folders below a root, for a web server to serve.

    A document is written under a temporary name, synced, renamed and synced again: a reader sees
    the old one or the new one, and a crash leaves at most a temporary file, which the next run
    that writes removes. Links are not followed below the root.
    """

    def __init__(
        self, root: Path, *, folders: tuple[str, ...] = ("resourcesync", ".well-known")
    ) -> None:
        self._root = root
        self._folders = folders
        self._number = 0
        self._cleaned: set[str] = set()

    def remove_leftovers(self) -> None:
        """Remove what a crash left, before this process and a copy of it write at a time."""
        for name in {*self._folders} - self._cleaned:
            with suppress(*_MISSING), self._opened(name) as folder:
                _remove_leftovers(folder)
        self._cleaned.update(self._folders)

    def write(
        self, name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None = None
    ) -> int:
        """Put a whole document in place, durably and at once; return its bytes.

        An error that ``check`` raises for the stored bytes prevents the rename.
        """
        folder_name, file_name = split_name(name, self._folders)
        with self._opened(folder_name, file_name, 0o777) as folder:
            if folder_name not in self._cleaned:
                _remove_leftovers(folder)
                self._cleaned.add(folder_name)
            return self._replace(folder, file_name, chunks, check)

    def open(self, name: str) -> BinaryIO | None:
        """Open a document for reading, or return ``None`` when there is none."""
        place = split_name(name, self._folders)
        with suppress(*_MISSING), self._opened(*place) as folder:
            file = open_file(place[1], folder)
            return BufferedReader(_FolderDocumentFile(file, self._root / name))
        return None

    def signature(self, name: str) -> str | None:
        """Return a text that changes whenever the document does; ``None`` if there is none."""
        place = split_name(name, self._folders)
        with suppress(*_MISSING), self._opened(*place) as folder:
            found = os.stat(place[1], dir_fd=folder, follow_symlinks=False)
            return f"{found.st_size}:{found.st_mtime_ns}:{found.st_ino}"
        return None

    def names(self) -> Iterator[str]:
        """Yield the names of the documents that exist, sorted."""
        for folder in sorted(self._folders):
            yield from sorted(self._listed(folder))
        if "" not in self._folders:
            yield from sorted(self._listed(""))

    def delete(self, name: str) -> None:
        """Remove a document; it is no error when there is none."""
        place = split_name(name, self._folders)
        with suppress(*_MISSING), self._opened(*place) as folder:
            os.unlink(place[1], dir_fd=folder)

    @contextmanager
    def _opened(self, folder: str, name: str = "", mode: int = 0) -> Iterator[int]:
        try:
            below = (folder,) if folder else ()
            with opened(open_folder(self._root, mode, below=below)) as descriptor:
                yield descriptor
        except OSError as error:
            if isinstance(error, _MISSING) and not mode:
                raise
            raise _failed(self._root / folder / name, error) from error

    def _replace(
        self,
        folder: int,
        name: str,
        chunks: Iterable[bytes],
        check: Callable[[BinaryIO], None] | None,
    ) -> int:
        self._number += 1
        temporary = f"{_TEMPORARY}{os.getpid()}-{self._number}"
        descriptor = open_file(temporary, folder, NEW, 0o644)
        try:
            with os.fdopen(descriptor, "wb", buffering=_BLOCK) as stream:
                os.fchmod(descriptor, 0o644)  # whatever the umask: a web server must read it
                length = sum(stream.write(chunk) for chunk in chunks)
                stream.flush()
                os.fsync(descriptor)
            if check is not None:
                written = open_file(temporary, folder)
                with os.fdopen(written, "rb", buffering=_READ_AHEAD) as stream:
                    check(stream)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        os.fsync(folder)
        return length

    def _listed(self, folder: str) -> Iterator[str]:
        with (
            suppress(*_MISSING),
            self._opened(folder) as descriptor,
            os.scandir(descriptor) as entries,
        ):
            for entry in entries:
                if not folder and not entry.name.startswith(TOP_LEVEL_PREFIX):
                    continue
                if entry.is_file(follow_symlinks=False) and not _is_temporary(entry.name):
                    yield f"{folder}/{entry.name}".removeprefix("/")


class _FolderDocumentFile(FileIO):
    def __init__(self, descriptor: int, path: Path) -> None:
        super().__init__(descriptor, "rb")
        self._path = path

    def readinto(self, buffer: "WriteableBuffer", /) -> int | None:
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise _failed(self._path, error) from error

    def readall(self) -> bytes:
        try:
            return super().readall()
        except OSError as error:
            raise _failed(self._path, error) from error


def _remove_leftovers(folder: int) -> None:
    with os.scandir(folder) as entries:
        for name in [entry.name for entry in entries if _is_temporary(entry.name)]:
            os.unlink(name, dir_fd=folder)


def _is_temporary(name: str) -> bool:
    return name.startswith(_TEMPORARY)


def _failed(path: Path, error: OSError) -> StorageError:
    return storage_error(error, f"using {path}", kept="what was published before")
