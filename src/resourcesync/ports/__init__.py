"""What the package needs from the world: small protocols, each with adapters behind it.

``Originals`` and ``Copies`` are the two words the specification lacks: the resources as a Source
has them, and the resources as a Destination holds them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import BinaryIO, NamedTuple, Protocol

from resourcesync.errors import SourceError, StorageError
from resourcesync.model.digests import Digest
from resourcesync.model.resources import Change, Resource


class Clock(Protocol):
    """Time, so that nobody else asks the machine for it."""

    def now(self) -> datetime:
        """Return the present moment, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back, for durations."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait ``seconds``."""
        ...


# --- Source side -------------------------------------------------------------------------------


class Original(NamedTuple):
    """What a look from outside tells of one original: nothing of it was read.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """Something in the tree that is not published, and why (a symlink out of it, a socket)."""

    name: str
    reason: str


class Originals(Protocol):
    """The resources as the Source has them."""

    def scan(self) -> Iterator[Original]:
        """Yield every original in rising URI order, without reading their bytes.

        Raises:
            StorageError: The originals cannot be listed; a scan that failed is not a shorter scan.
        """
        ...

    def measure(self, original: Original) -> tuple[Resource, str]:
        """Read the bytes once; return the resource with its digests, and its fingerprint.

        Raises:
            OriginalChangedError: It changed or vanished meanwhile; leave it for the next run.
        """
        ...

    def omissions(self) -> Sequence[Omission]:
        """Return what the last scan left out."""
        ...


class Catalogued(Protocol):
    """A resource in the catalogue: what was last recorded of it.

    The resource itself is made when it is asked for: most scans need very few.
    """

    @property
    def uri(self) -> str:
        """The resource's URI."""
        ...

    @property
    def fingerprint(self) -> str:
        """The original's fingerprint then; empty when there was none."""
        ...

    @property
    def resource(self) -> Resource:
        """The resource as it was recorded."""
        ...


class Recording(Protocol):
    """One transaction that brings the catalogue in step with the originals."""

    def created(self, resource: Resource, fingerprint: str) -> None:
        """Record a new resource, and the change unless this is the first recording."""
        ...

    def updated(self, resource: Resource, fingerprint: str) -> None:
        """Record new bytes of a known resource, and the change."""
        ...

    def deleted(self, resource: Resource) -> None:
        """Record that a resource is gone, and the change."""
        ...

    def touched(self, resource: Resource, fingerprint: str) -> None:
        """Record a new fingerprint or ``lastmod`` of equal bytes; that is no change."""
        ...


class Snapshot(Protocol):
    """One consistent view of the catalogue: a read transaction."""

    @property
    def at(self) -> datetime:
        """The moment that this view includes every change up to; all later changes are later."""
        ...

    def resources(self) -> Iterator[Resource]:
        """Yield the resources in rising URI order."""
        ...

    def changes(self, after: int = 0) -> Iterator[tuple[int, Change]]:
        """Yield ``(sequence number, change)`` in order of time, those after number ``after``."""
        ...

    def count(self) -> int:
        """Return the number of resources."""
        ...

    def last_change(self) -> int:
        """Return the newest change's sequence number, 0 when there is none."""
        ...


class Catalogue(Protocol):
    """The Source's memory: a snapshot of the resources and the log of their changes."""

    def catalogued(self) -> Iterator[Catalogued]:
        """Yield what is recorded, in rising URI order."""
        ...

    def record(self, now: datetime) -> AbstractContextManager[Recording]:
        """Open the one writing transaction; it commits when the block ends without an error.

        Every change gets a time of its own, strictly later than all before it, at least ``now``.
        """
        ...

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Open a consistent view."""
        ...

    def note(self, key: str) -> str | None:
        """Return a value of the publisher's own bookkeeping, or ``None``."""
        ...

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Store values of the publisher's own bookkeeping, all or none."""
        ...


class DocumentStore(Protocol):
    """Where a Source's documents are put for the world to read. Names are relative, with ``/``."""

    def write(self, name: str, chunks: Iterable[bytes]) -> int:
        """Put a whole document in place, durably and at once; return its bytes.

        A reader sees the old document or the new one, never a part. What ``chunks`` raises
        passes, and leaves what was there as it was.

        Raises:
            StorageError: It could not be written; what was there is still there.
        """
        ...

    def open(self, name: str) -> BinaryIO | None:
        """Open a document for reading, or return ``None`` when there is none."""
        ...

    def signature(self, name: str) -> str | None:
        """Return what changes whenever the document does, cheaply; ``None`` if there is none."""
        ...

    def names(self) -> Iterator[str]:
        """Yield the names of the documents that exist."""
        ...

    def delete(self, name: str) -> None:
        """Remove a document; it is no error when there is none."""
        ...


# --- Network -----------------------------------------------------------------------------------


class Purpose(StrEnum):
    """Why something is fetched: it decides limits and secrets."""

    DISCOVERY = "discovery"
    DOCUMENT = "document"
    RESOURCE = "resource"


class Sink(Protocol):
    """Takes the bytes of one response as they come."""

    def write(self, chunk: bytes) -> None:
        """Take the next bytes.

        Raises:
            StorageError: They cannot be kept; this fetch ends, the others go on.
        """
        ...

    def restart(self) -> None:
        """Forget all bytes so far: the transfer starts again from the first byte."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request:
    """One thing to fetch with GET.

    Attributes:
        uri: Absolute http or https URI, sent as written.
        sink: Takes the body of a 200 answer. It never sees the body of any other status.
        purpose: Why; decides limits, compression (documents only) and secrets.
        etag: Send ``If-None-Match`` with this value when not empty.
        last_modified: Send ``If-Modified-Since`` with this value when not empty.
        limit: Most bytes of the body to accept (decoded); ``None`` takes the purpose's default.
        uncached: Ask caches on the way for a fresh copy.
    """

    uri: str
    sink: Sink
    purpose: Purpose = Purpose.RESOURCE
    etag: str = ""
    last_modified: str = ""
    limit: int | None = None
    uncached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Response:
    """The end of a fetch: 200 with the whole body in the sink, or 304.

    Attributes:
        request: What was asked.
        status: 200 or 304.
        uri: Where the answer came from, after redirects.
        headers: The final answer's fields, names in lower case; the first value counts, but
            ``link`` joins all of them with commas.
        received: Bytes of the body as handed to the sink.
        tries: Requests it took, redirects not counted.
    """

    request: Request
    status: int
    uri: str
    headers: Mapping[str, str] = field(default_factory=dict)
    received: int = 0
    tries: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Failure:
    """The end of a fetch that did not work out, after all the tries it deserved."""

    request: Request
    error: SourceError | StorageError
    tries: int = 1


class Fetcher(Protocol):
    """Fetches many things at a time, politely, within limits."""

    def fetch(self, requests: Iterable[Request]) -> Iterator[Response | Failure]:
        """Carry out the requests; yield each outcome as it comes, in no order.

        ``requests`` is read lazily, a few ahead of what is in flight, so it may be endless or
        depend on earlier outcomes. Closing the iterator gives up what is in flight.
        Never raises for a single request.
        """
        ...


# --- Destination side --------------------------------------------------------------------------


class Staged(Protocol):
    """A copy on its way: bytes beside the mirror, hashed as they come. It is also a ``Sink``."""

    def write(self, chunk: bytes) -> None:
        """Take the next bytes."""
        ...

    def restart(self) -> None:
        """Forget all bytes so far."""
        ...

    def seal(self) -> tuple[int, tuple[Digest, ...]]:
        """End the writing; return the length in bytes and the digests asked for."""
        ...

    def discard(self) -> None:
        """Throw the bytes away; it is no error to do so twice."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """One staged copy and where it goes.

    Attributes:
        staged: The sealed bytes.
        path: The copy's path in the mirror, relative, with ``/``.
        lastmod: Modification time to give the copy, UTC; ``None`` leaves it.
        replaces: What the mirror's state says is there now (its stat signature), or ``None``
            when it says nothing is. A file that is neither is moved to quarantine, not lost.
    """

    staged: Staged
    path: str
    lastmod: datetime | None = None
    replaces: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """One copy to take away, and what the mirror's state says is there (its stat signature)."""

    path: str
    signature: str


class Copies(Protocol):
    """The resources as the Destination holds them: bytes at paths, nothing outside one root."""

    def stage(self, algorithms: Sequence[str]) -> Staged:
        """Start a copy beside the mirror; digests are computed while the bytes pass."""
        ...

    def install(self, batch: Sequence[Installation]) -> list[str | StorageError]:
        """Put a batch in place durably; return for each its stat signature or its error.

        When it returns, the new bytes and their names survive a power cut.
        """
        ...

    def remove(self, batch: Sequence[Removal], reason: str) -> list[str | StorageError]:
        """Move a batch to the trash durably; return for each where it went (empty: nothing there).

        A file that is not the one the signature tells of is left alone and reported as an error.
        """
        ...

    def signature(self, path: str) -> str | None:
        """Return the stat signature of the copy at ``path``, or ``None`` when there is none."""
        ...

    def digest(self, path: str, algorithms: Sequence[str]) -> tuple[int, tuple[Digest, ...]] | None:
        """Read a copy; return its length and digests, or ``None`` when there is none."""
        ...

    def paths(self) -> Iterator[str]:
        """Yield the path of every file in the mirror, in no order, its own folder left out."""
        ...


Reporter = Callable[[str, Mapping[str, object]], None]
"""Takes ``(event, fields)`` while a run goes on; what an embedder or the command line shows."""
