"""Exporters for web archives: ``warc`` (WARC/1.1) and ``wacz`` (WACZ 1.1.1); see ADR 0086.

The time of a capture is when the mirror retrieved its bytes, never what the server claims; that of
a version is its Memento-Datetime. A version with the bytes of an earlier one is a ``revisit``.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, count
from typing import BinaryIO, Final

from resourcesync.destination.exports.exporters import MeasuredContent, read_back
from resourcesync.destination.external_sort import TupleSorter
from resourcesync.documents.packages import wacz
from resourcesync.documents.packages.wacz import IndexLine, PackagedFile
from resourcesync.documents.packages.warc import (
    SUFFIXES,
    Capture,
    detect_type,
    gzip_member,
    info_record,
    resource_record,
    revisit_record,
)
from resourcesync.documents.packages.zip_writer import ZipMember, write_zip
from resourcesync.errors import ConfigurationError
from resourcesync.model.digests import Digest, parse_digests, usable
from resourcesync.model.timestamps import format_w3c
from resourcesync.ports.exporters import ExportFile, ExportOptions, MirrorSnapshot
from resourcesync.ports.mirror import Copy

_WACZ_SUFFIX: Final = ".wacz"
_NO_LIMIT: Final = 1 << 62
_NO_DIGEST: Final = Digest("sha-256", "")
"""Stands for that of a copy without one: such a copy ends the export when it was read."""
_MARGIN: Final = 1 << 20
"""Bytes of the head of a record and of its gzip frame, which are far fewer."""


def export_warc(holdings: MirrorSnapshot, options: ExportOptions) -> Iterator[ExportFile]:
    """Yield WARC files: one if the name ends in ``.warc`` or ``.warc.gz``, else as many as needed.

    A record never goes over two files, so a file with one record may be larger than
    ``max_package``.
    """
    records = _Records(holdings, options)
    if options.name.endswith(SUFFIXES):
        is_packed = options.name.endswith(".gz")
        yield ExportFile("", records.file(options.name, _NO_LIMIT, is_packed=is_packed))
        return
    for name in _file_names(options.name, records):
        yield ExportFile(name, records.file(name, options.max_package))


def export_wacz(holdings: MirrorSnapshot, options: ExportOptions) -> Iterator[ExportFile]:
    """Yield one WACZ: WARC files of at most ``max_package``, their index, pages and datapackage.

    Raises:
        ConfigurationError: The name does not end in ``.wacz``.
    """
    if not options.name.endswith(_WACZ_SUFFIX):
        raise ConfigurationError(
            "a WACZ is one file, whose name ends in .wacz",
            hint="name such a file",
        )
    with (
        closing(holdings.scratch()) as pages,
        closing(holdings.scratch()) as directory,
        TupleSorter(IndexLine, holdings.scratch) as index,
    ):
        package = _WaczPackage(holdings, options, pages, index)
        yield ExportFile("", write_zip(package.members(), directory))


def _file_names(name: str, records: "_Records") -> Iterator[str]:
    """Yield names that are unique also among the files of other exports, while there are records.

    Archives put the WARC files of many exports into one folder.
    """
    for number in count(1):
        if records.next_length is None:
            return
        yield f"{name}-{records.stamp}-{number:05}.warc.gz"


class _Records:
    """The records of all captures, written to one file after the other.

    Args:
        holdings: The captures.
        options: The operator's options.
        index: Receives the line of each record; ``None`` if there is no index.
        pages: Receives the line of each page; ``None`` likewise.
    """

    def __init__(
        self,
        holdings: MirrorSnapshot,
        options: ExportOptions,
        index: TupleSorter[IndexLine] | None = None,
        pages: BinaryIO | None = None,
    ) -> None:
        self._holdings = holdings
        self._organization = options.organization
        self._has_versions = options.versions
        self._index = index
        self._pages = pages
        self._copies = holdings.copies()
        self._next = next(self._copies, None)
        self._now = format_w3c(holdings.now)
        self._uri = ""
        self._originals: dict[str, Capture] = {}  # of one resource
        self.stamp = holdings.now.strftime("%Y%m%d%H%M%S")

    @property
    def next_length(self) -> int | None:
        """Bytes of the next capture; ``None`` if all are written."""
        return None if self._next is None else self._next.length

    def file(self, name: str, limit: int, *, is_packed: bool = True) -> Iterator[bytes]:
        """Yield one file: captures while they fit into a limit in bytes, and at least one."""
        facts = (("isPartOf", self._holdings.source), ("operator", self._organization))
        size, is_first = 0, True
        for piece in _framed(info_record(_as_utf8(name), self._now, facts), is_packed=is_packed):
            size += len(piece)
            yield piece
        while self._next is not None and (is_first or size + self._next.length <= limit):
            start, is_first = size, False
            capture, original, record = self._record(self._next)
            for piece in _framed(record, is_packed=is_packed):
                size += len(piece)
                yield piece
            self._describe(capture, name, range(start, size), is_revisit=original is not None)
            self._next = next(self._copies, None)

    def _record(self, copy: Copy) -> tuple[Capture, Capture | None, Iterator[bytes]]:
        """Return a capture, the earlier one with its bytes if there is one, and its record."""
        content = self._holdings.content(copy)
        start = next(content, b"")
        capture = Capture(
            uri=copy.uri,
            moment=self._moment_of(copy),
            length=copy.length,
            digest=next(iter(usable(parse_digests(copy.digests))), _NO_DIGEST),
            media_type=detect_type(self._holdings.media_type(copy), start),
        )
        if copy.uri != self._uri:
            self._uri = copy.uri
            self._originals.clear()
        original = self._originals.get(capture.digest_text)
        if original is None:
            self._originals[capture.digest_text] = capture
            return capture, None, resource_record(capture, chain((start,), content))
        for _ in content:  # these bytes are verified like all others
            pass
        return capture, original, revisit_record(capture, original)

    def _moment_of(self, copy: Copy) -> int:
        """Return the time of a capture: of a version, its Memento-Datetime."""
        if self._has_versions and copy.lastmod is not None:
            return copy.lastmod
        return copy.installed

    def _describe(self, capture: Capture, name: str, place: range, *, is_revisit: bool) -> None:
        if self._index is not None:
            self._index.add(wacz.index_line(capture, name, place, is_revisit=is_revisit))
        if self._pages is not None and capture.media_type in wacz.PAGE_TYPES:
            self._pages.write(wacz.page_line(capture))


def _as_utf8(name: str) -> str:
    """Return the name of a file as text that can be written, whatever its bytes are."""
    return name.encode(errors="replace").decode()


def _framed(record: Iterable[bytes], *, is_packed: bool) -> Iterable[bytes]:
    return gzip_member(record) if is_packed else record


class _WaczPackage:
    """WACZ under construction.

    Args:
        holdings: The captures.
        options: The operator's options.
        pages: An empty file, for what is complete only at the end.
        index: An empty sorter for the lines of the index.
    """

    def __init__(
        self,
        holdings: MirrorSnapshot,
        options: ExportOptions,
        pages: BinaryIO,
        index: TupleSorter[IndexLine],
    ) -> None:
        self._holdings = holdings
        self._options = options
        self._pages = pages
        self._index = index
        self._files: list[PackagedFile] = []

    def members(self) -> Iterator[ZipMember]:
        """Yield the files, each stored as it is, since replay reads parts of them."""
        self._pages.write(wacz.pages_header())
        records = _Records(self._holdings, self._options, self._index, self._pages)
        limit = self._options.max_package
        base = _as_utf8(self._options.name.removesuffix(_WACZ_SUFFIX))
        for name in _file_names(base, records):
            most = max(limit, records.next_length or 0)
            yield from self._member(wacz.ARCHIVE + name, records.file(name, limit), most)
        blocks = wacz.IndexBlocks(self._index)
        yield from self._member(wacz.INDEX, blocks, len(self._index) << 13)
        yield from self._member(wacz.INDEX_TABLE, blocks.table)
        yield from self._member(wacz.PAGES, read_back(self._pages), self._pages.tell())
        title = f"Copies of {self._holdings.source}"
        created = format_w3c(self._holdings.now.replace(microsecond=0))
        described = wacz.data_package(title, created, self._files)
        yield from self._member(wacz.DATA_PACKAGE, [described])
        digest = wacz.data_package_digest(self._files[-1].sha256)
        yield from self._member(wacz.DATA_PACKAGE_DIGEST, [digest])

    def _member(self, path: str, content: Iterable[bytes], most: int = 0) -> Iterator[ZipMember]:
        """Yield one file; it is written, and measured, when the next is requested."""
        measured = MeasuredContent(content)
        most += most // 512 + _MARGIN  # gzip may make noise longer, by far less than this
        yield ZipMember(path, measured, most, is_stored=True)
        self._files.append(PackagedFile(path, measured.sha256, measured.size))
