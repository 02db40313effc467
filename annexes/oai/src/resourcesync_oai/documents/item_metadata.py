"""Files and rights in the metadata of an item.

Five formats are known: METS, OAI-ORE as Atom or RDF, DSpace's own ``xoai``, and addresses in Dublin
Core elements. The first four list files; the last mentions addresses, which may be anything.
"""

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import msgspec
from lxml import etree
from msgspec.structs import replace

from resourcesync.errors import MalformedDocumentError
from resourcesync.model.digests import Digest

_METS: Final = "{http://www.loc.gov/METS/}"
_ORE: Final = "{http://www.openarchives.org/ore/terms/}"
_XOAI: Final = "{http://www.lyncode.com/xoai}"
_RDF: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_XLINK_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_AGGREGATES: Final = "http://www.openarchives.org/ore/terms/aggregates"
_DUBLIN_CORE: Final = frozenset({"{http://purl.org/dc/elements/1.1/", "{http://purl.org/dc/terms/"})
_MENTIONS: Final = frozenset({"identifier", "relation", "hasPart", "hasFormat", "hasVersion"})
_RIGHTS: Final = frozenset({"rights", "accessRights"})
_MOST: Final = 10_000
_MOST_TEXT: Final = 8_192
_LONGEST: Final = 2_000
_AS_WRITTEN: Final = "%/:?#[]@!$&'()*+,;=~-._"
_WEB: Final = re.compile(r"https?://[^/\s]", re.IGNORECASE)
_DIGITS: Final = 18
_LONGEST_TYPE: Final = 200
_ALGORITHMS: Final = {
    "MD5": "md5",
    "SHA-1": "sha-1",
    "SHA-256": "sha-256",
    "SHA-384": "sha-384",
    "SHA-512": "sha-512",
}
_BITSTREAM: Final = ["bundles", "bundle", "bitstreams", "bitstream"]
_EVERYBODY: Final = "anonymous"

Element = Any
"""An element of lxml, which has no types."""


class MetadataFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file named in metadata.

    Attributes:
        uri: Its address.
        is_listed: True if it is listed as a file of the item; else its address is only mentioned.
        bundle: Its purpose, such as ``ORIGINAL`` (the ``USE`` of METS); empty for none.
        length: Bytes.
        digests: As written.
        media_type: As written.
        embargo: The first public day, as written (``xoai``); empty for none.
        last_day: The last public day, as written (``xoai``); empty for none.
        is_restricted: True if only named groups and persons may read it (``xoai``).
    """

    uri: str
    is_listed: bool = True
    bundle: str = ""
    length: int | None = None
    digests: tuple[Digest, ...] = ()
    media_type: str = ""
    embargo: str = ""
    last_day: str = ""
    is_restricted: bool = False

    def is_public_on(self, day: str) -> bool:
        """True if everybody may read it on a day, such as ``2026-01-31``."""
        begun = not self.embargo or self.embargo[: len(day)] <= day
        ended = self.last_day and self.last_day[: len(day)] < day
        return begun and not ended and not self.is_restricted


class ItemMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The files and rights in the metadata of one item.

    Attributes:
        files: Each address once, in the order of the metadata.
        rights: Texts on rights, and the access status of ``xoai``.
    """

    files: tuple[MetadataFile, ...] = ()
    rights: tuple[str, ...] = ()


def parse_item_metadata(metadata: bytes) -> ItemMetadata:
    """Read the metadata of an item."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(metadata, parser)
    except etree.XMLSyntaxError as error:
        raise MalformedDocumentError(f"the metadata is not well-formed: {error.msg}") from error
    if root.getroottree().docinfo.doctype:
        raise MalformedDocumentError("the metadata has a DOCTYPE", code="xml-dtd")
    finder = _Finder()
    for element in root.iter():
        finder.read(element)
    return finder.item_metadata()


class _Finder:
    """The files and rights that elements tell of."""

    def __init__(self) -> None:
        self._files: dict[str, MetadataFile] = {}
        self._rights: list[str] = []
        self._bundles: dict[str, str] = {}  # by address, where it differs from the file
        self._readers: dict[str, Callable[[Element], None]] = {
            f"{_METS}FLocat": self._locate,
            "{http://www.w3.org/2005/Atom}link": self._link,
            f"{_ORE}aggregates": self._aggregate,
            f"{_RDF}Description": self._describe,
            f"{_XOAI}element": self._read_element,
        }

    def read(self, element: Element) -> None:
        """Take what an element tells."""
        read = self._readers.get(element.tag)
        if read is not None:
            read(element)
            return
        namespace, _, name = element.tag.rpartition("}")
        if namespace in _DUBLIN_CORE:
            if name in _MENTIONS and _WEB.match(_text(element)):
                self._add(MetadataFile(uri=_text(element), is_listed=False))
            elif name in _RIGHTS:
                self._add_rights(_text(element))

    def item_metadata(self) -> ItemMetadata:
        """Return what was found."""
        files = (
            replace(file, bundle=file.bundle or self._bundles.get(file.uri, ""))
            for file in self._files.values()
        )
        return ItemMetadata(files=tuple(files), rights=tuple(dict.fromkeys(self._rights)))

    def _locate(self, element: Element) -> None:
        told = next(element.iterancestors(f"{_METS}file"), element)
        groups = (told, *told.iterancestors(f"{_METS}fileGrp"))
        self._add(
            MetadataFile(
                uri=element.get(_XLINK_HREF, ""),
                bundle=next((group.get("USE") for group in groups if "USE" in group.attrib), ""),
                length=_length(told.get("SIZE", "")),
                digests=_digests(told.get("CHECKSUMTYPE", ""), told.get("CHECKSUM", "")),
                media_type=_media_type(told.get("MIMETYPE", "")),
            )
        )

    def _link(self, element: Element) -> None:
        if element.get("rel") == _AGGREGATES:
            self._add(
                MetadataFile(
                    uri=element.get("href", ""),
                    length=_length(element.get("length", "")),
                    media_type=_media_type(element.get("type", "")),
                )
            )

    def _aggregate(self, element: Element) -> None:
        self._add(MetadataFile(uri=element.get(f"{_RDF}resource", "")))

    def _describe(self, element: Element) -> None:
        """Take the bundle of a file of ORE."""
        about = element.get(f"{_RDF}about", "").strip()
        bundle = element.find("{http://purl.org/dc/terms/}description")
        if about and bundle is not None:
            self._bundles.setdefault(_encoded(about), _text(bundle)[:64])

    def _read_element(self, element: Element) -> None:
        """Take a file, or rights, of ``xoai``."""
        above = [node.get("name", "") for node in element.iterancestors(f"{_XOAI}element")]
        place = [*reversed(above), element.get("name", "")]
        if place == _BITSTREAM:
            self._read_bitstream(element)
        elif place[:2] == ["dc", "rights"] or place == ["others", "access-status"]:
            self._add_rights(_fields(element).get("value", ""))

    def _read_bitstream(self, element: Element) -> None:
        told, bundle = _fields(element), _fields(element.getparent().getparent())
        file = MetadataFile(
            uri=told.get("url", ""),
            bundle=bundle.get("name", ""),
            length=_length(told.get("size", "")),
            digests=_digests(told.get("checksumAlgorithm", ""), told.get("checksum", "")),
            media_type=_media_type(told.get("format", "")),
            embargo=told.get("embargo", "")[:64],
        )
        listed = [
            node
            for node in element.findall(f"{_XOAI}element")
            if node.get("name") == "resourcePolicies"
        ]
        policies = [_fields(item) for node in listed for item in node.findall(f"{_XOAI}element")]
        self._add(_with_access(file, policies) if listed else file)

    def _add(self, file: MetadataFile) -> None:
        uri = _encoded(file.uri.strip())
        if not _WEB.match(uri) or len(uri) > _LONGEST or len(self._files) >= _MOST:
            return
        known = self._files.get(uri)
        if known is None or (file.is_listed and not known.is_listed):
            self._files[uri] = replace(file, uri=uri)

    def _add_rights(self, text: str) -> None:
        if text and len(self._rights) < _MOST:
            self._rights.append(text)


def _text(element: Element) -> str:
    return (element.text or "")[:_MOST_TEXT].strip()


def _fields(element: Element) -> dict[str, str]:
    """Return the fields of an element of ``xoai``, each by its name."""
    return {field.get("name", ""): _text(field) for field in element.findall(f"{_XOAI}field")}


def _with_access(file: MetadataFile, policies: list[dict[str, str]]) -> MetadataFile:
    """Return a file with what its policies say (DSpace 8 and later, which list those to read)."""
    public = [
        (policy.get("start-date", "")[:64], policy.get("end-date", "")[:64])
        for policy in policies
        if policy.get("group", "").casefold() == _EVERYBODY and policy.get("action") == "READ"
    ]
    if not public:
        return replace(file, is_restricted=True)
    # The earliest start, and of those the policy without an end, else the one that ends last.
    first = min(start for start, _ in public)
    ends = [end for start, end in public if start == first]
    return replace(file, embargo=max(file.embargo, first), last_day="" if "" in ends else max(ends))


def _encoded(uri: str) -> str:
    """Return an address as a URI: without its fragment, and with what no URI can have escaped."""
    return quote(uri.partition("#")[0], safe=_AS_WRITTEN)


def _length(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else None


def _digests(algorithm: str, value: str) -> tuple[Digest, ...]:
    name = _ALGORITHMS.get(algorithm.strip().upper(), "")
    digest = Digest(name, value.strip().lower())
    return (digest,) if digest.is_usable else ()


def _media_type(text: str) -> str:
    found = text.strip()
    kind, slash, rest = found.partition("/")
    good = slash and kind and rest and found.isascii() and found.isprintable()
    return found if good and len(found) <= _LONGEST_TYPE else ""
