"""The scanner of OAI-PMH answers: one pass of expat; each value is ready as soon as it is whole.

An element inside an answer becomes a document of its own. Metadata formats use prefixes in values
too (``xsi:type="dcterms:URI"``), so prefixes are preserved, and outer declarations come along.
Comments and instructions do not.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from resourcesync.documents._context import document_error, limit_error
from resourcesync.documents._expat import (
    MAX_PREFIXES,
    SEPARATOR,
    XmlDriver,
    XmlFault,
    XmlFaultKind,
)
from resourcesync.documents._foreign import TEXT_ESCAPES, VALUE_ESCAPES
from resourcesync.errors import NotAListError
from resourcesync_oai.documents.records import (
    ListToken,
    MetadataFormat,
    OaiFault,
    OaiRecord,
    ProviderIdentity,
    RecordHeader,
)

DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_MOST_PREFIXES: Final = 200

Scope = Mapping[str, str]
"""Namespaces by prefix; the default one is at the empty prefix."""


class ElementCopier:
    """One element and its content, written as its parts arrive.

    Attributes:
        is_over: True if it is longer than its budget; then it is dropped.
    """

    def __init__(self, scope: Scope, budget: int) -> None:
        self.is_over = False
        self._around = scope
        self._left = budget
        self._root = ""  # the root's start tag, up to where declarations go
        self._own: dict[str, str] = {}  # what the root declares itself
        self._pieces: list[str] = []
        self._names: list[str] = []
        self._is_open = False  # whether the last start tag still lacks its end
        self._needs_default = False

    def start(self, name: str, attributes: list[str], declared: Scope) -> None:
        """Add the start of an element, and its declarations."""
        if len(declared) > _MOST_PREFIXES:
            self.is_over = True
        written, namespace = _qualified_name(name)
        pairs = iter(attributes)
        values = "".join(
            f' {_qualified_name(key)[0]}="{value.translate(VALUE_ESCAPES)}"'
            for key, value in zip(pairs, pairs, strict=True)
        )
        self._needs_default = self._needs_default or namespace == self._around.get("")
        if not self._names:
            self._root, self._own = f"<{written}", dict(declared)
            self._add(values)
        else:
            self._add(f"{'>' if self._is_open else ''}<{written}{_declared(declared)}{values}")
        self._names.append(written)
        self._is_open = True

    def end(self) -> bool:
        """Add the end of the element that was started last; return whether it was the outermost."""
        name = self._names.pop()
        self._add("/>" if self._is_open else f"</{name}>")
        self._is_open = False
        return not self._names

    def text(self, text: str) -> None:
        """Add some text."""
        self._add((">" if self._is_open else "") + text.translate(TEXT_ESCAPES))
        self._is_open = False

    def document(self) -> bytes:
        """Return the whole as a document."""
        scope = {**self._around, **self._own}
        if not self._needs_default and "" not in self._own:
            scope.pop("", None)
        body = "".join(self._pieces)
        return f"{DECLARATION}{self._root}{_declared(scope)}{body}\n".encode()

    def _add(self, piece: str) -> None:
        self._left -= len(piece)
        if self._left < 0:
            self.is_over = True
        if self.is_over:
            self._pieces.clear()
        else:
            self._pieces.append(piece)


def _qualified_name(name: str) -> tuple[str, str]:
    """Return a name as it is written, and its namespace if that is the default one there."""
    namespace, local, prefix = (*name.split(SEPARATOR), "", "")[:3]
    if not local:
        return namespace, ""
    return (f"{prefix}:{local}", "") if prefix else (local, namespace)


def _declared(scope: Scope) -> str:
    return "".join(
        f' xmlns{":" if prefix else ""}{prefix}="{scope[prefix].translate(VALUE_ESCAPES)}"'
        for prefix in sorted(scope)
        if prefix != "xml"
    )


_ROOT: Final = "OAI-PMH"
_IDENTIFIER_OF: Final = "http://www.openarchives.org/OAI/2.0/oai-identifier"
_MOST_TEXT: Final = 8_192
_MOST_SETS: Final = 1_000
_DEEPEST: Final = 200
_ENTRIES: Final = frozenset({"record", "set", "metadataFormat"})
_LONGEST_NAME: Final = 1_000
_DIGITS: Final = 18
_OF_VERBS: Final = 2
_OF_ENTRIES: Final = 3


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

    def __init__(self, fault: XmlFault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


class ResponseScanner:
    """The answer as far as it was read.

    Attributes:
        records: Whole records that were not read yet.
        record_ended: Bytes up to the end tag of the last whole record.
        verb: The verb of the request, such as ``ListRecords``; empty until it is read.
        is_over: True if the root has ended.
    """

    def __init__(self, uri: str, limits: ResponseLimits) -> None:
        self.records: deque[OaiRecord] = deque()
        self.record_ended = 0
        self.verb = ""
        self.is_over = False
        self.response_date = ""
        self.faults: list[OaiFault] = []
        self.formats: list[MetadataFormat] = []
        self.sets: list[str] = []
        self.identity: dict[str, str] = {}
        self.token: ListToken | None = None
        self._uri, self._limits = uri, limits
        self._entries = 0
        self._path: list[str] = []
        self._scopes: list[dict[str, str]] = [{}]
        self._declared: dict[str, str] = {}
        self._namespace = ""
        self._text: list[str] = []
        self._length = 0
        self._attributes: dict[str, str] = {}
        self._fields: dict[str, str] = {}
        self._specs: list[str] = []
        self._has_header = self._is_deleted = False
        self._copy: ElementCopier | None = None
        self._metadata, self._problem = b"", ""
        self._driver = self._new_driver()
        self._ends: dict[str, Callable[[str], None]] = {
            "responseDate": self._end_date,
            "error": self._end_fault,
            "record": self._end_record,
            "set": self._end_set,
            "metadataFormat": self._end_format,
            "resumptionToken": self._end_token,
        }

    def feed(self, block: bytes) -> None:
        """Feed the next bytes."""
        self._driver.feed(block)

    def close(self) -> None:
        """End the answer."""
        self._driver.close()

    def identity_of(self) -> ProviderIdentity:
        """Return the identity of the provider."""
        told = self.identity
        return ProviderIdentity(
            name=told.get("repositoryName", ""),
            earliest=told.get("earliestDatestamp", ""),
            granularity=told.get("granularity", ""),
            deletions=told.get("deletedRecord", ""),
            namespace=told.get("repositoryIdentifier", ""),
            moment=self.response_date,
        )

    def _new_driver(self) -> XmlDriver:
        driver = XmlDriver(self._error_of)
        parser = driver.parser
        parser.ordered_attributes = True
        parser.namespace_prefixes = True
        parser.StartNamespaceDeclHandler = self._declare_prefix
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        return driver

    def _error_of(self, fault: XmlFault) -> Exception:
        if fault.kind in (XmlFaultKind.BROKEN, XmlFaultKind.CUT_SHORT):
            return IllFormedError(fault)
        if fault.kind is XmlFaultKind.DOCTYPE and fault.detail.lower() == "html":
            return self.not_an_answer("a page of HTML")
        return document_error(fault, self._uri)

    def _declare_prefix(self, prefix: str | None, uri: str | None) -> None:
        self._declared[prefix or ""] = uri or ""

    def _start(self, name: str, attributes: list[str]) -> None:
        declared, self._declared = self._declared, {}
        if self._copy is not None:
            self._copy.start(name, attributes, declared)
            self._path.append("")
            self._check_depth()
            return
        around = self._scopes[-1]
        scope = {**around, **declared} if declared else around
        if len(scope) > MAX_PREFIXES:
            raise limit_error(MAX_PREFIXES, "prefixes", uri=self._uri)
        self._scopes.append(scope)
        namespace, local = _parted(name)
        if not self._path:
            if local != _ROOT:
                raise self.not_an_answer(f"an element {local[:64]!r}")
            self._namespace = namespace
        elif self._path[2:] == ["record", "metadata"]:
            if self._metadata or self._problem:
                self._problem = "it has more than one element of metadata"
            self._copy = ElementCopier(around, self._limits.record)
            self._copy.start(name, attributes, declared)
            self._path.append("")
            return
        known = local if namespace in (self._namespace, _IDENTIFIER_OF) else ""
        self._path.append(known)
        self._check_depth()
        self._text, self._length = [], 0
        self._begin(known, attributes)

    def _begin(self, name: str, attributes: list[str]) -> None:
        depth = len(self._path)
        if depth == _OF_VERBS and name not in ("responseDate", "request", "error", ""):
            self.verb = self.verb or name
        given = iter(attributes)
        self._attributes = {_parted(key)[1]: value for key, value in zip(given, given, strict=True)}
        if depth == _OF_ENTRIES and name in _ENTRIES:
            self._entries += 1
            if self._entries > self._limits.entries:
                raise limit_error(self._limits.entries, "entries", uri=self._uri)
            self._fields, self._specs = {}, []
            self._has_header = self._is_deleted = False
            self._metadata = b""
            self._problem = ""
        if name == "header":
            self._has_header = True
            self._is_deleted = self._attributes.get("status", "").strip().lower() == "deleted"

    def _end(self, _name: str) -> None:
        known = self._path.pop()
        if self._copy is not None:
            if self._copy.end():
                self._finish_copy(self._copy)
                self._scopes.pop()
            return
        self._scopes.pop()
        text = "".join(self._text).strip()
        self._text, self._length = [], 0
        end = self._ends.get(known)
        if end is not None and len(self._path) in (1, 2):
            end(text)
        elif known and text:
            self._field(known, text)
        self.is_over = not self._path

    def _characters(self, text: str) -> None:
        if self._copy is not None:
            self._copy.text(text)
            return
        self._length += len(text)
        if self._length <= _MOST_TEXT:
            self._text.append(text)

    def _field(self, name: str, text: str) -> None:
        inside = self._path[1:]
        if inside[:1] == ["Identify"]:
            self.identity.setdefault(name, text)
        elif name == "setSpec" and inside[-1:] == ["header"]:
            if len(self._specs) < _MOST_SETS and text not in self._specs:
                self._specs.append(text)
        elif inside and inside[-1] in ("header", "set", "metadataFormat"):
            self._fields.setdefault(name, text)

    def _finish_copy(self, copy: ElementCopier) -> None:
        self._copy = None
        if self._problem:
            return
        if copy.is_over:
            self._problem = f"it is longer than {self._limits.record:,} characters"
        else:
            self._metadata = copy.document()

    def _end_date(self, text: str) -> None:
        self.response_date = self.response_date or text

    def _end_fault(self, text: str) -> None:
        if len(self.faults) < _MOST_SETS:
            self.faults.append(OaiFault(code=self._attributes.get("code", ""), text=text[:500]))

    def _end_set(self, _text: str) -> None:
        if "setSpec" in self._fields:
            self.sets.append(self._fields["setSpec"])

    def _end_format(self, _text: str) -> None:
        told = self._fields
        if "metadataPrefix" in told:
            self.formats.append(
                MetadataFormat(
                    prefix=told["metadataPrefix"],
                    namespace=told.get("metadataNamespace", ""),
                    schema=told.get("schema", ""),
                )
            )

    def _end_token(self, text: str) -> None:
        size = self._attributes.get("completeListSize", "").strip()
        known = int(size) if size.isascii() and size.isdigit() and len(size) <= _DIGITS else None
        self.token = ListToken(value=text, size=known) if text else None

    def _end_record(self, _text: str) -> None:
        header = self._header()
        problem = self._problem
        if header is None:
            problem = problem or "it has no identifier"
        elif not header.is_deleted and not self._metadata:
            problem = problem or "it has no metadata"
        metadata = b"" if problem or (header and header.is_deleted) else self._metadata
        self.records.append(OaiRecord(header=header, metadata=metadata, problem=problem))
        self._metadata = b""
        self.record_ended = self._driver.parser.CurrentByteIndex

    def _header(self) -> RecordHeader | None:
        identifier = self._fields.get("identifier", "")
        if not self._has_header or not identifier or len(identifier) > _LONGEST_NAME:
            return None
        return RecordHeader(
            identifier=identifier,
            datestamp=self._fields.get("datestamp", "")[:64],
            sets=tuple(self._specs),
            is_deleted=self._is_deleted,
        )

    def open_record_header(self) -> RecordHeader | None:
        """Return the header of a record that has not ended, if the header has."""
        return self._header() if "header" not in self._path else None

    def _check_depth(self) -> None:
        if len(self._path) > _DEEPEST:
            raise limit_error(_DEEPEST, "nested elements", uri=self._uri)

    @property
    def is_begun(self) -> bool:
        """True if an element of it was met."""
        return bool(self._namespace or self._path)

    def not_an_answer(self, got: str) -> NotAListError:
        """Return the error for what is something else."""
        return NotAListError(
            "this is not an answer of an OAI-PMH provider",
            uri=self._uri,
            evidence=(("got", got),),
            hint="check that the address is the base URL of the provider",
            code="not-oai",
        )


def _parted(name: str) -> tuple[str, str]:
    """Return namespace and local name."""
    parts = name.split(SEPARATOR)
    return (parts[0], parts[1]) if len(parts) > 1 else ("", name)
