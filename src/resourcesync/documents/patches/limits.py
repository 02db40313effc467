"""What a patch and the version before may cost."""

from typing import BinaryIO, Final

from resourcesync.errors import PatchError

MAX_BYTES: Final = 8 << 20
"""Bytes of a version, and of a patch, that are taken into memory: a tree is many times as large."""
MAX_OPERATIONS: Final = 10_000
MAX_READ: Final = 16 << 20
"""Bytes that all operations of an XML Patch may read again, together."""


def read_all(stream: BinaryIO, limit: int, what: str) -> bytes:
    """Read a stream to its end.

    Raises:
        PatchError: It has more than ``limit`` bytes.
    """
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise PatchError(f"{what} has more than {limit:,} B")
    return data
