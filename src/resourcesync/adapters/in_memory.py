"""The Source's ports and a clock in memory: for tests, the simulator, and trials without a disk.

Real implementations that keep every promise of the ports except durability.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from io import BytesIO
from itertools import count, islice
from typing import BinaryIO, NamedTuple

import msgspec

from resourcesync.errors import StateError
from resourcesync.model.resources import Change, Resource, ResourceRun, without_patches
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import ChangeKind


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
        """Open a consistent view."""
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
