"""The scanner of OAI-PMH answers, on lxml: each value is ready as soon as it is whole.

An element inside an answer becomes a document of its own. Metadata formats use prefixes in values
too (``xsi:type="dcterms:URI"``), so prefixes are preserved, and outer declarations come along.
Comments and instructions do not.
"""

import re
from collections import deque
from typing import Any, Final

import msgspec
from lxml import etree

from resourcesync.errors import (
    DocumentLimitError,
    MalformedDocumentError,
    NotAListError,
    TruncatedDocumentError,
)
from resourcesync_oai.documents.records import (
    ListToken,
    MetadataFormat,
    OaiFault,
    OaiRecord,
    ProviderIdentity,
    RecordHeader,
)

_DECLARATION: Final = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_ENCODING: Final = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([\w.-]+)")
_UTF: Final = frozenset({b"utf-8", b"utf8", b"utf-16", b"utf-16le", b"utf-16be"})
"""Encodings that a declaration may name: all bytes are in UTF-8 by now."""
_ROOT: Final = "OAI-PMH"
_IDENTIFIER_OF: Final = "{http://www.openarchives.org/OAI/2.0/oai-identifier}repositoryIdentifier"
_ENTRIES: Final = frozenset({"record", "set", "metadataFormat"})
_NO_VERBS: Final = frozenset({"responseDate", "request", "error", ""})
_MOST_TEXT: Final = 8_192
_MOST_VALUE: Final = 65_536
_MOST_SETS: Final = 1_000
_DEEPEST: Final = 200
_MOST_ELEMENTS: Final = 1_000_000
_NODE: Final = 32
"""Characters that an element counts for, at least."""
_LONGEST_NAME: Final = 1_000
_DIGITS: Final = 18
_OF_VERBS: Final = 2
_OF_ENTRIES: Final = 3
_OF_PARTS: Final = 4

Element = Any
"""An element of lxml, which has no types."""


class ResponseLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one answer; they bound memory and time for any input.

    Attributes:
        bytes: Size of the whole, after gunzip.
        record: Characters of the metadata of one record; one over it is left out, no other.
        entries: Records, sets or formats.
    """

    bytes: int = 64 * 2**20
    record: int = 8 * 2**20
    entries: int = 100_000


class IllFormedError(Exception):
    """An answer is not well-formed, or stops before its end; its records may be."""

    def __init__(self, detail: str, *, is_cut: bool = False) -> None:
        super().__init__(detail)
        self.detail = detail
        self.is_cut = is_cut

    def document_error(self, uri: str) -> MalformedDocumentError | TruncatedDocumentError:
        """Return the error for the whole answer."""
        if self.is_cut:
            return TruncatedDocumentError("The document stops before its end", uri=uri)
        return MalformedDocumentError(
            f"The document is not well-formed XML: {self.detail}", uri=uri
        )


class ResponseScanner:
    """The answer as far as it was read.

    Attributes:
        records: Whole records that were not read yet.
        verb: The verb of the request, such as ``ListRecords``; empty until it is read.
        is_over: True if the root has ended.
        is_begun: True if an element of it was met.
    """

    def __init__(self, uri: str, limits: ResponseLimits) -> None:
        self.records: deque[OaiRecord] = deque()
        self.verb = ""
        self.is_over = self.is_begun = False
        self.response_date = ""
        self.faults: list[OaiFault] = []
        self.formats: list[MetadataFormat] = []
        self.sets: list[str] = []
        self.identity = ProviderIdentity()
        self.token: ListToken | None = None
        self._uri, self._limits = uri, limits
        self._depth = self._elements = self._entries = self._size = 0
        self._prefix = ""
        self._record: Element = None
        self._parser = etree.XMLPullParser(
            ("start", "end"),
            encoding="utf-8",
            remove_comments=True,
            remove_pis=True,
            resolve_entities=False,
            no_network=True,
        )

    def feed(self, block: bytes) -> None:
        """Feed the next bytes."""
        if not self.is_begun and (named := _ENCODING.match(block)) and named[1].lower() not in _UTF:
            raise MalformedDocumentError(
                f"The document declares {named[1].decode()}; only UTF-8 and UTF-16 are read",
                uri=self._uri,
                code="xml-encoding",
            )
        fault = None
        try:
            self._parser.feed(block)
        except etree.XMLSyntaxError as error:
            fault = error
        for event, element in self._parser.read_events():
            if event == "start":
                self._start(element)
            else:
                self._end(element)
        if fault is not None:
            raise IllFormedError(" ".join(str(fault.msg).split())) from fault

    def close(self) -> None:
        """End the answer."""
        if not self.is_over:
            raise IllFormedError("it stops before its end", is_cut=True)

    def _start(self, element: Element) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._limit_error(_DEEPEST, "nested elements")
        self._elements += 1
        if self._elements > _MOST_ELEMENTS:
            raise self._limit_error(_MOST_ELEMENTS, "elements")
        if any(len(value) > _MOST_VALUE for value in element.attrib.values()):
            raise self._limit_error(_MOST_VALUE, "characters in a value")
        if self._depth == 1:
            self._begin(element)
        elif self._depth == _OF_VERBS:
            name = self._name(element)
            self.verb = self.verb or ("" if name in _NO_VERBS else name)
        elif self._depth == _OF_ENTRIES and self._name(element) in _ENTRIES:
            self._entries += 1
            if self._entries > self._limits.entries:
                raise self._limit_error(self._limits.entries, "entries")
            self._record = element

    def _begin(self, root: Element) -> None:
        prefix, _, name = root.tag.rpartition("}")
        doctype = root.getroottree().docinfo.doctype
        if name != _ROOT or "}" in prefix:
            raise self.not_an_answer(f"an element {name[:64]!r}")
        if doctype:
            raise MalformedDocumentError(
                "The document has a DOCTYPE, which no answer needs", uri=self._uri, code="xml-dtd"
            )
        self.is_begun = True
        self._prefix = f"{prefix}}}" if prefix else ""

    def _end(self, element: Element) -> None:
        """Read an element, and drop it when nothing needs it any more: memory stays bounded."""
        depth, self._depth = self._depth, self._depth - 1
        if depth > _OF_VERBS:
            values = (element.text or "", element.tail or "", *element.attrib.values())
            self._size += _NODE + len(element.tag) + sum(map(len, values))
        if depth == 1:
            self.is_over = True
        elif depth == _OF_VERBS:
            self._end_part(self._name(element), element)
            _drop(element)
            self._size = 0
        elif depth == _OF_ENTRIES:
            self._end_entry(self._name(element), element)
            if self.verb != "Identify" or self._size > self._limits.record:
                _drop(element)
                self._size = 0
        elif self._size > self._limits.record and depth > _OF_PARTS:
            _drop(element)

    def _end_part(self, name: str, element: Element) -> None:
        match name:
            case "responseDate":
                self.response_date = self.response_date or _text(element)
            case "error" if len(self.faults) < _MOST_SETS:
                code = element.get("code", "")
                self.faults.append(OaiFault(code=code, text=_text(element)[:500]))
            case "Identify":
                self.identity = ProviderIdentity(
                    name=self._field(element, "repositoryName"),
                    earliest=self._field(element, "earliestDatestamp"),
                    granularity=self._field(element, "granularity"),
                    deletions=self._field(element, "deletedRecord"),
                    namespace=_text(next(element.iter(_IDENTIFIER_OF), None)),
                    moment=self.response_date,
                )
            case _:
                pass

    def _end_entry(self, name: str, element: Element) -> None:
        match name:
            case "record":
                self.records.append(self._read_record(element))
            case "set" if spec := self._field(element, "setSpec"):
                self.sets.append(spec)
            case "metadataFormat" if prefix := self._field(element, "metadataPrefix"):
                self.formats.append(
                    MetadataFormat(
                        prefix=prefix,
                        namespace=self._field(element, "metadataNamespace"),
                        schema=self._field(element, "schema"),
                    )
                )
            case "resumptionToken":
                self.token = _token(_text(element), element.get("completeListSize", "").strip())
            case _:
                pass
        if name in _ENTRIES:
            self._record = None

    def _read_record(self, element: Element) -> OaiRecord:
        header, problem, metadata = self._header(element), "", b""
        parts = element.findall(f"{self._prefix}metadata/*")
        if header is None:
            problem = "it has no identifier"
        elif self._size > self._limits.record:
            problem = f"it is longer than {self._limits.record:,} characters"
        elif len(parts) > 1:
            problem = "it has more than one element of metadata"
        elif not header.is_deleted and not parts:
            problem = "it has no metadata"
        elif not header.is_deleted:
            metadata = _DECLARATION + etree.tostring(parts[0], encoding="utf-8", with_tail=False)
            metadata += b"\n"
        return OaiRecord(header=header, metadata=metadata, problem=problem)

    def open_record_header(self) -> RecordHeader | None:
        """Return the header of a record that has not ended, if the header has."""
        return None if self._record is None else self._header(self._record)

    def _header(self, record: Element) -> RecordHeader | None:
        header = record.find(f"{self._prefix}header")
        identifier = "" if header is None else self._field(header, "identifier")
        if not identifier or len(identifier) > _LONGEST_NAME:
            return None
        specs = map(_text, header.findall(f"{self._prefix}setSpec"))
        return RecordHeader(
            identifier=identifier,
            datestamp=self._field(header, "datestamp")[:64],
            sets=tuple(dict.fromkeys(filter(None, specs)))[:_MOST_SETS],
            is_deleted=header.get("status", "").strip().lower() == "deleted",
        )

    def _field(self, element: Element, name: str) -> str:
        return _text(element.find(self._prefix + name))

    def _name(self, element: Element) -> str:
        """Return the name of an element of the protocol; empty for any other."""
        name: str = element.tag
        own = name.startswith(self._prefix) and (self._prefix or not name.startswith("{"))
        return name.removeprefix(self._prefix) if own else ""

    def _limit_error(self, limit: int, what: str) -> DocumentLimitError:
        return DocumentLimitError(
            f"The document has more than {limit:,} {what}",
            uri=self._uri,
            evidence=(("limit", f"{limit:,} {what}"),),
        )

    def not_an_answer(self, got: str) -> NotAListError:
        """Return the error for what is something else."""
        return NotAListError(
            "this is not an answer of an OAI-PMH provider",
            uri=self._uri,
            evidence=(("got", got),),
            hint="check that the address is the base URL of the provider",
            code="not-oai",
        )


def _drop(element: Element) -> None:
    """Empty an element, and remove those before it."""
    element.clear()
    while element.getprevious() is not None:
        del element.getparent()[0]


def _text(element: Element) -> str:
    return "" if element is None else (element.text or "")[:_MOST_TEXT].strip()


def _token(text: str, size: str) -> ListToken | None:
    known = int(size) if size.isascii() and size.isdigit() and len(size) <= _DIGITS else None
    return ListToken(value=text, size=known) if text else None
