"""A Source in memory that publishes its lists and its dumps."""

import hashlib
from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO

from resourcesync.documents.packages.planning import PackageSize
from resourcesync.documents.packages.reader import PackageReader, open_package
from resourcesync.documents.reader import read
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Change, Entry, Header, Package, Part, Resource
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports.documents import SecondProcess
from resourcesync.source import naming
from resourcesync.source.dumps.dump_publisher import DumpOutcome, DumpPublisher
from resourcesync.source.paging import PageLimits
from resourcesync.source.present_contents import PresentContents
from tests.support.in_memory import MemoryOriginals
from tests.support.sources.opened import open_source
from tests.support.worlds.network import BASE
from tests.support.worlds.published_source import PublishedSource


class _Dripping(BytesIO):
    """A file that gives fewer bytes than are asked for, as a disk may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size, 7) if size else size)


class _Contents(PresentContents):
    """The present contents; some of them are another thing each time they are looked at."""

    def __init__(self, originals: MemoryOriginals, restless: set[str]) -> None:
        super().__init__(originals)
        self._restless = restless
        self._drips = False
        self._looks = 0

    def open(self, resource: Resource) -> BinaryIO | None:
        if resource.uri in self._restless:
            self._looks += 1
            return BytesIO(f"look {self._looks}".encode())
        stream = super().open(resource)
        self._drips = not self._drips
        return _Dripping(stream.read()) if stream is not None and self._drips else stream


class DumpedSource(PublishedSource):
    """A Source of our own in memory, which publishes dumps as well."""

    def __init__(self, *, size: PackageSize, limits: PageLimits | None = None) -> None:
        super().__init__()
        self.limits = limits or PageLimits()
        # URIs of resources that are another thing each time they are looked at
        self.restless: set[str] = set()
        self.second: SecondProcess | None = None  # packs every other package, if it is there
        self._size = size

    def dump(
        self, *, resources: bool = True, changes: bool = False, oldest: int = 0, archive: int = 0
    ) -> DumpOutcome:
        source = open_source(
            self.catalogue,
            self.documents,
            self.clock,
            BASE,
            self.limits,
            archive=archive / 1_000_000,
        )
        contents = _Contents(self.originals, self.restless)
        return DumpPublisher(source, contents, self._size, self.second).publish(
            resources=resources, changes=changes, oldest=oldest
        )

    def now(self) -> int:
        return to_microseconds(self.clock.now())

    @staticmethod
    def uri(name: str) -> str:
        return BASE + name

    def bytes_of(self, name: str) -> bytes:
        stream = self.documents.open(name)
        assert stream is not None, name
        return stream.read()

    def told(self, name: str) -> tuple[Header, list[Entry]]:
        document = read(BytesIO(self.bytes_of(name)), uri=self.uri(name))
        return document.header, list(document.entries())

    def packages(self, name: str = naming.RESOURCE_DUMP) -> list[Package]:
        found: list[Package] = []
        for entry in self.told(name)[1]:
            if isinstance(entry, Part):
                found += self.packages(entry.uri.removeprefix(BASE))
            elif isinstance(entry, Package):
                found.append(entry)
        return found

    def opened(self, package: Package) -> PackageReader:
        name = naming.FOLDER + package.uri.rpartition("/")[2]  # also of another base
        return open_package(BytesIO(self.bytes_of(name)), uri=package.uri)

    def members(
        self, name: str = naming.RESOURCE_DUMP
    ) -> Iterator[tuple[Package, Resource | Change, bytes]]:
        for package in self.packages(name):
            for member in self.opened(package).members():
                assert isinstance(member.entry, Resource | Change)
                data = b"" if member.is_deletion else b"".join(member.chunks())
                yield package, member.entry, data

    @staticmethod
    def sha256(body: bytes) -> Digest:
        return Digest("sha-256", hashlib.sha256(body).hexdigest())
