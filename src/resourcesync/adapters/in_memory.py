"""The Source's ports and a clock in memory: for tests, the simulator, and trials without a disk.

Real implementations that keep every promise of the ports except durability.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from io import BytesIO
from itertools import count, islice
from typing import BinaryIO, NamedTuple

import msgspec

from resourcesync.errors import OriginalChangedError, StateError
from resourcesync.model.digests import Digest
from resourcesync.model.resources import Change, Resource, ResourceRun, without_patches
from resourcesync.model.timestamps import floor_to_second, from_microseconds, to_microseconds
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Clock
from resourcesync.ports.catalogue import Omission, Original


class ManualClock:
    """A ``Clock`` that moves only by its methods; ``sleep`` moves it.

    Args:
        start: The present moment, aware; the end of 2025 by default.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or from_microseconds(1_767_139_200_000_000)
        self._elapsed = 0.0

    def now(self) -> datetime:
        """Return the present moment, aware, in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Return the elapsed seconds; setting the clock back does not reduce them."""
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass at once."""
        self._elapsed += max(0.0, seconds)
        self._now += timedelta(seconds=max(0.0, seconds))

    def advance(self, *, hours: float = 0, seconds: float = 0) -> None:
        """Let time pass."""
        self.sleep(hours * 3_600 + seconds)

    def set(self, moment: datetime) -> None:
        """Set the clock, forwards or back, as an operator may do; no time passes."""
        self._now = moment


class _StoredOriginal(msgspec.Struct, frozen=True):
    content: bytes
    lastmod: datetime
    version: int


class MemoryOriginals:
    """Originals in a dictionary.

    Args:
        clock: Dates the originals.
        trusted: Return fingerprints; without them every scan measures everything.
        media_type: The media type of all originals.
    """

    def __init__(
        self, clock: Clock, *, trusted: bool = True, media_type: str = "text/plain"
    ) -> None:
        self._clock = clock
        self._trusted = trusted
        self._media_type = media_type
        self._stored: dict[str, _StoredOriginal] = {}
        self._versions = 0
        self.measured = 0
        """Number of times that bytes were read."""

    def put(self, uri: str, content: bytes) -> None:
        """Create an original, or replace its bytes, as of now."""
        self._versions += 1
        lastmod = floor_to_second(self._clock.now())
        self._stored[uri] = _StoredOriginal(content, lastmod, self._versions)

    def remove(self, uri: str) -> None:
        """Remove an original; it is no error when there is none."""
        self._stored.pop(uri, None)

    def contents(self) -> dict[str, bytes]:
        """Return a copy of everything: URI to bytes."""
        return {uri: held.content for uri, held in self._stored.items()}

    def open(self, uri: str) -> BinaryIO | None:
        """Open an original for reading; ``None`` when there is none."""
        held = self._stored.get(uri)
        return None if held is None else BytesIO(held.content)

    def scan(self) -> Iterator[Original]:
        """Yield every original in rising URI order."""
        for uri, held in sorted(self._stored.items()):
            yield Original(
                uri=uri,
                fingerprint=self._fingerprint(held),
                length=len(held.content),
                lastmod=held.lastmod,
                media_type=self._media_type,
            )

    def measure(self, original: Original) -> tuple[Resource, str]:
        """Return the resource with its sha-256, and its fingerprint.

        Raises:
            OriginalChangedError: It is gone.
        """
        held = self._stored.get(original.uri)
        if held is None:
            raise OriginalChangedError(f"{original.uri} is no longer there")
        self.measured += 1
        resource = Resource(
            uri=original.uri,
            lastmod=held.lastmod,
            length=len(held.content),
            digests=(Digest("sha-256", hashlib.sha256(held.content).hexdigest()),),
            media_type=self._media_type,
        )
        return resource, self._fingerprint(held)

    def omissions(self) -> Sequence[Omission]:
        """Return nothing: every original is published."""
        return ()

    def _fingerprint(self, held: _StoredOriginal) -> str:
        return str(held.version) if self._trusted else ""


class MemoryEntry(NamedTuple):
    """A recorded resource, with the fingerprint of its original."""

    resource: Resource
    fingerprint: str


class MemoryCatalogue:
    """A ``Catalogue`` in dictionaries; a recording that fails leaves no trace."""

    def __init__(self) -> None:
        self._resources: dict[str, MemoryEntry] = {}
        self._changes: list[Change] = []
        self._forgotten = 0
        self._notes: dict[str, str] = {}
        self._latest: int | None = None
        self._edits: dict[str, int] = {}
        self._last_edit = 0

    def fingerprints(self) -> Iterator[tuple[str, str]]:
        """Yield each URI with the fingerprint of its original, as when the reading began."""
        held = self._resources
        for uri in sorted(held):
            yield uri, held[uri].fingerprint

    def find(self, uri: str) -> Resource | None:
        """Return a resource as it was last recorded; ``None`` if it is not known."""
        held = self._resources.get(uri)
        return None if held is None else held.resource

    @contextmanager
    def record(self, now: datetime) -> Iterator["MemoryRecording"]:
        """Open the one writing transaction; it commits when the block ends without an error."""
        recording = MemoryRecording(self._resources, to_microseconds(now), self._latest)
        yield recording
        if self._latest is not None:
            numbers = range(self._last_edit + 1, self._last_edit + 1 + len(recording.edited))
            self._edits = {**self._edits, **dict(zip(recording.edited, numbers, strict=True))}
            self._last_edit += len(recording.edited)
        self._resources = recording.resources
        self._changes = [*self._changes, *recording.changes]
        self._latest = recording.latest

    @contextmanager
    def snapshot(self) -> Iterator["MemorySnapshot"]:
        """Open a consistent view.

        Raises:
            StateError: Nothing was ever recorded.
        """
        if self._latest is None:
            raise StateError("nothing was recorded yet", hint="scan the originals first")
        yield MemorySnapshot(
            from_microseconds(self._latest),
            self._resources,
            self._changes,
            self._edits,
            self._forgotten,
        )

    def forget_edits(self, last: int) -> None:
        """Delete the edits up to a number."""
        self._edits = {uri: number for uri, number in self._edits.items() if number > last}

    def forget_changes(self, last: int) -> bool:
        """Delete the changes up to a number."""
        gone = max(0, min(last - self._forgotten, len(self._changes)))
        self._changes = self._changes[gone:]
        self._forgotten += gone
        return False

    def latest(self) -> datetime | None:
        """Return the latest time that was assigned, ``None`` before the first."""
        return None if self._latest is None else from_microseconds(self._latest)

    def rewind(self, moment: datetime) -> None:
        """Delete the changes dated later than a moment; later ones are dated from there again."""
        self._changes = [
            change for change in self._changes if change.time is not None and change.time <= moment
        ]
        self._latest = to_microseconds(moment)

    def note(self, key: str) -> str | None:
        """Return a note of the publisher, or ``None``."""
        return self._notes.get(key)

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Store notes of the publisher, all or none."""
        self._notes = {**self._notes, **notes}


class MemoryRecording:
    """The writing half of one transaction, made by ``MemoryCatalogue.record``."""

    def __init__(self, resources: dict[str, MemoryEntry], now: int, latest: int | None) -> None:
        self.resources = dict(resources)
        self.changes: list[Change] = []
        self.edited: dict[str, None] = {}
        """The URIs that were written or removed."""
        self._is_first = latest is None
        self._moment = now if latest is None else max(now, latest + 1)
        self._before = latest
        self._wrote = self._is_first

    @property
    def latest(self) -> int | None:
        """The latest time assigned so far."""
        return self._moment + max(0, len(self.changes) - 1) if self._wrote else self._before

    def created(self, resource: Resource, fingerprint: str) -> None:
        """Record a new resource, and the change unless this is the first recording."""
        self.touched(resource, fingerprint)
        self._append(ChangeKind.CREATED, resource)

    def created_run(self, resources: ResourceRun, fingerprints: Sequence[str]) -> None:
        """Record new resources, each with its fingerprint, as ``created`` does."""
        for resource, fingerprint in zip(resources, fingerprints, strict=True):
            self.created(resource, fingerprint)

    def updated(self, resource: Resource, fingerprint: str) -> None:
        """Record new bytes of a known resource, and the change."""
        self.touched(resource, fingerprint)
        self._append(ChangeKind.UPDATED, resource)

    def deleted(self, resource: Resource) -> None:
        """Record that a resource is gone, and the change, which has only its URI."""
        self._wrote = True
        self.resources.pop(resource.uri, None)
        self.edited[resource.uri] = None
        self._append(ChangeKind.DELETED, Resource(uri=resource.uri))

    def touched(self, resource: Resource, fingerprint: str) -> None:
        """Record a new fingerprint or ``lastmod`` of equal bytes; that is no change."""
        self._wrote = True
        self.resources[resource.uri] = MemoryEntry(without_patches(resource), fingerprint)
        self.edited[resource.uri] = None

    def advance_time(self) -> None:
        """Record that the moment of this recording is over: all later changes are later."""
        self._wrote = True

    def _append(self, kind: ChangeKind, resource: Resource) -> None:
        if not self._is_first:
            time = from_microseconds(self._moment + len(self.changes))
            self.changes.append(Change(kind=kind, time=time, resource=resource))


class MemorySnapshot(msgspec.Struct, frozen=True):
    """A consistent view (``Snapshot``); made by ``MemoryCatalogue.snapshot``."""

    at: datetime
    _resources: dict[str, MemoryEntry]
    _changes: list[Change]
    _edits: dict[str, int]
    _forgotten: int

    def resources(self, start: str = "", end: str | None = None) -> Iterator[Resource]:
        """Yield the resources in rising URI order, those from ``start`` up to before ``end``."""
        for uri in sorted(self._resources):
            if uri >= start and (end is None or uri < end):
                yield self._resources[uri].resource

    def batches(self, start: str = "", end: str | None = None) -> Iterator[Sequence[Resource]]:
        """Yield the same in batches: small at first, so a few resources also make several."""
        resources = self.resources(start, end)
        for size in count(2):
            if not (run := list(islice(resources, size))):
                return
            yield run

    def edits(self) -> Iterator[tuple[str, Resource | None]]:
        """Yield each edited URI with its resource, ``None`` when it is gone, in URI order."""
        for uri in sorted(self._edits):
            held = self._resources.get(uri)
            yield uri, None if held is None else held.resource

    def last_edit(self) -> int:
        """Return the number up to which the edits of this view may be deleted."""
        return max(self._edits.values(), default=0)

    def changes(self, after: int = 0) -> Iterator[tuple[int, Change]]:
        """Yield ``(sequence number, change)`` in order of time, those after number ``after``."""
        numbered = enumerate(self._changes, start=self._forgotten + 1)
        return iter(list(numbered)[max(0, after - self._forgotten) :])

    def count(self, most: int | None = None) -> int:
        """Return the number of resources, or ``most`` when there are more."""
        held = len(self._resources)
        return held if most is None else min(held, most)

    def last_change(self) -> int:
        """Return the newest change's sequence number, 0 when there is none."""
        return self._forgotten + len(self._changes)


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
