"""A Source's documents in memory: for tests, the simulator, and trials without a disk."""

from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import BinaryIO


class MemoryDocuments:
    """A ``DocumentStore`` in a dictionary: a document is replaced at once, or not at all."""

    def __init__(self) -> None:
        self._documents: dict[str, tuple[bytes, int]] = {}
        self.writes = 0
        """Number of documents written."""

    def write(
        self, name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None = None
    ) -> int:
        """Put a whole document in place, if ``check`` accepts it; return its bytes."""
        content = b"".join(chunks)
        if check is not None:
            check(BytesIO(content))
        self.writes += 1
        self._documents[name] = (content, self.writes)
        return len(content)

    def open(self, name: str) -> BinaryIO | None:
        """Open a document for reading, or return ``None`` when there is none."""
        held = self._documents.get(name)
        return None if held is None else BytesIO(held[0])

    def signature(self, name: str) -> str | None:
        """Return a text that changes whenever the document is written; ``None`` for none."""
        held = self._documents.get(name)
        return None if held is None else str(held[1])

    def names(self) -> Iterator[str]:
        """Yield the names of the documents that exist."""
        return iter(sorted(self._documents))

    def delete(self, name: str) -> None:
        """Remove a document; it is no error when there is none."""
        self._documents.pop(name, None)
