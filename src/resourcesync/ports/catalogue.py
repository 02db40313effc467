"""Ports of a Source: the originals, and a place for documents."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import BinaryIO, Final, NamedTuple, Protocol

import msgspec

from resourcesync.model.resources import Resource

BAD_ROW: Final = "catalogue-row"
"""The code of errors that one row of a catalogue is the reason of."""


class Original(NamedTuple):
    """The metadata of one original, without its bytes.

    A named tuple, since every scan makes one for every original.

    Attributes:
        uri: Its URI.
        fingerprint: Equal fingerprints mean equal bytes (for a file: size, mtime, inode, ctime);
            empty when the backend cannot promise that.
        length: Bytes.
        lastmod: Last-Modified, UTC, whole seconds.
        media_type: ``type``.
    """

    uri: str
    fingerprint: str
    length: int
    lastmod: datetime
    media_type: str = ""


class Omission(msgspec.Struct, frozen=True, kw_only=True):
    """A name in the tree that is not published, and the reason (a symlink out of it, a socket).

    Attributes:
        instead: Another name that means the same resource, and is published; empty for none.
    """

    name: str
    reason: str
    instead: str = ""


class Originals(Protocol):
    """The resources as the Source has them."""

    def scan(self) -> Iterator[Original]:
        """Yield every original in rising URI order, without reading their bytes.

        Raises:
            StorageError: The originals cannot be listed; a scan that failed is not a shorter scan.
        """

    def measure(self, original: Original) -> tuple[Resource, str]:
        """Read the bytes once; return the resource with its digests, and its fingerprint.

        Raises:
            OriginalChangedError: It changed or vanished since; leave it for the next run.
        """

    def omissions(self) -> Sequence[Omission]:
        """Return the files that the last scan omitted."""


class Posted(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of resources posted by a program.

    Attributes:
        created: Resources that were not known.
        updated: Known ones with other bytes.
        deleted: Known ones that are gone.
        touched: Known ones with other metadata, such as their type.
    """

    created: int = 0
    updated: int = 0
    deleted: int = 0
    touched: int = 0


TOP_LEVEL_PREFIX: Final = "resourcesync-"
"""Prefix of documents that are in no folder, where foreign files are, too."""


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
