"""The aggregator of POD (Platform for Open Data, Ivy Plus): dumps of MARC records for each library.

Its views were read in its code. Everything needs a bearer token. An index of the Resource Lists of
all streams is made when asked for and says so in ``at``; ``rs:md`` comes before ``loc``; addresses
of files have the number of an attachment, so each new complete dump replaces all addresses.
"""

import gzip
import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final
from xml.sax.saxutils import escape

from tests.support.servers.tiny_source import Answer, Asked, TinySource

WELL_KNOWN: Final = "/.well-known/resourcesync"
_XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
_SITEMAP: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
_RS: Final = "http://www.openarchives.org/rs/terms/"
FLAVORS: Final = ("marcxml", "marc21")


@dataclass(frozen=True, kw_only=True)
class Attachment:
    """A file of a stream."""

    number: int
    name: str
    body: bytes
    created: datetime

    @property
    def path(self) -> str:
        return f"/file/{self.number}/{self.name}"

    @property
    def media_type(self) -> str:
        return "application/gzip" if self.name.endswith(".gz") else "text/plain"


@dataclass
class Pod:
    """The aggregator, on loopback."""

    token: str = "a-token"
    libraries: dict[str, list[Attachment]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    """Libraries that this token may not read: they are not listed."""
    now: datetime = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)

    def __post_init__(self) -> None:
        self.source = TinySource(self.respond)
        self._numbers = 100

    @property
    def url(self) -> str:
        return self.source.url

    def publish_full(self, library: str, *records: bytes) -> None:
        """Write a complete dump: what was there before is no longer listed."""
        self.libraries[library] = []
        self._attach(library, f"{self.now:%Y-%m-%d}-full-marc21.mrc.gz", _packed(records))

    def publish_delta(self, library: str, *records: bytes, deletes: tuple[str, ...] = ()) -> None:
        """Write what changed since the last dump, and the identifiers of deleted records."""
        base = f"{self.now:%Y-%m-%dT%H-%M-%S}-delta"  # Rails writes - in the place of a colon
        self._attach(library, f"{base}-marc21.mrc.gz", _packed(records))
        if deletes:
            text = "".join(f"{record}\n" for record in deletes)
            self._attach(library, f"{base}-deletes.del.txt", text.encode())

    def _attach(self, library: str, name: str, body: bytes) -> None:
        self._numbers += 1
        self.now += timedelta(hours=1)
        attachment = Attachment(
            number=self._numbers,
            name=f"{library}-{name}",
            body=body,
            created=self.now,
        )
        self.libraries.setdefault(library, []).append(attachment)

    def respond(self, asked: Asked) -> Answer | None:
        """Answer a request."""
        if asked.headers.get("Authorization") != f"Bearer {self.token}":
            return Answer(status=401)
        self.now += timedelta(seconds=1)
        path = asked.target
        if path.startswith("/file/"):
            return self._file(path)
        body = self._document(path)
        fields = {"Content-Type": "application/xml; charset=utf-8", "Cache-Control": "no-store"}
        return Answer(body=body.encode(), headers=fields) if body else None

    def _open(self) -> dict[str, list[Attachment]]:
        return {name: files for name, files in self.libraries.items() if name not in self.closed}

    def _file(self, path: str) -> Answer | None:
        for files in self._open().values():
            for attachment in files:
                if attachment.path == path:
                    fields = {
                        "Content-Type": attachment.media_type,
                        "Content-Disposition": "attachment",
                        "Accept-Ranges": "bytes",
                        "ETag": f'W/"{attachment.number}"',
                        "Cache-Control": "public",
                    }
                    return Answer(body=attachment.body, headers=fields)
        return None

    def _document(self, path: str) -> str:
        if path == WELL_KNOWN:
            lists = [f"{WELL_KNOWN}/capabilitylist", *self._flavored]
            return _root(
                "urlset",
                '<rs:md capability="description"/>',
                *(self._pointer(address, "capabilitylist") for address in lists),
            )
        if path in (f"{WELL_KNOWN}/capabilitylist", *self._flavored):
            flavor = path.rpartition("/")[2]
            return _root(
                "urlset",
                f'<rs:ln rel="up" href="{self.url}{WELL_KNOWN}"/>',
                '<rs:md capability="capabilitylist"/>',
                self._pointer(f"/organizations/normalized_resourcelist/{flavor}", "resourcelist"),
            )
        if path.startswith("/organizations/normalized_resourcelist/"):
            return self._index(path.rpartition("/")[2])
        for library in self._open():
            if path.startswith(f"/organizations/{library}/streams/"):
                return self._stream(library, path.rpartition("/")[2])
        return ""

    @property
    def _flavored(self) -> list[str]:
        return [f"{WELL_KNOWN}/normalized-capabilitylist/{flavor}" for flavor in FLAVORS]

    def _pointer(self, path: str, capability: str) -> str:
        return f'<url><loc>{self.url}{path}</loc><rs:md capability="{capability}"/></url>'

    def _index(self, flavor: str) -> str:
        up = f"{self.url}{WELL_KNOWN}/normalized-capabilitylist/{flavor}"
        return _root(
            "sitemapindex",
            f'<rs:ln rel="up" href="{up}"/>',
            f'<rs:md capability="resourcelist" at="{_time(self.now)}"/>',
            *(
                f'<sitemap><rs:md at="{_time(files[-1].created)}"/><loc>{self.url}/organizations/'
                f"{library}/streams/2026/normalized_resourcelist/{flavor}</loc></sitemap>"
                for library, files in self._open().items()
            ),
        )

    def _stream(self, library: str, flavor: str) -> str:
        files = self._open()[library]
        up = f"{self.url}/organizations/normalized_resourcelist/{flavor}"
        return _root(
            "urlset",
            f'<rs:ln rel="up" href="{up}"/>',
            f'<rs:md capability="resourcelist" at="{_time(files[-1].created)}"/>',
            *(
                f'<url><rs:md hash="md5:{_md5(file.body)}" type="{file.media_type}" '
                f'length="{len(file.body)}"/><loc>{self.url}{escape(file.path)}</loc>'
                f"<lastmod>{_time(file.created)}</lastmod></url>"
                for file in files
            ),
        )


def marc(identifier: str, title: str) -> bytes:
    """Return a record of MARC 21 (ISO 2709) with the fields 001 and 245."""
    fields = [(b"001", identifier.encode()), (b"245", b"10\x1fa" + title.encode())]
    directory, data = b"", b""
    for tag, value in fields:
        directory += tag + b"%04d%05d" % (len(value) + 1, len(data))
        data += value + b"\x1e"
    base = 24 + len(directory) + 1
    leader = b"%05dnam a22%05d a 4500" % (base + len(data) + 1, base)
    return leader + directory + b"\x1e" + data + b"\x1d"


def _packed(records: tuple[bytes, ...]) -> bytes:
    return gzip.compress(b"".join(records))


def _root(name: str, *parts: str) -> str:
    inner = "\n  ".join(parts)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns:xsi="{_XSI}" xsi:schemaLocation='
        f'"{_SITEMAP} {_SITEMAP}/sitemap.xsd" xmlns="{_SITEMAP}" xmlns:rs="{_RS}">\n  {inner}\n'
        f"</{name}>\n"
    )


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()
