"""The files of a WACZ beside its WARC files (WACZ 1.1.1): index, pages and datapackage."""

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from resourcesync.documents.packages.warc import PROGRAM, Capture, target_uri

ARCHIVE: Final = "archive/"
INDEX: Final = "indexes/index.cdx.gz"
INDEX_TABLE: Final = "indexes/index.idx"
PAGES: Final = "pages/pages.jsonl"
DATA_PACKAGE: Final = "datapackage.json"
DATA_PACKAGE_DIGEST: Final = "datapackage-digest.json"
PAGE_TYPES: Final = frozenset({"text/html", "application/xhtml+xml", "application/pdf"})
"""Media types of the resources that are pages: a browser shows them alone."""

_WACZ_VERSION: Final = "1.1.1"
_BLOCK_LINES: Final = 1_024
_GZIP: Final = 31
_REVISIT_TYPE: Final = "warc/revisit"
_KEY_SAFE: Final = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_PORTS: Final = {"http": 80, "https": 443}
_WWW: Final = re.compile(r"www\d*\.")
_SESSIONS: Final = tuple(
    re.compile(rf"(.*){pattern}(?:&(.*))?")
    for pattern in (
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
)


class IndexLine(NamedTuple):
    """The line of a record in an index.

    Attributes:
        key: The sort key of its URI, and its time as 14 digits.
        fields: All else, in JSON.
    """

    key: str
    fields: str


class PackagedFile(NamedTuple):
    """A file of a WACZ, as its datapackage describes it.

    Attributes:
        path: Its place there.
        sha256: Its digest.
        size: Its bytes.
    """

    path: str
    sha256: str
    size: int


def index_line(capture: Capture, file: str, place: range, *, is_revisit: bool) -> IndexLine:
    """Return the line of a record (CDXJ).

    Args:
        capture: What it records.
        file: The name of its WARC file.
        place: Its bytes there.
        is_revisit: True if it is a ``revisit``.
    """
    uri = target_uri(capture.uri)
    fields = {
        "url": uri,
        "mime": _REVISIT_TYPE if is_revisit else capture.media_type,
        "digest": capture.digest_text,
        "length": str(len(place)),
        "offset": str(place.start),
        "filename": file,
    }
    return IndexLine(f"{sort_key(uri)} {timestamp(capture)}", json.dumps(fields))


def timestamp(capture: Capture) -> str:
    """Return the second of a capture as 14 digits: an index has no finer time."""
    return re.sub(r"\D", "", capture.date)[:14]


def sort_key(uri: str) -> str:
    """Return the key of a URI in an index (SURT), as the readers of such indexes compute it.

    Scheme, a leading ``www.``, letter case, the order of parameters, a last slash and the ids of
    sessions do not count.
    """
    parts = urlsplit(uri)
    host = _WWW.sub("", (parts.hostname or "").strip("."), count=1)
    port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    path = _escape_once(_normalise_path(_unescape(parts.path)))
    if len(path) > 1:
        path = path.removesuffix("/")
    query = _escape_once(_unescape(parts.query)).lower()
    for session in _SESSIONS:
        if found := session.fullmatch(query):
            query = found[1] + (found[2] or "")
    if query:
        query = "?" + "&".join(sorted(query.split("&"), key=lambda one: one.split("=", 1)))
    return f"{','.join(reversed(host.split('.')))}{port}){path.lower()}{query}"


def _normalise_path(path: bytes) -> bytes:
    kept: list[bytes] = []
    segments = path.split(b"/")[1:]
    for segment in segments:
        if segment == b"..":
            kept = kept[:-1] if kept else [segment]
        elif segment != b".":
            kept.append(segment)
    inner = b"".join(segment + b"/" for segment in kept[:-1] if segment)
    return b"/" + inner + (kept[-1] if kept else b"")


def _unescape(text: str) -> bytes:
    data = text.encode()
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return data


def _escape_once(data: bytes) -> str:
    return quote_from_bytes(data, safe=_KEY_SAFE)


class IndexBlocks:
    """A compressed index, in blocks that a reader can fetch alone, and the table of these.

    Args:
        lines: All lines, sorted by key.
    """

    def __init__(self, lines: Iterable[IndexLine]) -> None:
        self._lines = iter(lines)
        meta = {"format": "cdxj-gzip-1.0", "filename": INDEX.rpartition("/")[2]}
        self.table = [f"!meta 0 {json.dumps(meta)}\n".encode()]

    def __iter__(self) -> Iterator[bytes]:
        """Yield the blocks; the table is complete after the last one."""
        offset = 0
        while block := list(islice(self._lines, _BLOCK_LINES)):
            packer = zlib.compressobj(wbits=_GZIP)
            text = "".join(f"{line.key} {line.fields}\n" for line in block)
            packed = packer.compress(text.encode()) + packer.flush()
            place = json.dumps({"offset": offset, "length": len(packed)})
            self.table.append(f"{block[0].key} {place}\n".encode())
            offset += len(packed)
            yield packed


def pages_header() -> bytes:
    """Return the first line of the list of pages."""
    return _json_line({"format": "json-pages-1.0", "id": "pages", "title": "All Pages"})


def page_line(capture: Capture) -> bytes:
    """Return the line of a page; the title of most resources is unknown."""
    uri = target_uri(capture.uri)
    return _json_line({"id": capture.name("page").hex, "url": uri, "ts": capture.date})


def data_package(title: str, created: str, files: Sequence[PackagedFile]) -> bytes:
    """Return the file ``datapackage.json``."""
    resources = [
        {
            "name": file.path.rpartition("/")[2].lower(),
            "path": file.path,
            "hash": f"sha256:{file.sha256}",
            "bytes": file.size,
        }
        for file in files
    ]
    return _json_line(
        {
            "profile": "data-package",
            "wacz_version": _WACZ_VERSION,
            "title": title,
            "created": created,
            "software": PROGRAM,
            "resources": resources,
        }
    )


def data_package_digest(sha256: str) -> bytes:
    """Return the file ``datapackage-digest.json``, without a signature."""
    return _json_line({"path": DATA_PACKAGE, "hash": f"sha256:{sha256}"})


def _json_line(values: dict[str, object]) -> bytes:
    return (json.dumps(values, ensure_ascii=False) + "\n").encode()
