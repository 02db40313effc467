"""Limits of a patch and of the version before."""

from collections.abc import Callable
from io import RawIOBase
from typing import TYPE_CHECKING, BinaryIO, Final

from resourcesync.errors import PatchError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

MAX_BYTES: Final = 8 << 20
"""Bytes of a version, and of a patch, that are read into memory: a tree is many times as large."""
MAX_OPERATIONS: Final = 10_000
MAX_READ: Final = 16 << 20
"""Bytes that all operations of an XML Patch may read again, together."""


def read_all(stream: BinaryIO, limit: int, what: str) -> bytes:
    """Read a stream to its end."""
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise PatchError(f"{what} has more than {limit:,} B")
    return data


class BoundedSink(RawIOBase):
    """A sink of bytes with a limit."""

    def __init__(self, take: Callable[[bytes], object], most: int, refusal: str) -> None:
        self._take = take
        self._left = most
        self._refusal = refusal

    def writable(self) -> bool:
        """Return True: it accepts bytes."""
        return True

    def write(self, data: "Buffer", /) -> int:
        """Write a piece."""
        chunk = bytes(data)
        self._left -= len(chunk)
        if self._left < 0:
            raise PatchError(self._refusal)
        self._take(chunk)
        return len(chunk)
