"""Ports of a Source: the originals, the catalogue of them, and a place for documents."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import BinaryIO, Final, NamedTuple, Protocol

import msgspec

from resourcesync.model.resources import Change, Resource, ResourceRun

MIN_ALLOWED_LOSS: Final = 10
"""Number of resources that may always be deleted at once, however few there are."""
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


class CatalogueRecording(Protocol):
    """One transaction that brings the catalogue in step with the originals."""

    def created(self, resource: Resource, fingerprint: str) -> None:
        """Record a new resource, and the change unless this is the first recording."""

    def created_run(self, resources: ResourceRun, fingerprints: Sequence[str]) -> None:
        """Record new resources, each with its fingerprint, as ``created`` does."""

    def updated(self, resource: Resource, fingerprint: str) -> None:
        """Record new bytes of a known resource, and the change."""

    def deleted(self, resource: Resource) -> None:
        """Record that a resource is gone, and the change."""

    def touched(self, resource: Resource, fingerprint: str) -> None:
        """Record a new fingerprint or ``lastmod`` of equal bytes; that is no change."""

    def advance_time(self) -> None:
        """Record that the moment of this recording is over: all later changes are later."""


class CatalogueSnapshot(Protocol):
    """One consistent view of the catalogue: a read transaction."""

    @property
    def at(self) -> datetime:
        """The moment that this view includes every change up to; all later changes are later."""

    def resources(self, start: str = "", end: str | None = None) -> Iterator[Resource]:
        """Yield the resources in rising URI order, those from ``start`` up to before ``end``."""

    def batches(self, start: str = "", end: str | None = None) -> Iterator[Sequence[Resource]]:
        """Yield the same, some hundred at a time: as ``ResourceRun`` where that is quicker."""

    def edits(self) -> Iterator[tuple[str, Resource | None]]:
        """Yield each URI whose resource was written or removed since edits were last forgotten.

        In rising URI order, with the resource as it is now, ``None`` when it is gone. It may be as
        it was before. The first recording is no edit.
        """

    def last_edit(self) -> int:
        """Return the number up to which the edits of this view may be forgotten."""

    def changes(self, after: int = 0) -> Iterator[tuple[int, Change]]:
        """Yield ``(sequence number, change)`` in order of time, those after number ``after``."""

    def count(self, most: int | None = None) -> int:
        """Return the number of resources, or ``most`` when there are more."""

    def last_change(self) -> int:
        """Return the newest change's sequence number, 0 when there is none."""


class CatalogueStore(Protocol):
    """The Source's catalogue: a snapshot of the resources and the log of their changes."""

    def fingerprints(self) -> Iterator[tuple[str, str]]:
        """Yield the URI of each resource with the fingerprint of its original, in URI order.

        Both are as they were when the reading began. The fingerprint is empty where there is none.
        """

    def find(self, uri: str) -> Resource | None:
        """Return a resource as it was last recorded; ``None`` if it is not known."""

    def record(self, now: datetime) -> AbstractContextManager[CatalogueRecording]:
        """Open the one writing transaction; it commits when the block ends without an error.

        Every change gets a time of its own, strictly later than all before it, at least ``now``.
        """

    def snapshot(self) -> AbstractContextManager[CatalogueSnapshot]:
        """Open a consistent view."""

    def forget_edits(self, last: int) -> None:
        """Forget the edits up to a number: the published Resource List has them."""

    def forget_changes(self, last: int) -> bool:
        """Forget some thousand of the oldest changes; return whether more are left.

        Numbers are not used again.
        """

    def latest(self) -> datetime | None:
        """Return the latest moment that was given away, ``None`` before the first."""

    def rewind(self, moment: datetime) -> None:
        """Remove the changes dated later than a moment; later ones are dated from there again."""

    def note(self, key: str) -> str | None:
        """Return a value of the publisher's own bookkeeping, or ``None``."""

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Store values of the publisher's own bookkeeping, all or none."""


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


class LossLimit(NamedTuple):
    """A limit on the deletions of several batches of changes.

    Attributes:
        resources: Number of resources before.
        gone: Number by which there are fewer now.
        limit: Number by which there may be fewer.
    """

    resources: int
    gone: int
    limit: int


class FillableCatalogue(Protocol):
    """A catalogue that is filled from elsewhere: by changes, or by all resources."""

    def note(self, key: str) -> str | None:
        """Return a note; ``None`` if there is none."""

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Store notes durably."""

    def count(self) -> int:
        """Return the number of resources."""

    def find(self, uri: str) -> Resource | None:
        """Return a resource; ``None`` if it is not known."""

    def post(
        self,
        changes: Iterable[Change],
        now: datetime,
        *,
        notes: Mapping[str, str] | None = None,
        keeps_times: bool = False,
        loss: LossLimit | None = None,
    ) -> Posted:
        """Record changes of some resources: the rows, the changes and the notes, all or nothing.

        Raises:
            ConfigurationError: More would be deleted than ``loss`` allows (code ``many-gone``).
            StorageError: Nothing was recorded.
        """

    def fill(
        self,
        resources: Iterable[Resource],
        now: datetime,
        *,
        is_all: bool = True,
        notes: Mapping[str, str] | None = None,
        most_gone: float = 1.0,
        allow_empty: bool = False,
    ) -> Posted:
        """Record the resources as they are, all or nothing; order does not matter.

        Raises:
            ConfigurationError: A larger part than ``most_gone`` would be deleted; or all would,
                because there is no resource, without ``allow_empty``.
            StorageError: Nothing was recorded.
        """


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
