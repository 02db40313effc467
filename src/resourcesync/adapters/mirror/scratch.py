"""A nameless temporary file of the mirror whose failures are errors of ours."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, cast

from resourcesync.adapters.mirror.staged import storage_error

_BUFFER: Final = 64 * 1024


class _ScratchFile(io.FileIO):
    """A file whose failures are ``StorageError``, wherever the bytes are needed."""

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
        raise storage_error(error, f"{doing} a temporary file") from error


def open_scratch(name: str, folder: int) -> BinaryIO:
    """Open a temporary file to write and read; it has no name any more when it is returned.

    Args:
        name: A name of its own.
        folder: Descriptor of the folder it is made in.

    Raises:
        StorageError: It cannot be made.
    """
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        file = os.open(name, flags, 0o600, dir_fd=folder)
        try:
            os.unlink(name, dir_fd=folder)
            raw = _ScratchFile(file, "r+b")
        except BaseException:
            os.close(file)
            raise
    except OSError as error:
        raise storage_error(error, "making a temporary file") from error
    return cast("BinaryIO", io.BufferedRandom(raw, _BUFFER))
