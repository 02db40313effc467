"""DSpace 7, 8 and 9: the OAI-PMH provider beside the REST interface and the Angular pages.

What they send was read in their code: pages of 100 records, resumption tokens that are the request
with an offset, a cursor that counts pages, deletions that are transient. The address of a file in
metadata is a page of the user interface, which only a GET redirects to the file; a HEAD of it, and
a GET of a file that is not public, show a page.
"""

import hashlib
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import parse_qs, urlsplit
from uuid import NAMESPACE_URL, uuid5
from xml.sax.saxutils import escape, quoteattr

from tests.support.servers.tiny_source import Answer, Asked, TinySource

XSI: Final = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
OAI: Final = "http://www.openarchives.org/OAI/2.0/"
FORMATS: Final = {
    "oai_dc": f"{OAI}oai_dc/",
    "ore": "http://www.w3.org/2005/Atom",
    "xoai": "http://www.lyncode.com/xoai",
}
_PAGE: Final = Answer(
    body=b"<!DOCTYPE html><html><body><ds-app></ds-app></body></html>",
    headers={"Content-Type": "text/html; charset=utf-8"},
)
Policy = tuple[str, str, str]
"""The group that may read, from which day, and until which day; empty for none."""
PUBLIC: Final[tuple[Policy, ...]] = (("Anonymous", "", ""),)
STAFF: Final[tuple[Policy, ...]] = (("Administrator", "", ""),)


@dataclass(frozen=True, kw_only=True)
class DSpaceFile:
    """A bitstream."""

    name: str
    body: bytes
    bundle: str = "ORIGINAL"
    policies: tuple[Policy, ...] = PUBLIC
    is_public: bool = True

    @property
    def uuid(self) -> str:
        return str(uuid5(NAMESPACE_URL, f"{self.name} {self.body!r}"))


@dataclass(frozen=True, kw_only=True)
class DSpaceItem:
    """An item; its handle is ``123456789/`` and its number."""

    number: int
    title: str
    files: tuple[DSpaceFile, ...] = ()
    access: str = "open.access"
    is_withdrawn: bool = False

    @property
    def handle(self) -> str:
        return f"123456789/{self.number}"


@dataclass
class DSpaceSite:
    """A site of one version, on loopback.

    Attributes:
        version: 7, 8 or 9. The policies of files are in ``xoai`` since 8.
    """

    version: int = 9
    items: dict[int, tuple[datetime, DSpaceItem]] = field(default_factory=dict)
    now: datetime = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)

    def __post_init__(self) -> None:
        self.source = TinySource(self.respond)

    @property
    def url(self) -> str:
        return self.source.url

    @property
    def base(self) -> str:
        return f"{self.url}/server/oai/request"

    def put(self, item: DSpaceItem) -> None:
        """Archive an item, or a new version of its metadata."""
        self.now += timedelta(seconds=7)
        self.items[item.number] = (self.now, item)

    def withdraw(self, number: int) -> None:
        """Withdraw an item: it stays as a deleted record."""
        self.put(replace(self.items[number][1], is_withdrawn=True))

    def expunge(self, number: int) -> None:
        """Remove an item from the database: nothing says that it was there."""
        del self.items[number]

    def respond(self, asked: Asked) -> Answer | None:
        """Answer a request."""
        parts = urlsplit(asked.target)
        names = parts.path.strip("/").split("/")
        if parts.path == "/server/oai/request":
            found = {key: values[0] for key, values in parse_qs(parts.query).items()}
            return Answer(
                body=self._oai(found).encode(),
                headers={"Content-Type": "text/xml;charset=UTF-8", "Vary": "Accept"},
            )
        if names[0] == "bitstreams":
            file = self._file(names[1])
            if asked.method == "HEAD" or file is None or not file.is_public:
                return _PAGE
            content = f"{self.url}/server/api/core/bitstreams/{names[1]}/content"
            return Answer(status=302, headers={"Location": content})
        if parts.path.startswith("/server/api/core/bitstreams/"):
            return self._content(self._file(names[4]))
        return None

    def _content(self, file: DSpaceFile | None) -> Answer | None:
        if file is None:
            return None
        if not file.is_public:
            return Answer(status=401)
        fields = {
            "Content-Type": "application/pdf",
            "ETag": f'"{_md5(file.body)}"',
            "Accept-Ranges": "bytes",
            "Content-Disposition": f'attachment;filename="{file.name}"',
        }
        return Answer(body=file.body, headers=fields)

    def _file(self, uuid: str) -> DSpaceFile | None:
        files = (file for _, item in self.items.values() for file in item.files)
        return next((file for file in files if file.uuid == uuid), None)

    def _oai(self, asked: dict[str, str]) -> str:
        told = " ".join(f"{name}={quoteattr(value)}" for name, value in asked.items())
        make = {
            "Identify": self._identify,
            "ListMetadataFormats": self._formats,
            "ListRecords": self._records,
        }.get(asked.get("verb", ""))
        inner = make(asked) if make else _error("badVerb", "Illegal OAI verb")
        return (
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<?xml-stylesheet type="text/xsl" href="static/style.xsl"?>'
            f'<OAI-PMH xmlns="{OAI}" {XSI} '
            f'xsi:schemaLocation="{OAI} http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd">'
            f"<responseDate>{_time(self.now)}</responseDate>"
            f"<request {told}>{self.base}</request>{inner}</OAI-PMH>"
        )

    def _identify(self, _asked: dict[str, str]) -> str:
        return (
            "<Identify><repositoryName>DSpace at My University</repositoryName>"
            f"<baseURL>{self.base}</baseURL><protocolVersion>2.0</protocolVersion>"
            "<adminEmail>dspace-help@repo.example</adminEmail>"
            "<earliestDatestamp>2021-01-01T00:00:00Z</earliestDatestamp>"
            "<deletedRecord>transient</deletedRecord>"
            "<granularity>YYYY-MM-DDThh:mm:ssZ</granularity><description>"
            f'<oai-identifier xmlns="{OAI}oai-identifier" {XSI} xsi:schemaLocation='
            f'"{OAI}oai-identifier {OAI}oai-identifier.xsd">\n<scheme>oai</scheme>\n'
            "<repositoryIdentifier>repo.example</repositoryIdentifier>\n<delimiter>:</delimiter>\n"
            "<sampleIdentifier>oai:repo.example:123456789/1234</sampleIdentifier>\n"
            "</oai-identifier></description></Identify>"
        )

    def _formats(self, _asked: dict[str, str]) -> str:
        rows = "".join(
            f"<metadataFormat><metadataPrefix>{prefix}</metadataPrefix><schema>{uri}x.xsd</schema>"
            f"<metadataNamespace>{uri}</metadataNamespace></metadataFormat>"
            for prefix, uri in FORMATS.items()
        )
        return f"<ListMetadataFormats>{rows}</ListMetadataFormats>"

    def _records(self, asked: dict[str, str]) -> str:
        token = asked.get("resumptionToken", "")
        if token:
            prefix, begin, end, spec, offset = token.split("/")
        else:
            prefix, spec, offset = asked["metadataPrefix"], asked.get("set", ""), "0"
            begin, end = asked.get("from", ""), asked.get("until", "")
        if prefix not in FORMATS:
            return _error("cannotDisseminateFormat", f"unknown format {prefix}")
        found = [
            (stamp, item)
            for stamp, item in (self.items[number] for number in sorted(self.items))
            if (not begin or _time(stamp) >= begin) and (not end or _time(stamp) <= end)
        ]
        at = int(offset)
        rows = found[at : at + 100]
        if not rows:
            return _error("noRecordsMatch", "No matches for the query")
        more = f"{prefix}/{begin}/{end}/{spec}/{at + 100}" if len(found) > at + 100 else ""
        tail = (
            f'<resumptionToken completeListSize="{len(found)}" cursor="{at // 100}">'
            f"{more}</resumptionToken>"
            if more or token
            else ""
        )
        listed = "".join(self._record(prefix, *row) for row in rows)
        return f"<ListRecords>{listed}{tail}</ListRecords>"

    def _record(self, prefix: str, stamp: datetime, item: DSpaceItem) -> str:
        status = ' status="deleted"' if item.is_withdrawn else ""
        make = {"oai_dc": self._oai_dc, "ore": self._ore, "xoai": self._xoai}[prefix]
        metadata = "" if item.is_withdrawn else f"<metadata>{make(item)}</metadata>"
        return (
            f"<record><header{status}><identifier>oai:repo.example:{item.handle}</identifier>"
            f"<datestamp>{_time(stamp)}</datestamp><setSpec>com_123456789_1</setSpec>"
            f"<setSpec>col_123456789_2</setSpec></header>{metadata}</record>"
        )

    def _page(self, item: DSpaceItem) -> str:
        return f"{self.url}/handle/{item.handle}"

    def _address(self, file: DSpaceFile) -> str:
        return f"{self.url}/bitstreams/{file.uuid}/download"

    def _oai_dc(self, item: DSpaceItem) -> str:
        return (
            f'<oai_dc:dc xmlns:oai_dc="{OAI}oai_dc/" '
            f'xmlns:dc="http://purl.org/dc/elements/1.1/" {XSI} xsi:schemaLocation='
            f'"{OAI}oai_dc/ {OAI}oai_dc.xsd">\n<dc:title>{escape(item.title)}</dc:title>\n'
            f"<dc:date>2026-01-05T09:30:00Z</dc:date>\n<dc:type>Thesis</dc:type>\n"
            f"<dc:identifier>{self._page(item)}</dc:identifier>\n"
            "<dc:format>application/pdf</dc:format>\n</oai_dc:dc>\n"
        )

    def _ore(self, item: DSpaceItem) -> str:
        links = "".join(
            '<atom:link rel="http://www.openarchives.org/ore/terms/aggregates" '
            f"href={quoteattr(self._address(file))} title={quoteattr(file.name)} "
            f'type="application/pdf" length="{len(file.body)}"/>\n'
            for file in item.files
            if file.bundle == "ORIGINAL"
        )
        triples = "".join(
            '<rdf:Description xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
            f"rdf:about={quoteattr(self._address(file))}>\n"
            '<rdf:type rdf:resource="http://www.dspace.org/objectModel/DSpaceBitstream"/>\n'
            f"<dcterms:description>{file.bundle}</dcterms:description>\n</rdf:Description>\n"
            for file in item.files
        )
        return (
            f'<atom:entry xmlns:atom="http://www.w3.org/2005/Atom" {XSI} '
            'xmlns:ore="http://www.openarchives.org/ore/terms/" '
            'xmlns:oreatom="http://www.openarchives.org/ore/atom/" '
            'xmlns:dcterms="http://purl.org/dc/terms/">\n'
            f"<atom:id>{self._page(item)}/ore.xml</atom:id>\n"
            f'<atom:link rel="alternate" href="{self._page(item)}"/>\n'
            f"<atom:title>{escape(item.title)}</atom:title>\n{links}"
            f"<oreatom:triples>\n{triples}</oreatom:triples>\n</atom:entry>\n"
        )

    def _xoai(self, item: DSpaceItem) -> str:
        names = dict.fromkeys(file.bundle for file in item.files)
        bundles = "".join(
            _element(
                "bundle",
                _fields(name=name),
                _element(
                    "bitstreams",
                    *(self._bitstream(file) for file in item.files if file.bundle == name),
                ),
            )
            for name in names
        )
        access = _element("access-status", _fields(value=item.access))
        uri = FORMATS["xoai"]
        return (
            f'<metadata xmlns="{uri}" {XSI} xsi:schemaLocation="{uri} {uri}.xsd">'
            + _element("dc", _element("title", _element("none", _fields(value=item.title))))
            + _element("bundles", bundles)
            + _element(
                "others",
                _fields(handle=item.handle, identifier=f"oai:repo.example:{item.handle}"),
                access,
            )
            + _element("repository", _fields(url=self.url, name="DSpace at My University"))
            + _element("license")
            + "</metadata>"
        )

    def _bitstream(self, file: DSpaceFile) -> str:
        policies = [
            _element(
                "resourcePolicy",
                _fields(group=group, user="", action="READ"),
                *([_fields(**{"start-date": begin})] if begin else []),
                *([_fields(**{"end-date": end})] if end else []),
            )
            for group, begin, end in file.policies
        ]
        told = _fields(
            name=file.name,
            originalName=file.name,
            format="application/pdf",
            size=str(len(file.body)),
            url=self._address(file),
            checksum=_md5(file.body),
            checksumAlgorithm="MD5",
            sid="1",
        )
        later = () if self.version == 7 else (_element("resourcePolicies", *policies),)
        return _element("bitstream", told, *later)


def _element(name: str, *parts: str) -> str:
    return f"<element name={quoteattr(name)}>{''.join(parts)}</element>"


def _fields(**values: str) -> str:
    return "".join(
        f"<field name={quoteattr(name)}>{escape(value)}</field>" for name, value in values.items()
    )


def _error(code: str, text: str) -> str:
    return f"<error code={quoteattr(code)}>{escape(text)}</error>"


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()
