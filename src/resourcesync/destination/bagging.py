"""The exporter ``bagit``: copies as a bag (BagIt 1.0, RFC 8493), in a folder or in one ZIP."""

import csv
import hashlib
import io
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import BinaryIO, Final, NamedTuple

from resourcesync import __version__
from resourcesync.documents.packages.bagit import DECLARATION, PAYLOAD, bag_info, day, manifest_line
from resourcesync.documents.packages.zip_writer import ZipMember, write_zip
from resourcesync.model.digests import parse_digests, usable
from resourcesync.model.timestamps import format_w3c, from_microseconds
from resourcesync.ports.exporters import ExportFile, ExportOptions, MirrorSnapshot
from resourcesync.ports.mirror import Copy

_ZIP_SUFFIX: Final = ".zip"
_PIECE: Final = 1 << 20
_COLUMNS: Final = ("uri", "path", "bytes", "digests", "lastmod", "installed")
_PROGRAM: Final = f"resourcesync {__version__}"


def export_bag(holdings: MirrorSnapshot, options: ExportOptions) -> Iterator[ExportFile]:
    """Yield the files of a bag; of one ZIP that holds it when the name ends so (§4).

    Payload files have the paths of the mirror. ``resources.csv`` says which URI each is, so that
    the bag can be understood without us.
    """
    with (
        closing(holdings.scratch()) as manifest,
        closing(holdings.scratch()) as table,
        closing(holdings.scratch()) as directory,
    ):
        files = _Bag(holdings, options, manifest, table).files()
        if not options.name.endswith(_ZIP_SUFFIX):
            yield from (ExportFile(it.path, it.content) for it in files)
            return
        base = options.name.removesuffix(_ZIP_SUFFIX)
        members = (ZipMember(f"{base}/{it.path}", it.content, it.size) for it in files)
        yield ExportFile("", write_zip(members, directory))


class _Bag:
    """A bag while it is made.

    Args:
        holdings: What goes into it.
        options: What the operator wants.
        manifest, table: Empty files, for what is only known in the end.
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
        """Yield the files, the payload between the declaration and what tells of it."""
        yield self._tag("bagit.txt", [DECLARATION])
        self._table.write(_csv_row(_COLUMNS))
        for copy in self._holdings.copies():
            yield _BagFile(PAYLOAD + copy.path, self._payload(copy), copy.length)
        yield self._tag("manifest-sha256.txt", _read_back(self._manifest))
        yield self._tag("resources.csv", _read_back(self._table))
        yield self._tag("bag-info.txt", [bag_info(self._facts())])
        yield _BagFile("tagmanifest-sha256.txt", [line.encode() for line in self._tags], 0)

    def _payload(self, copy: Copy) -> Iterator[bytes]:
        proof = usable(parse_digests(copy.digests))[:1]
        known = proof[0].value if proof and proof[0].algorithm == "sha-256" else ""
        hasher, size = hashlib.sha256(), 0
        for piece in self._holdings.content(copy):
            if not known:  # else it is proven already, at half the cost
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
        """Yield what is true of the bag, and nothing else: who made what of it is not ours."""
        holdings = self._holdings
        as_of = "" if holdings.as_of is None else f" as of {format_w3c(holdings.as_of)}"
        yield "Source-Organization", self._options.organization
        yield "External-Identifier", holdings.source
        yield "External-Description", f"Copies of the resources of {holdings.source}{as_of}"
        yield "Bag-Software-Agent", _PROGRAM
        yield "Bagging-Date", day(holdings.now)
        yield "Payload-Oxum", f"{self._size}.{self._count}"


class _BagFile(NamedTuple):
    """A file of a bag, and how many bytes it has, as far as that matters for a ZIP."""

    path: str
    content: Iterable[bytes]
    size: int


def _read_back(file: BinaryIO) -> Iterator[bytes]:
    """Yield what was written to a file, once all of it is."""
    file.seek(0)
    while piece := file.read(_PIECE):
        yield piece


def _csv_row(cells: Iterable[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue().encode()
