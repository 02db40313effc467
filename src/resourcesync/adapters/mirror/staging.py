"""A folder of staged bytes on their way to a path beside it, or to a store.

Large copies that broke off are saved for the next run as parts: a temporary file with a note
beside it. Any other file there was left by a killed run, and is removed. Parts are not synced:
after a power cut one may hold wrong bytes. So a part is saved only for a copy whose whole a strong
digest will prove.
"""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from resourcesync.adapters.mirror.own_folder import mirror_error
from resourcesync.adapters.mirror.staged_file import Parts, StagedFile
from resourcesync.own_files import NEW, open_file, open_folder, opened

if TYPE_CHECKING:
    pass


_BUFFER: Final = 64 * 1024


class _ScratchFile(io.FileIO):
    """A file whose errors are ``StorageError``."""

    def readinto(self, buffer: Any) -> int | None:
        with _guard_scratch("reading"):
            return super().readinto(buffer)

    def readall(self) -> bytes | None:  # type: ignore[override]  # as its own documentation says
        with _guard_scratch("reading"):
            return super().readall()

    def write(self, data: Any) -> int | None:  # type: ignore[override]  # the same
        with _guard_scratch("writing"):
            return super().write(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        with _guard_scratch("reading"):
            return super().seek(offset, whence)

    def truncate(self, size: int | None = None) -> int:
        with _guard_scratch("writing"):
            return super().truncate(size)


@contextmanager
def _guard_scratch(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise mirror_error(error, f"{doing} a temporary file") from error


def open_scratch(name: str, folder: int) -> BinaryIO:
    """Open an unlinked temporary file to write and read."""
    try:
        file = open_file(name, folder, NEW)
        try:
            os.unlink(name, dir_fd=folder)
            raw = _ScratchFile(file, "r+b")
        except BaseException:
            os.close(file)
            raise
    except OSError as error:
        raise mirror_error(error, "making a temporary file") from error
    return cast("BinaryIO", io.BufferedRandom(raw, _BUFFER))


class Staging:
    """A folder of temporary files."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._parts = Parts(folder)
        self._names = 0
        self._tag = os.urandom(8).hex()

    def clear(self, oldest: float) -> None:
        """Remove temporary files of killed runs."""
        self._parts.clear(oldest)

    def stage(self, algorithms: Sequence[str], of: str = "") -> StagedFile:
        """Start a staged file; digests are computed while the bytes are written.

        With ``of``, resume the part of it that an earlier run left, if there is one.
        """
        if of and (part := self._resume_part(algorithms, of)) is not None:
            return part
        self._names += 1
        return StagedFile(self._folder, f"{self._tag}-{self._names}", algorithms, self._parts, of)

    def scratch(self) -> BinaryIO:
        """Open a nameless temporary file, to read and write."""
        self._names += 1
        return open_scratch(f"{self._tag}-{self._names}", self._folder)

    def _resume_part(self, algorithms: Sequence[str], of: str) -> StagedFile | None:
        kept = self._parts.take(of)
        if kept is None:
            return None
        staged = StagedFile(self._folder, kept.name, algorithms, self._parts, of)
        try:
            staged.resume(kept.validator)
        except OSError:
            staged.discard()
            return None
        return staged


@contextmanager
def open_staging(folder: Path) -> Iterator[Staging]:
    """Open a folder of temporary files while the block runs."""
    try:
        descriptor = open_folder(folder)
    except OSError as error:
        raise mirror_error(error, f"opening {folder}") from error
    with opened(descriptor):
        yield Staging(descriptor)
