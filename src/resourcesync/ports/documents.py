"""The public place of a Source's documents, and a second process to make them in."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, BinaryIO, Final, Protocol

from resourcesync.errors import StorageError

TOP_LEVEL_PREFIX: Final = "resourcesync-"
"""Prefix of documents that are in no folder, where foreign files are, too."""


def split_name(name: str, folders: Collection[str]) -> tuple[str, str]:
    """Return the folder and the file of a document's name; any other name is an error."""
    folder, _, file = name.rpartition("/")
    is_place = folder in folders or (not folder and file.startswith(TOP_LEVEL_PREFIX))
    if not is_place or file in {"", ".", ".."} or "\0" in file:
        raise StorageError(f"{name!r} is not a valid document name")
    return folder, file


class DocumentStore(Protocol):
    """The public store of a Source's documents.

    Names are relative, with ``/``: in the folders ``resourcesync`` and ``.well-known``, and beside
    these some that begin with ``TOP``.
    """

    def write(
        self, name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None = None
    ) -> int:
        """Put a whole document in place, durably and at once; return its bytes.

        A reader sees the old document or the new one, never a part. What ``chunks`` raises
        passes, and leaves what was there as it was; so does what ``check`` raises, which is given
        the bytes as they were stored, before they are put in place.

        Raises:
            StorageError: It could not be written; the old document is unchanged.
        """

    def open(self, name: str) -> BinaryIO | None:
        """Open a document for reading, or return ``None`` when there is none."""

    def signature(self, name: str) -> str | None:
        """Return a signature that changes with the document, cheaply; ``None`` if there is none."""

    def names(self) -> Iterator[str]:
        """Yield the names of the documents that exist."""

    def delete(self, name: str) -> None:
        """Remove a document; it is no error when there is none."""


class SecondProcess(Protocol):
    """A copy of this process that runs one function at a time."""

    def start(self, function: Callable[[], Any]) -> None:
        """Start a function with a copy of everything that it refers to.

        Changes that it makes in memory are seen there alone. Its result can be pickled.
        """

    def result(self) -> Any:
        """Wait for the end of the function; return its result.

        ``None`` if there is none, for whatever reason: then the caller does the work itself.
        """

    def stop(self) -> None:
        """End the function if one is running, so that it cleans up; else do nothing."""
