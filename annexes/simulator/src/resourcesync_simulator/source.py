"""Simulated Source: publishes the origin, and answers requests.

The bytes of resources are made when they are read; packages are in files.
"""

import copy
import os
import random
import re
import tempfile
import weakref
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final
from zlib import crc32

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.documents.packages.planning import PackageSize
from resourcesync.errors import DiskFullError, ResourceSyncError, StorageError
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Link, Resource
from resourcesync.model.timestamps import to_microseconds
from resourcesync.source.clock_guard import check_clock
from resourcesync.source.document_writer import WrittenDocument
from resourcesync.source.dumps.dump_publisher import DumpPublisher
from resourcesync.source.publication_settings import PublicationSettings
from resourcesync.source.publisher import ListPublisher, OpenSource
from resourcesync.source.stored_plan import PublicationStep
from resourcesync_simulator.clock import SimulatedClock, SteppingClock
from resourcesync_simulator.faults import Crash, OnFault
from resourcesync_simulator.origin import BASE, SimulatedOrigin, SimulatedVersion
from resourcesync_simulator.scenario import Scenario, is_within

PACKAGE: Final = ".zip"
"""The suffix of packages."""


class SimulatedContents:
    """The bytes of the resources and of all former versions (``Contents``).

    So a Change Dump contains every version, as where versions are stored until they are packed.
    """

    def __init__(self, origin: SimulatedOrigin) -> None:
        self._origin = origin

    def contains(self, resource: Resource) -> bool:
        """True if such a version ever existed."""
        return self._body(resource) is not None

    def open(self, resource: Resource) -> BinaryIO | None:
        """Open the bytes of a version; the present ones when it never existed."""
        body = self._body(resource)
        name = resource.uri.removeprefix(self._origin.base)
        if body is None and (version := self._origin.versions.get(name)) is not None:
            body = self._origin.body(name, version)
        return None if body is None else BytesIO(body)

    def open_patch(self, patch: Link) -> BinaryIO | None:
        """Return ``None``: there are no patches."""
        del patch
        none: BinaryIO | None = None
        return none

    def measure(self, uri: str) -> Resource | None:
        """Measure the resource at a URI; ``None`` when there is none any more."""
        return self._origin.resource(uri.removeprefix(self._origin.base))

    def _body(self, resource: Resource) -> bytes | None:
        sha256 = next(digest.value for digest in resource.digests if digest.algorithm == "sha-256")
        name = resource.uri.removeprefix(self._origin.base)
        return self._origin.body_of(name, resource.length or 0, sha256)


class PackedDocuments:
    """A ``DocumentStore`` in memory, but for packages, which are as large as the resources."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writes = 0
        self._documents: dict[str, tuple[bytes, int]] = {}
        self._packages: dict[str, _PackedFile] = {}
        self.fault_hook: Callable[[str], None] = lambda _name: None
        """Called with the name of a document before and after it is written or removed; may raise.
        """

    def clone(self) -> "PackedDocuments":
        """Return a copy, for a later rollback of the Source."""
        other = copy.copy(self)
        other._documents = dict(self._documents)  # noqa: SLF001 - its own
        other._packages = dict(self._packages)  # noqa: SLF001 - its own
        return other

    def write(
        self, name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None = None
    ) -> int:
        """Put a whole document in place, if ``check`` accepts it; return its size."""
        self.fault_hook(name)
        self._writes += 1
        if name.endswith(PACKAGE):
            length = self._pack(name, chunks, check)
        else:
            content = b"".join(chunks)
            if check is not None:
                check(BytesIO(content))
            self._documents[name] = content, self._writes
            length = len(content)
        self.fault_hook(name)
        return length

    def _pack(
        self, name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None
    ) -> int:
        try:
            package = _PackedFile(self._folder, self._writes)
            with package.path.open("wb") as file:
                file.writelines(chunks)
            if check is not None:
                with package.path.open("rb") as stream:
                    check(stream)
            length = package.path.stat().st_size
        except OSError as error:
            raise StorageError(f"cannot write packages: {error.strerror}") from error
        self._packages[name] = package
        return length

    def open(self, name: str) -> BinaryIO | None:
        """Open a document for reading, or return ``None`` when there is none."""
        if name in self._packages:
            return self._packages[name].path.open("rb")
        return BytesIO(self._documents[name][0]) if name in self._documents else None

    def signature(self, name: str) -> str | None:
        """Return a value that changes with each write of the document; ``None`` without one."""
        if name in self._packages:
            return str(self._packages[name].number)
        return str(self._documents[name][1]) if name in self._documents else None

    def names(self) -> Iterator[str]:
        """Yield the names of the documents that exist."""
        return iter(sorted((*self._documents, *self._packages)))

    def delete(self, name: str) -> None:
        """Remove a document; it is no error when there is none."""
        self.fault_hook(name)
        self._documents.pop(name, None)
        self._packages.pop(name, None)
        self.fault_hook(name)


class _PackedFile:
    """A file that is deleted with the last reference to it."""

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        handle, path = tempfile.mkstemp(dir=folder)
        os.close(handle)
        self.path = Path(path)
        weakref.finalize(self, self.path.unlink, missing_ok=True)


_MOST_OLD_VERSIONS: Final = 4
_MOST_PACKED: Final = 10_000
"""Entries of one package, the same as where dumps are published."""
_DATETIME: Final = re.compile(rb' datetime="([^"]*)"')
_PART: Final = re.compile(rb"<sitemap>.*?</sitemap>", re.DOTALL)


class SimulatedAnswer(msgspec.Struct, frozen=True):
    """Answer of the Source."""

    body: bytes
    etag: str
    media_type: str = "application/xml"
    lastmod: datetime | None = None


class SavedSource(msgspec.Struct):
    """A former state of a Source: its lists and its resources."""

    catalogue: SourceCatalogue
    documents: PackedDocuments
    versions: dict[str, SimulatedVersion]
    listed: dict[str, str]


class SimulatedSource:
    """A Source that publishes an origin."""

    def __init__(
        self,
        origin: SimulatedOrigin,
        scenario: Scenario,
        documents: PackedDocuments,
        clock: SimulatedClock,
        on_listed: Callable[[str, str], None],
        on_fault: OnFault = lambda _fault, _what: None,
    ) -> None:
        self._on_listed = on_listed
        self._on_fault = on_fault
        self.origin = origin
        self.clock = SteppingClock(clock)
        self.published = 0
        """Number of publications that wrote something."""
        self.error = ""
        """The reason in a word why the last publication failed; empty when it did not."""
        self._true = clock
        self._settings, self._faults = scenario.publish, scenario.faults
        self._random = random.Random(f"source {scenario.seed}")  # noqa: S311 - a simulation
        self._fault_random = random.Random(f"woes {scenario.seed}")  # noqa: S311 - the same
        self._dropped = ""
        self._seed = scenario.seed
        self._catalogue = SourceCatalogue()
        self._documents = documents
        documents.fault_hook = self._maybe_fail
        self._contents = SimulatedContents(origin)
        self._packed_at: float | None = None
        self._listed: dict[str, str] = {}
        self._false: dict[str, None] = {}
        self._lengthened: dict[str, None] = {}
        self._is_healthy = False
        self._is_dead = False
        self._pending = dict.fromkeys(origin.versions)
        self._former: dict[str, deque[SimulatedVersion]] = {}
        self._older: dict[str, deque[bytes]] = {}
        self._moments: list[tuple[int, float]] = []

    def changed(self, name: str, before: SimulatedVersion | None) -> None:
        """Record a change of a resource."""
        self._pending[name] = None
        if before is not None:
            self._former.setdefault(name, deque(maxlen=_MOST_OLD_VERSIONS)).append(before)

    def publish(self, step: PublicationStep = PublicationStep.DUE) -> bool:
        """Publish the changes; return whether any document was written."""
        if step is PublicationStep.DUE and self._settings.strategy != "changes":
            step = PublicationStep.REBASE
        now = self.clock.now()
        self._dropped = ""
        self._is_dead = False
        try:
            step = check_clock(self._catalogue, now, step)
            self._record()
            dumped = self._pack()
            done = ListPublisher(self._opened()).publish(step)
        except (ResourceSyncError, Crash) as error:
            self.error = error.code if isinstance(error, ResourceSyncError) else "died"
            return False
        self.error = ""
        self._drop()
        self.published += bool(done.written)
        latest = self._catalogue.latest()
        if latest is not None:
            insort(self._moments, (to_microseconds(latest), self._true.elapsed))
        for written in (*dumped, *done.written):
            opened = self._documents.open(written.name)
            assert opened is not None
            self._older.setdefault(written.name, deque(maxlen=_MOST_OLD_VERSIONS)).append(
                opened.read()
            )
        return bool(done.written)

    def published_at(self, as_of: int) -> float:
        """Return the time of a moment of the Source's own clock, in seconds since the start."""
        place = bisect_right(self._moments, (as_of, float("inf"))) - 1
        return self._moments[place][1] if place >= 0 else 0.0

    def stop_faults(self) -> None:
        """End all faults; wrongly listed resources are listed again at the next publication."""
        self._is_healthy = True
        self._pending |= self._false | self._lengthened

    def save(self) -> SavedSource:
        """Return the present state, for a later rollback."""
        return SavedSource(
            catalogue=self._catalogue.clone(),
            documents=self._documents.clone(),
            versions=dict(self.origin.versions),
            listed=dict(self._listed),
        )

    def restore(self, saved: SavedSource) -> list[str]:
        """Restore a former state, lists and resources; return the names that may have changed."""
        before = dict(self.origin.versions)
        self._catalogue, self._documents = saved.catalogue, saved.documents
        for name in self._listed.keys() | saved.listed.keys():
            if self._listed.get(name) != saved.listed.get(name):
                self._on_listed(name, saved.listed.get(name, ""))
        self._listed = saved.listed
        self.origin.restore(saved.versions)
        names = before.keys() | saved.versions.keys()
        digests = {name: version.digest for name, version in saved.versions.items()}
        unlisted = digests.items() ^ self._listed.items()
        self._pending = dict.fromkeys(sorted({name for name, _ in unlisted}))
        return sorted(name for name in names if before.get(name) != saved.versions.get(name))

    def answer(self, path: str, *, stale: bool = False) -> SimulatedAnswer | None:
        """Return the answer for a path; ``None`` when nothing is there."""
        if path == self._dropped and not self._is_healthy:
            return None
        opened: BinaryIO | None = self._documents.open(path)
        if opened is not None:
            with opened:
                body = opened.read()
            if path.endswith(PACKAGE):  # a package never changes
                return SimulatedAnswer(body, f'"{path}"', "application/zip")
            older = self._older.get(path, ())
            if stale and older:
                body = next(iter(older))
            body = self._with_hole(self._without_times(body, path), path)
            return SimulatedAnswer(body, f'"{crc32(body):08x}{len(body):x}"')
        version = self.origin.versions.get(path)
        if stale and self._former.get(path):
            version = self._former[path][-1]
        if version is None:
            return None
        body = self.origin.body(path, version)
        return SimulatedAnswer(
            body, f'"{version.digest[:20]}"', version.media_type, version.lastmod
        )

    def _record(self) -> None:
        with self._catalogue.record(self.clock.now()) as recording:
            recording.advance_time()
            left: dict[str, None] = {}
            for name in self._pending:
                resource = self._listing(name, left)
                known = self._listed.get(name)
                if resource is None:
                    if known is not None:
                        recording.deleted(Resource(uri=self.origin.base + name))
                        del self._listed[name]
                        self._on_listed(name, "")
                    continue
                digest = resource.digests[0].value
                if known == digest and not (self._is_healthy and name in self._lengthened):
                    continue
                record = recording.created if known is None else recording.updated
                record(resource, "")
                self._listed[name] = digest
                self._on_listed(name, digest)
            self._pending = left

    def _listing(self, name: str, left: dict[str, None]) -> Resource | None:
        """Return the listed entry of a resource; ``None`` when there is none."""
        resource = self.origin.resource(name)
        if resource is None or self._is_healthy:
            return resource
        faults, luck = self._faults, self._random
        if faults.changed_while_listed and luck.random() < faults.changed_while_listed:
            self._on_fault("changed_while_listed", name)
            left[name] = None  # it changed while it was listed
            former = self._former.get(name)
            if former:
                digest = Digest("sha-256", former[-1].digest)
                resource = replace(resource, length=former[-1].length, digests=(digest,))
        if faults.wrong_hash and luck.random() < faults.wrong_hash:
            self._on_fault("wrong_hash", name)
            digest = Digest("sha-256", f"{luck.getrandbits(256):064x}")
            resource = replace(resource, digests=(digest,))
            self._false[name] = None
        if faults.wrong_length and self._fault_random.random() < faults.wrong_length:
            self._on_fault("wrong_length", name)
            resource = replace(resource, length=(resource.length or 0) + 1)
            self._lengthened[name] = None
        return resource

    def _pack(self) -> Sequence[WrittenDocument]:
        """Pack what is not packed yet, if it is time; return the documents that were written."""
        of, elapsed = self._settings, self._true.elapsed
        since = self._packed_at
        if not of.dumps or (since is not None and elapsed - since < of.dump_every):
            return ()
        self._packed_at = elapsed
        with self._catalogue.snapshot() as snapshot:
            last = snapshot.last_change()
        oldest = to_microseconds(self.clock.now()) - int(of.keep * 1_000_000) if of.keep else 0
        try:
            return self._dumps().publish(changes=of.strategy == "changes", oldest=oldest).written
        except ResourceSyncError as error:  # the lists go on, also where packing failed
            self._on_fault("unpacked", error.code)
            return ()
        finally:
            self._note_renewed(last)

    def _note_renewed(self, last: int) -> None:
        """Record the resources that changed between listing and packing."""
        with self._catalogue.snapshot() as snapshot:
            for _, change in snapshot.changes(after=last):
                name = change.resource.uri.removeprefix(self.origin.base)
                digest = change.resource.digests[0].value if change.resource.digests else ""
                if digest:
                    self._listed[name] = digest
                else:
                    self._listed.pop(name, None)
                self._on_listed(name, digest)

    def _dumps(self) -> DumpPublisher:
        of = self._settings
        size = PackageSize(max_bytes=of.max_package, max_entries=min(_MOST_PACKED, of.max_entries))
        return DumpPublisher(self._opened(), self._contents, size)

    def _opened(self) -> OpenSource:
        of = self._settings
        settings = PublicationSettings(
            url=self.origin.base,
            max_entries=of.max_entries,
            rotate=of.rotate,
            rebase_every=of.rebase,
            rebase_up_to=of.rebase_up_to,
            keep=of.keep,
            sitemap=of.strategy == "sitemap",
        )
        return OpenSource(
            catalogue=self._catalogue,
            documents=self._documents,
            settings=settings,
            clock=self.clock,
        )

    def _without_times(self, body: bytes, path: str) -> bytes:
        rate = self._faults.undated
        if not rate or b'capability="changelist"' not in body:
            return body
        bound = round(rate * (1 << 32))

        def retained(match: "re.Match[bytes]") -> bytes:
            return b"" if crc32(match[1], self._seed) < bound else match[0]

        without = _DATETIME.sub(retained, body)
        if without != body:
            self._on_fault("undated", path)
        return without

    def _with_hole(self, body: bytes, path: str) -> bytes:
        """Return an index of Change Lists as it is, or without one of them."""
        rate = self._faults.holes
        if not rate or self._is_healthy or b'capability="changelist"' not in body:
            return body
        anywhere = body.replace(self.origin.base.encode(), BASE.encode())
        parts, chance = list(_PART.finditer(body)), crc32(anywhere, self._seed)
        if not parts or chance >= round(rate * (1 << 32)):
            return body
        self._on_fault("holes", path)
        gone = parts[chance % len(parts)]
        return body[: gone.start()] + body[gone.end() :]

    def _drop(self) -> None:
        """Drop a document until the next publication, at random."""
        rate = self._faults.dropped
        if rate and not self._is_healthy and self._fault_random.random() < rate:
            self._dropped = self._fault_random.choice(list(self._documents.names()))
            self._on_fault("dropped", self._dropped)

    def _maybe_fail(self, name: str) -> None:
        """Pass the point before or after a document is written."""
        elapsed, faults = self._true.elapsed, self._faults
        if self._is_dead:  # code that runs while the stack unwinds has no effect
            raise Crash
        if self._is_healthy:
            return
        if is_within(elapsed, faults.source_disk_full):
            self._on_fault("source_disk_full", name)
            raise DiskFullError("no space is left", evidence=(("place", name),))
        if faults.source_crash and self._fault_random.random() < faults.source_crash:
            self._on_fault("source_crash", name)
            self._is_dead = True
            raise Crash
