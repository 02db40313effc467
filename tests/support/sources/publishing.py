"""A small Source in memory, and a reader that follows its links as a Destination would."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from typing import BinaryIO

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.documents import reader
from resourcesync.model.digests import Digest
from resourcesync.model.entries import CapabilityEntry, Change, Header, Part, Resource
from resourcesync.model.vocabulary import Capability, ChangeKind, Relation
from resourcesync.ports.documents import DocumentStore
from resourcesync.ports.originals import Originals
from resourcesync.source import naming
from resourcesync.source.naming import DESCRIPTION, FOLDER
from resourcesync.source.paging import PageLimits
from resourcesync.source.publication_settings import Policy
from resourcesync.source.publisher import ListPublisher, Publication
from resourcesync.source.scan_for_changes import ScanReport, scan
from resourcesync.source.stored_plan import PublicationStep
from tests.support.documents.text import tell
from tests.support.in_memory import ManualClock, MemoryDocuments, MemoryOriginals
from tests.support.sources.opened import open_source

BASE = "https://h.example/data/"
DOCUMENTS = BASE + "resourcesync/"
ABOUT_URI = DOCUMENTS + "about.xml"


@dataclass
class Source:
    """Originals, catalogue and documents in memory, with a clock that is set by hand."""

    limits: PageLimits = field(default_factory=PageLimits)
    policy: Policy = field(default_factory=Policy)
    clock: ManualClock = field(default_factory=ManualClock)
    catalogue: SourceCatalogue = field(default_factory=SourceCatalogue)
    documents: DocumentStore = field(default_factory=MemoryDocuments)
    originals: MemoryOriginals = field(init=False)

    def __post_init__(self) -> None:
        self.originals = MemoryOriginals(self.clock)

    def put(self, *names: str, content: str = "") -> None:
        for name in names:
            self.originals.put(BASE + name, f"{name} {content}".encode())

    def remove(self, *names: str) -> None:
        for name in names:
            self.originals.remove(BASE + name)

    def scan(self) -> ScanReport:
        return scan(self.originals, self.catalogue, self.clock.now())

    def publish(
        self, documents: DocumentStore | None = None, step: PublicationStep = PublicationStep.DUE
    ) -> Publication:
        """Scan and publish, a minute after the last time, with a publisher of its own."""
        self.clock.advance(seconds=60)
        self.scan()
        return self.publish_only(documents, step)

    def publish_only(
        self, documents: DocumentStore | None = None, step: PublicationStep = PublicationStep.DUE
    ) -> Publication:
        documents = self.documents if documents is None else documents
        parts = (self.limits, self.policy)
        source = open_source(self.catalogue, documents, self.clock, BASE, *parts)
        return ListPublisher(source).publish(step)

    def contents(self) -> dict[str, bytes]:
        return {
            name: content_of(self.documents, name)
            for name in self.documents.names()
            if name != naming.ABOUT
        }

    def truth(self) -> dict[str, str]:
        return digests(self.originals)


def digests(originals: Originals) -> dict[str, str]:
    return {item.uri: originals.measure(item)[0].digests[0].value for item in originals.scan()}


def content_of(documents: DocumentStore, name: str) -> bytes:
    stream = documents.open(name)
    assert stream is not None, f"{name} is listed and is not there"
    with stream:
        return stream.read()


@dataclass
class View:
    """What a reader found by following links, each document read once."""

    at: datetime
    resources: dict[str, Resource]
    changes: list[Change]
    start: datetime

    def current(self) -> dict[str, str]:
        """The sha-256 of each resource after applying the changes since the Resource List."""
        state = {uri: value_of(resource.digests) for uri, resource in self.resources.items()}
        for change in self.changes:
            assert change.time is not None
            if change.time <= self.at:
                continue
            if change.kind is ChangeKind.DELETED:
                assert state.pop(change.uri, None) is not None
            else:
                assert (change.uri in state) is (change.kind is ChangeKind.UPDATED)
                state[change.uri] = value_of(change.resource.digests)
        return state


def value_of(found: tuple[Digest, ...]) -> str:
    (digest,) = found
    assert digest.algorithm == "sha-256"
    return digest.value


def name_of(uri: str) -> str:
    if uri == BASE + DESCRIPTION:
        return DESCRIPTION
    assert uri.startswith(DOCUMENTS)
    return FOLDER + uri.removeprefix(DOCUMENTS)


class Reader:
    """Follows links from the Source Description; every promise of the set is an assertion."""

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents
        self.read: list[str] = []

    def view(self) -> View:
        description, entries = self._open(BASE + DESCRIPTION, Capability.DESCRIPTION)
        assert [link.href for link in description.described_by] == [ABOUT_URI]
        (capability_list,) = entries
        assert isinstance(capability_list, CapabilityEntry)
        header, entries = self._open(capability_list.uri, Capability.CAPABILITY_LIST)
        assert header.link(Relation.UP) == BASE + DESCRIPTION
        targets = {}
        for entry in entries:
            assert isinstance(entry, CapabilityEntry)
            targets[entry.capability] = entry.uri
        self._above = capability_list.uri
        at, resources = self._resource_list(targets.pop(Capability.RESOURCE_LIST))
        archives = {kind: uri for kind, uri in targets.items() if kind and kind.is_archive}
        past = {kind: self._archive(kind, uri) for kind, uri in archives.items()}
        if Capability.CHANGE_LIST in targets:
            start, changes = self._change_list(targets.pop(Capability.CHANGE_LIST))
        elif Capability.CHANGE_LIST_ARCHIVE in past:
            start, changes = self._lists(None, past.pop(Capability.CHANGE_LIST_ARCHIVE))
        else:
            start, changes = at, []  # no run has listed changes yet
        self._check_past(past)
        assert set(targets) == set(archives)
        assert start <= at
        return View(at=at, resources=resources, changes=changes, start=start)

    def _archive(self, kind: Capability, uri: str) -> list[Part]:
        header, entries = self._open(uri, kind)
        assert header.link(Relation.UP) == self._above
        parts = [item for item in entries if isinstance(item, Part)]
        assert len(parts) == len(entries)
        return parts

    def _check_past(self, past: dict[Capability, list[Part]]) -> None:
        for part in past.get(Capability.RESOURCE_LIST_ARCHIVE, []):
            at, _ = self._resource_list(part.uri, DOCUMENTS + "resourcelist.xml")
            assert at == part.at
        for part in past.get(Capability.CHANGE_LIST_ARCHIVE, []):
            header, _ = self._open(part.uri, Capability.CHANGE_LIST)
            assert (header.from_, header.until) == (part.from_, part.until)

    def _resource_list(self, uri: str, index: str = "") -> tuple[datetime, dict[str, Resource]]:
        header, entries = self._open(uri, Capability.RESOURCE_LIST)
        assert header.at is not None
        assert header.link(Relation.INDEX) is None
        found: list[Resource] = []
        if header.is_index:
            for part in entries:
                assert isinstance(part, Part)
                assert part.at == header.at
                content = content_of(self._documents, part.uri.removeprefix(BASE))
                assert part.digests == (Digest("sha-256", sha256(content).hexdigest()),)
                part_header, resources = self._open(part.uri, Capability.RESOURCE_LIST)
                assert part_header.at == header.at
                assert part_header.link(Relation.INDEX) == (index or uri)
                assert not part_header.is_index
                found += [item for item in resources if isinstance(item, Resource)]
        else:
            found = [item for item in entries if isinstance(item, Resource)]
        assert [item.uri for item in found] == sorted({item.uri for item in found})
        return header.at, {item.uri: item for item in found}

    def _change_list(self, uri: str) -> tuple[datetime, list[Change]]:
        header, entries = self._open(uri, Capability.CHANGE_LIST)
        assert header.from_ is not None
        assert header.until is None
        assert header.link(Relation.INDEX) is None
        if header.is_index:
            start, changes = self._lists(uri, [item for item in entries if isinstance(item, Part)])
            assert start == header.from_
            return start, changes
        return header.from_, self._in_order(header.from_, [(header, entries)])

    def _lists(self, index: str | None, parts: list[Part]) -> tuple[datetime, list[Change]]:
        start = parts[0].from_
        assert start is not None
        return start, self._in_order(start, list(self._parts(index, start, parts)))

    def _in_order(self, start: datetime, lists: list[tuple[Header, list[object]]]) -> list[Change]:
        changes = [item for _, items in lists for item in items if isinstance(item, Change)]
        assert len(changes) == sum(len(items) for _, items in lists)
        times = [change.time for change in changes if change.time is not None]
        assert len(times) == len(changes)
        assert all(moment < other for moment, other in itertools.pairwise(times))
        assert all(time > start for time in times)
        return changes

    def _parts(
        self, index: str | None, start: datetime, parts: list[Part]
    ) -> Iterator[tuple[Header, list[object]]]:
        reached: datetime | None = start
        for position, part in enumerate(parts, start=1):
            assert part.from_ == reached
            assert part.until is not None or position == len(parts)
            header, changes = self._open(part.uri, Capability.CHANGE_LIST)
            assert header.from_ == part.from_
            assert index is None or header.link(Relation.INDEX) == index
            if part.until is not None:
                assert header.until == part.until
            for change in changes:
                assert isinstance(change, Change)
                assert change.time is not None
                assert header.from_ is not None
                assert header.from_ < change.time
                assert header.until is None or change.time <= header.until
            reached = part.until
            yield header, changes

    def _open(self, uri: str, capability: Capability) -> tuple[Header, list[object]]:
        name = name_of(uri)
        header, entries = _parsed(content_of(self._documents, name), uri)
        self.read.append(name)
        assert header.capability is capability
        if capability in {Capability.RESOURCE_LIST, Capability.CHANGE_LIST}:
            assert header.link(Relation.UP) == self._above
        return header, list(entries)


@lru_cache(maxsize=256)
def _parsed(data: bytes, uri: str) -> tuple[Header, tuple[object, ...]]:
    """Read a document; one that was read before, and is the same, says the same."""
    document = reader.read(BytesIO(data), uri=uri)
    entries = tuple(document.entries())
    assert document.refused == 0
    return document.header, entries


class Killed(BaseException):
    """The process is gone: nothing of it may run on."""


class DyingDocuments:
    """A store whose process is killed at one of its steps."""

    def __init__(self, documents: DocumentStore, steps: int) -> None:
        self._documents = documents
        self._left = steps

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Killed

    def write(
        self, name: str, chunks: Iterable[bytes], check: Callable[[BinaryIO], None] | None = None
    ) -> int:
        self._step()
        size = self._documents.write(name, self._through(chunks), check)
        self._step()
        return size

    def _through(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for number, chunk in enumerate(chunks):
            if number == 1:
                self._step()
            yield chunk

    def delete(self, name: str) -> None:
        self._step()
        self._documents.delete(name)
        self._step()

    def open(self, name: str) -> BinaryIO | None:
        return self._documents.open(name)

    def signature(self, name: str) -> str | None:
        return self._documents.signature(name)

    def names(self) -> Iterator[str]:
        return self._documents.names()


SMALL = PageLimits(max_entries=3)


def names_of(publication: Publication) -> list[str]:
    return [written.name for written in publication.written]


def view(source: Source) -> dict[str, str]:
    return Reader(source.documents).view().current()


def header_of(source: Source, name: str) -> Header:
    return tell(content_of(source.documents, name)).header


def split_source() -> Source:
    source = Source(limits=SMALL)
    source.put(*"abcdefg")
    source.publish()
    source.put(*"hijk")
    source.publish()
    return source


def files_of(source: Source) -> list[str]:
    """The folder of documents, as ``ls`` shows it, but for the page about the set."""
    names = [name for name in source.documents.names() if name.startswith("resourcesync/")]
    return sorted(name.removeprefix("resourcesync/") for name in names if name != naming.ABOUT)


def offered(source: Source) -> list[Capability | None]:
    entries = tell(content_of(source.documents, naming.CAPABILITY_LIST)).entries
    return [entry.capability for entry in entries if isinstance(entry, CapabilityEntry)]


def parts_of(source: Source, name: str) -> list[Part]:
    entries = tell(content_of(source.documents, name)).entries
    return [entry for entry in entries if isinstance(entry, Part)]
