"""Exporters: ``bagit`` and ``zip``.

``bagit`` writes a bag (BagIt 1.0, RFC 8493) in a folder or one ZIP; ``zip`` writes packages of a
Resource Dump (§11), which any unzip program reads too.
"""

import csv
import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import BinaryIO, Final, NamedTuple

from msgspec.structs import replace

from resourcesync import __version__
from resourcesync.documents.packages.bagit import DECLARATION, PAYLOAD, bag_info, day, manifest_line
from resourcesync.documents.packages.planning import ManifestEntry, PackageSize, plan_packages
from resourcesync.documents.packages.safety import MANIFEST, find_clash, member_name
from resourcesync.documents.packages.zip_writer import ZipMember, write_package, write_zip
from resourcesync.documents.writer import write
from resourcesync.errors import ConfigurationError, Remedy
from resourcesync.model.capabilities import CapabilityEntry, Header, Package
from resourcesync.model.digests import Digest, parse_digests, usable
from resourcesync.model.links import Link
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import format_w3c, from_microseconds
from resourcesync.model.vocabulary import MAX_BYTES, MAX_ENTRIES, Capability, Relation
from resourcesync.ports.exporters import ExportFile, ExportOptions, MirrorSnapshot
from resourcesync.ports.mirror import Copy

_ZIP_SUFFIX: Final = ".zip"
_PIECE: Final = 1 << 20
_COLUMNS: Final = ("uri", "path", "bytes", "digests", "lastmod", "installed")
_PROGRAM: Final = f"resourcesync {__version__}"


def export_bag(holdings: MirrorSnapshot, options: ExportOptions) -> Iterator[ExportFile]:
    """Yield the files of a bag, or one ZIP with the bag if the name ends in ``.zip`` (§4).

    Payload files have the paths of the mirror. ``resources.csv`` gives their URIs, so that the bag
    can be understood without this program.

    Raises:
        ConfigurationError: Versions are to be exported.
    """
    _refuse_versions(options)
    with (
        closing(holdings.scratch()) as manifest,
        closing(holdings.scratch()) as table,
        closing(holdings.scratch()) as directory,
    ):
        files = _Bag(holdings, options, manifest, table).files()
        if not options.name.endswith(_ZIP_SUFFIX):
            yield from (ExportFile(file.path, file.content) for file in files)
            return
        base = options.name.removesuffix(_ZIP_SUFFIX)
        members = (ZipMember(f"{base}/{file.path}", file.content, file.size) for file in files)
        yield ExportFile("", write_zip(members, directory))


def _refuse_versions(options: ExportOptions) -> None:
    """Refuse several copies of one URI, which have one path.

    Raises:
        ConfigurationError: Versions are to be exported.
    """
    if options.versions:
        raise ConfigurationError(
            "this format has one copy of each resource, not its versions",
            hint="the formats warc and wacz have versions",
        )


class _Bag:
    """Bag under construction.

    Args:
        holdings: Content of the bag.
        options: The operator's options.
        manifest, table: Empty files, for what is complete only at the end.
    """

    def __init__(
        self, holdings: MirrorSnapshot, options: ExportOptions, manifest: BinaryIO, table: BinaryIO
    ) -> None:
        self._holdings = holdings
        self._options = options
        self._manifest = manifest
        self._table = table
        self._tags: list[str] = []
        self._count = self._size = 0

    def files(self) -> "Iterator[_BagFile]":
        """Yield the files: declaration, payload, then the tag files."""
        yield self._tag("bagit.txt", [DECLARATION])
        self._table.write(_csv_row(_COLUMNS))
        for copy in self._holdings.copies():
            yield _BagFile(PAYLOAD + copy.path, self._payload(copy), copy.length)
        yield self._tag("manifest-sha256.txt", read_back(self._manifest))
        yield self._tag("resources.csv", read_back(self._table))
        yield self._tag("bag-info.txt", [bag_info(self._facts())])
        yield _BagFile("tagmanifest-sha256.txt", [line.encode() for line in self._tags], 0)

    def _payload(self, copy: Copy) -> Iterator[bytes]:
        proof = usable(parse_digests(copy.digests))[:1]
        known = proof[0].value if proof and proof[0].algorithm == "sha-256" else ""
        hasher, size = hashlib.sha256(), 0
        for piece in self._holdings.content(copy):
            if not known:  # else a digest is known, at half the cost
                hasher.update(piece)
            size += len(piece)
            yield piece
        self._count += 1
        self._size += size
        line = manifest_line(known or hasher.hexdigest(), PAYLOAD + copy.path)
        self._manifest.write(line.encode())
        lastmod = "" if copy.lastmod is None else format_w3c(from_microseconds(copy.lastmod))
        installed = format_w3c(from_microseconds(copy.installed))
        cells = (copy.uri, PAYLOAD + copy.path, str(size), copy.digests, lastmod, installed)
        self._table.write(_csv_row(cells))

    def _tag(self, path: str, content: Iterable[bytes]) -> "_BagFile":
        return _BagFile(path, self._hashed(path, content), 0)

    def _hashed(self, path: str, content: Iterable[bytes]) -> Iterator[bytes]:
        hasher = hashlib.sha256()
        for piece in content:
            hasher.update(piece)
            yield piece
        self._tags.append(manifest_line(hasher.hexdigest(), path))

    def _facts(self) -> Iterator[tuple[str, str]]:
        """Yield the known facts about the bag; its authorship is left to others."""
        holdings = self._holdings
        as_of = "" if holdings.as_of is None else f" as of {format_w3c(holdings.as_of)}"
        yield "Source-Organization", self._options.organization
        yield "External-Identifier", holdings.source
        yield "External-Description", f"Copies of the resources of {holdings.source}{as_of}"
        yield "Bag-Software-Agent", _PROGRAM
        yield "Bagging-Date", day(holdings.now)
        yield "Payload-Oxum", f"{self._size}.{self._count}"


class _BagFile(NamedTuple):
    """File of a bag, and its size in bytes, as far as a ZIP needs it."""

    path: str
    content: Iterable[bytes]
    size: int


def read_back(file: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes written to a file, from the start."""
    file.seek(0)
    while piece := file.read(_PIECE):
        yield piece


def _csv_row(cells: Iterable[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue().encode()


_DUMP: Final = "resourcedump.xml"
_CAPABILITIES: Final = "capabilitylist.xml"
_DESCRIPTION: Final = "resourcesync.xml"
_NO_LIMIT: Final = 1 << 62
_PATHS_SIZE: Final = 24 * 2**20
"""Bytes of a manifest reserved for paths, which are longer than the planned ones."""
_ESCAPE_FACTOR: Final = 6
"""Bytes that one character of a path takes at most in XML."""


def export_packages(holdings: MirrorSnapshot, options: ExportOptions) -> Iterator[ExportFile]:
    """Yield packages: one if the name ends in ``.zip``, else as many as are needed.

    In a package the files have the paths of the mirror, so that it can also just be unpacked; paths
    that cannot exist together on every system are replaced by numbers. With ``url``, a Resource
    Dump that lists the packages is added: served there, it can be pulled.

    Raises:
        ConfigurationError: One package cannot hold all resources, or versions are to be exported.
    """
    _refuse_versions(options)
    is_one = options.name.endswith(_ZIP_SUFFIX)
    if is_one and options.url:
        raise ConfigurationError(
            "`url` needs a folder of packages",
            hint="name a folder",
            remedy=Remedy("write-elsewhere"),
        )
    size = PackageSize(
        max_entries=MAX_ENTRIES,
        max_bytes=_NO_LIMIT if is_one else options.max_package,
        max_manifest=MAX_BYTES - _PATHS_SIZE,
    )
    up = f"{options.url.rstrip('/')}/{_CAPABILITIES}" if options.url else holdings.capability_list
    packer = _Packer(holdings, up)
    if is_one:
        packages = packer.packages(size)
        first = next(packages, [])
        if next(packages, None) is not None:
            raise ConfigurationError(
                f"one package holds at most {MAX_ENTRIES:,} resources; this mirror has more",
                hint="name a folder for several packages",
                remedy=Remedy("write-elsewhere"),
            )
        yield ExportFile("", packer.packed(first))
        return
    listed: list[Package] = []
    for number, entries in enumerate(packer.packages(size), 1):
        path = f"part-{number:05}.zip"
        measured = MeasuredContent(packer.packed(entries))
        yield ExportFile(path, measured)
        listed.append(measured.package(f"{options.url.rstrip('/')}/{path}", holdings.now))
    if options.url:
        dump = write(_header(holdings, Capability.RESOURCE_DUMP, up), listed)
        yield ExportFile(_DUMP, dump)
        yield from _describe_set(options.url.rstrip("/"))


def _describe_set(base: str) -> Iterator[ExportFile]:
    """Yield the documents that lead to the dump, so that it is a set where it is served."""
    description = Link(rel=Relation.UP, href=f"{base}/{_DESCRIPTION}")
    entry = CapabilityEntry(uri=f"{base}/{_DUMP}", capability=Capability.RESOURCE_DUMP)
    header = Header(capability=Capability.CAPABILITY_LIST, links=(description,))
    yield ExportFile(_CAPABILITIES, write(header, [entry]))
    entry = CapabilityEntry(uri=f"{base}/{_CAPABILITIES}", capability=Capability.CAPABILITY_LIST)
    yield ExportFile(_DESCRIPTION, write(Header(capability=Capability.DESCRIPTION), [entry]))


class _Packer:
    """Writer of packages of the copies.

    Args:
        holdings: The copies.
        up: Capability List to which the manifests link.
    """

    def __init__(self, holdings: MirrorSnapshot, up: str) -> None:
        self._holdings = holdings
        self._header = _header(holdings, Capability.RESOURCE_DUMP_MANIFEST, up)
        self._copies: dict[str, Copy] = {}  # only of planned packages

    def packages(self, size: PackageSize) -> Iterator[Sequence[ManifestEntry]]:
        """Yield the entries of one package after the other."""
        return plan_packages(self._header, self._entries(), size=size)

    def packed(self, entries: Sequence[ManifestEntry]) -> Iterator[bytes]:
        """Yield the bytes of one package."""
        copies = {entry.uri: self._copies.pop(entry.uri) for entry in entries}

        def content(member: Resource | Link) -> Iterator[bytes]:
            assert isinstance(member, Resource), "copies have no links of their own"
            return self._holdings.content(copies[member.uri])

        return write_package(self._header, _with_member_paths(entries, copies), content)

    def _entries(self) -> Iterator[Resource]:
        for copy in self._holdings.copies():
            self._copies[copy.uri] = copy
            lastmod = None if copy.lastmod is None else from_microseconds(copy.lastmod)
            digests = parse_digests(copy.digests)
            yield Resource(uri=copy.uri, lastmod=lastmod, length=copy.length, digests=digests)


def _header(holdings: MirrorSnapshot, capability: Capability, up: str) -> Header:
    at = holdings.as_of or holdings.now
    return Header(capability=capability, at=at, links=(Link(rel=Relation.UP, href=up),))


def _with_member_paths(
    entries: Sequence[ManifestEntry], copies: Mapping[str, Copy]
) -> Sequence[ManifestEntry]:
    """Return entries with the paths of the mirror, or unchanged if those cannot be used."""
    names = [copies[entry.uri].path for entry in entries]
    if sum(map(len, names)) * _ESCAPE_FACTOR > _PATHS_SIZE or not all(map(_is_name, names)):
        return entries
    if find_clash([MANIFEST, *names]) is not None:
        return entries
    return [
        replace(entry, path=f"/{name}")
        for entry, name in zip(entries, names, strict=True)
        if isinstance(entry, Resource)
    ]


def _is_name(name: str) -> bool:
    try:
        member_name(f"/{name}")
    except ValueError:
        return False
    return True


class MeasuredContent:
    """Content that is counted and hashed while it is read, once."""

    def __init__(self, content: Iterable[bytes]) -> None:
        self._content = content
        self._hasher = hashlib.sha256()
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._content:
            self._hasher.update(piece)
            self.size += len(piece)
            yield piece

    @property
    def sha256(self) -> str:
        """The digest of the bytes that were read."""
        return self._hasher.hexdigest()

    def package(self, uri: str, now: datetime) -> Package:
        """Return the entry of a Resource Dump, once all bytes are read."""
        return Package(
            uri=uri,
            lastmod=now,
            length=self.size,
            digests=(Digest("sha-256", self.sha256),),
            media_type="application/zip",
        )
