"""The bytes of an object as a stream."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from io import RawIOBase
from typing import TYPE_CHECKING

from resourcesync.errors import StorageError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class ObjectReader(RawIOBase):
    """Reads what a server sends of an object; fewer bytes than it told of are an error.

    Args:
        chunks: What comes.
        length: The bytes of the object.
        asking: Makes errors of ours of whatever reading raises.
    """

    def __init__(
        self,
        chunks: Iterator[bytes],
        length: int,
        asking: Callable[[], AbstractContextManager[None]],
    ) -> None:
        super().__init__()
        self._chunks = chunks
        self._left = length
        self._guard = asking
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def close(self) -> None:
        """Let the line go, also before the end."""
        self._chunks = iter(())
        super().close()

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read the next bytes into a buffer.

        Raises:
            StorageError: The line broke.
        """
        if not self._rest:
            with self._guard():
                self._rest = memoryview(next(self._chunks, b""))
            if not self._rest:
                if self._left:
                    raise StorageError(
                        f"an object ended {self._left:,} bytes before its end", code="store"
                    )
                return 0
        room = memoryview(buffer).cast("B")
        count = min(len(room), len(self._rest))
        room[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        self._left -= count
        return count
