"""What a coordinator and its workers hand each other: files that are written once, by name."""

from collections.abc import Iterator
from typing import Protocol


class FileExchange(Protocol):
    """Files that all of them reach. A name stands for one content: who writes it again, may."""

    def send(self, name: str, file: str) -> None:
        """Make a file of this machine durable for all, under a name.

        Raises:
            StorageError: It is not there; nothing of it.
        """
        ...

    def receive(self, name: str) -> str | None:
        """Return a file of this machine with what is there under a name; ``None`` when nothing is.

        Raises:
            StorageError: It cannot be had.
        """
        ...

    def names(self, prefix: str) -> Iterator[str]:
        """Yield the names that begin so, in no order."""
        ...

    def remove(self, name: str) -> None:
        """Remove what is there under a name; it is no error when nothing is."""
        ...
