"""Files and rights in the metadata of an item.

Five formats are known: METS, OAI-ORE as Atom or RDF, DSpace's own ``xoai``, and addresses in Dublin
Core elements. The first four list files; the last mentions addresses, which may be anything.
"""

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from resourcesync.documents._expat import SEPARATOR, XmlDriver, XmlFault, XmlFaultKind
from resourcesync.errors import MalformedDocumentError
from resourcesync.model.digests import Digest

METS_NS: Final = "http://www.loc.gov/METS/"
ORE_NS: Final = "http://www.openarchives.org/ore/terms/"
XOAI_NS: Final = "http://www.lyncode.com/xoai"
_XLINK_HREF: Final = f"http://www.w3.org/1999/xlink{SEPARATOR}href"
_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_AGGREGATES: Final = f"{ORE_NS}aggregates"
_DUBLIN_CORE: Final = frozenset({"http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/"})
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
_POLICIES: Final = [*_BITSTREAM, "resourcePolicies"]
_POLICY: Final = [*_POLICIES, "resourcePolicy"]
_EVERYBODY: Final = "anonymous"


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
    finder = _MetadataParser()
    finder.driver.read(metadata)
    return finder.item_metadata()


class _MetadataParser:
    """One pass over the metadata."""

    def __init__(self) -> None:
        self._files: dict[str, MetadataFile] = {}
        self._rights: list[str] = []
        self._bundles: dict[str, str] = {}  # by address, where it differs from the file
        self._text: list[str] = []
        self._length = 0
        self._uses: list[str] = []
        self._names: list[str] = []
        self._file: dict[str, str] = {}
        self._fields: dict[str, str] = {}
        self._policies: list[dict[str, str]] | None = None
        self._bundle = self._field_name = self._about = ""
        self.driver = XmlDriver(_error_of, encodings=None)
        parser = self.driver.parser
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        starts: dict[tuple[str, str], Callable[[dict[str, str]], None]] = {
            (METS_NS, "fileGrp"): self._start_group,
            (METS_NS, "file"): self._start_file,
            (METS_NS, "FLocat"): self._locate,
            ("http://www.w3.org/2005/Atom", "link"): self._link,
            (ORE_NS, "aggregates"): self._aggregate,
            (_RDF, "Description"): self._describe,
            (XOAI_NS, "element"): self._start_element,
            (XOAI_NS, "field"): self._start_field,
        }
        self._starts = {f"{space}{SEPARATOR}{name}": do for (space, name), do in starts.items()}

    def item_metadata(self) -> ItemMetadata:
        """Return what was found."""
        files = (
            replace(file, bundle=file.bundle or self._bundles.get(file.uri, ""))
            for file in self._files.values()
        )
        return ItemMetadata(files=tuple(files), rights=tuple(dict.fromkeys(self._rights)))

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._text, self._length = [], 0
        begin = self._starts.get(name)
        if begin is not None:
            begin(attributes)

    def _characters(self, text: str) -> None:
        self._length += len(text)
        if self._length <= _MOST_TEXT:
            self._text.append(text)

    def _end(self, name: str) -> None:
        text, self._text = "".join(self._text).strip(), []
        namespace, _, local = name.rpartition(SEPARATOR)
        if namespace in _DUBLIN_CORE:
            if local in _MENTIONS and _WEB.match(text):
                self._add(MetadataFile(uri=text, is_listed=False))
            elif local in _RIGHTS:
                self._add_rights(text)
            elif local == "description" and self._about and len(self._bundles) < _MOST:
                self._bundles.setdefault(_encoded(self._about), text[:64])
        elif namespace == METS_NS and local == "fileGrp" and self._uses:
            self._uses.pop()
        elif namespace == XOAI_NS:
            self._end_xoai(local, text)

    def _start_group(self, attributes: dict[str, str]) -> None:
        self._uses.append(attributes.get("USE", self._uses[-1] if self._uses else ""))

    def _start_file(self, attributes: dict[str, str]) -> None:
        self._file = attributes

    def _locate(self, attributes: dict[str, str]) -> None:
        told = self._file
        self._add(
            MetadataFile(
                uri=attributes.get(_XLINK_HREF, ""),
                bundle=told.get("USE", self._uses[-1] if self._uses else ""),
                length=_length(told.get("SIZE", "")),
                digests=_digests(told.get("CHECKSUMTYPE", ""), told.get("CHECKSUM", "")),
                media_type=_media_type(told.get("MIMETYPE", "")),
            )
        )

    def _link(self, attributes: dict[str, str]) -> None:
        if attributes.get("rel") == _AGGREGATES:
            self._add(
                MetadataFile(
                    uri=attributes.get("href", ""),
                    length=_length(attributes.get("length", "")),
                    media_type=_media_type(attributes.get("type", "")),
                )
            )

    def _aggregate(self, attributes: dict[str, str]) -> None:
        self._add(MetadataFile(uri=attributes.get(f"{_RDF}{SEPARATOR}resource", "")))

    def _describe(self, attributes: dict[str, str]) -> None:
        self._about = attributes.get(f"{_RDF}{SEPARATOR}about", "").strip()

    def _start_element(self, attributes: dict[str, str]) -> None:
        self._names.append(attributes.get("name", ""))
        if self._names == _BITSTREAM:
            self._fields, self._policies = {}, None
        elif self._names == _POLICIES:
            self._policies = []
        elif self._names == _POLICY and self._policies is not None and len(self._policies) < _MOST:
            self._policies.append({})

    def _start_field(self, attributes: dict[str, str]) -> None:
        self._field_name = attributes.get("name", "")

    def _end_xoai(self, local: str, text: str) -> None:
        if local == "field":
            name, place = self._field_name, self._names
            if place == _BITSTREAM:
                self._fields[name[:64]] = text
            elif place == _POLICY and self._policies:
                self._policies[-1][name[:64]] = text
            elif place == _BITSTREAM[:2] and name == "name":
                self._bundle = text
            elif name == "value" and (
                place[:2] == ["dc", "rights"] or place == ["others", "access-status"]
            ):
                self._add_rights(text)
        elif local == "element" and self._names:
            if self._names == _BITSTREAM:
                self._end_bitstream()
            self._names.pop()

    def _end_bitstream(self) -> None:
        told = self._fields
        file = MetadataFile(
            uri=told.get("url", ""),
            bundle=self._bundle,
            length=_length(told.get("size", "")),
            digests=_digests(told.get("checksumAlgorithm", ""), told.get("checksum", "")),
            media_type=_media_type(told.get("format", "")),
            embargo=told.get("embargo", "")[:64],
        )
        self._add(file if self._policies is None else _with_access(file, self._policies))

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


def _error_of(fault: XmlFault) -> MalformedDocumentError:
    match fault.kind:
        case XmlFaultKind.DOCTYPE:
            return MalformedDocumentError("the metadata has a DOCTYPE", code="xml-dtd")
        case XmlFaultKind.LIMIT:
            message = f"the metadata has more than {fault.limit:,} {fault.detail}"
            return MalformedDocumentError(message)
        case _:
            return MalformedDocumentError(f"the metadata is not well-formed: {fault.detail}")


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
