"""Readers of the abandoned draft forms: two of Atom and the native one (Klein et al., 2013).

They are those of the appendix in D-Lib Magazine 19(1/2); their values are those of a Change List or
a Resource List. The XML becomes nodes, a head and then entries, under the protections of `_expat`.
These forms are rare, so nothing here is tuned.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import BinaryIO, Final, final

import msgspec

from resourcesync.documents._blocks import document_blocks
from resourcesync.documents._change_order import oldest_first
from resourcesync.documents._context import Limits, RefusalError, document_error, limit_error
from resourcesync.documents._expat import SEPARATOR, XmlDriver
from resourcesync.documents._values import length_of
from resourcesync.errors import (
    MalformedDocumentError,
    NotAListError,
    UnexpectedDocumentError,
)
from resourcesync.model.capabilities import Entry, Header, RefusedEntry
from resourcesync.model.digests import parse_digests
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import parse_w3c
from resourcesync.model.vocabulary import Capability, ChangeKind, Dialect, Relation

TERMS: Final = frozenset(
    {"http://www.openarchives.org/rs/", "http://www.openarchives.org/rs/terms/"}
)
"""The ResourceSync namespaces that the drafts used."""

_MAX_CHILDREN: Final = 1_000
_IN_ROOT: Final = 2
_IN_ENTRY: Final = 3


class FeedNode(msgspec.Struct):
    """One element: its name, its attributes and its own text.

    Attributes:
        name: The local name.
        attributes: Values by local name; those of other namespaces are left out.
        text: Its text, blanks around it removed.
        children: The elements in it.
        line, column: Its place, 1-based.
    """

    name: str
    attributes: Mapping[str, str]
    line: int
    column: int
    text: str = ""
    children: list["FeedNode"] = msgspec.field(default_factory=list)


class FeedScanner:
    """A scanner that feeds one document through expat.

    Args:
        roots: The accepted roots, as namespace and local name, each with the name of its entries.
        limits: Its bounds.
        uri: Its address, for messages.

    Attributes:
        root: The root without its entries: complete once `began` is true.
        began: True if the first entry or the end of the root was met.
        entries: Complete entries that were not read yet.
    """

    def __init__(self, roots: Mapping[tuple[str, str], str], *, limits: Limits, uri: str) -> None:
        self.root: FeedNode | None = None
        self.began = False
        self.entries: list[FeedNode] = []
        self._roots = roots
        self._limits = limits
        self._uri = uri
        self._namespace = ""
        self._entry_name = ""
        self._open: list[FeedNode | None] = []
        self._pieces: list[str] = []
        self._length = 0
        self._driver = XmlDriver(partial(document_error, uri=uri))
        parser = self._driver.parser
        parser.StartNamespaceDeclHandler = self._prefix
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text

    def feed(self, block: bytes) -> None:
        """Feed the next bytes.

        Raises:
            DocumentError: They cannot be used.
        """
        self._driver.feed(block)

    def close(self) -> None:
        """End the document.

        Raises:
            TruncatedDocumentError: It is not complete.
            MalformedDocumentError: It is broken at its very end.
        """
        self._driver.close()

    def drain(self) -> list[FeedNode]:
        """Return the complete entries and forget them."""
        entries, self.entries = self.entries, []
        return entries

    def _prefix(self, prefix: str | None, uri: str | None) -> None:
        self._driver.check_namespace(prefix, uri, self._limits.text)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        limits = self._limits
        if len(self._open) >= limits.depth:
            raise self._driver.over(limits.depth, "levels of elements")
        if len(attributes) > limits.attributes:
            raise self._driver.over(limits.attributes, "attributes in one element")
        if len(name) > limits.text:
            raise self._driver.over(limits.text, "characters in one name")
        namespace, _, local = name.rpartition(SEPARATOR)
        node: FeedNode | None = FeedNode(
            local,
            _known_attributes(attributes, self._limits.text),
            *self._driver.place(),
        )
        depth = len(self._open) + 1
        if depth == 1:
            self._start_root(namespace, local, node)
        elif depth > _IN_ENTRY or namespace != self._namespace:
            node = None
        elif depth == _IN_ROOT and local == self._entry_name:
            self.began = True
        self._open.append(node)
        self._pieces, self._length = [], 0

    def _start_root(self, namespace: str, local: str, node: FeedNode | None) -> None:
        if (namespace, local) not in self._roots:
            line, column = self._driver.place()
            raise NotAListError(
                f"The document is not a list: its root is <{local[:100]}>",
                uri=self._uri,
                line=line,
                column=column,
                evidence=(("root", f"<{local[:100]}>"), ("namespace", namespace[:200] or "none")),
            )
        self._namespace, self._entry_name = namespace, self._roots[namespace, local]
        self.root = node

    def _end(self, _name: str) -> None:
        node = self._open.pop()
        depth = len(self._open) + 1
        if node is None:
            return
        node.text = "".join(self._pieces).strip(" \t\r\n")
        self._pieces = []
        if depth == 1:
            self.began = True
            return
        parent = self._open[-1]
        if depth == _IN_ROOT and node.name == self._entry_name:
            self.entries.append(node)
        elif parent is not None:
            self._adopt(parent, node)

    def _adopt(self, parent: FeedNode, node: FeedNode) -> None:
        if parent is self.root and self.began:
            # The drafts' own sample has the links of an item after it, not in it.
            if not self.entries:
                return
            parent = self.entries[-1]
        parent.children.append(node)
        if len(parent.children) > _MAX_CHILDREN:
            raise self._driver.over(_MAX_CHILDREN, "elements in one entry")

    def _text(self, text: str) -> None:
        self._length += len(text)
        if self._length > self._limits.text:
            raise self._driver.over(self._limits.text, "characters in one text")
        if self._open and self._open[-1] is not None:
            self._pieces.append(text)


def _known_attributes(attributes: Mapping[str, str], longest: int) -> dict[str, str]:
    """Return the attributes by local name; one with the ResourceSync prefix wins.

    One with more than ``longest`` characters counts as not written.
    """
    pairs = [attribute for attribute in attributes.items() if max(map(len, attribute)) <= longest]
    plain = {name: value for name, value in pairs if SEPARATOR not in name}
    for name, value in pairs:
        namespace, _, local = name.rpartition(SEPARATOR)
        if namespace in TERMS:
            plain[local] = value
    return {name: value.strip(" \t\r\n") for name, value in plain.items()}


ATOM_NS: Final = "http://www.w3.org/2005/Atom"
DRAFT_NS: Final = "http://www.openarchives.org/rs/"
"""The namespace, also the beginning of ``type`` values; the rest is a capability."""
KINDS: Final = frozenset(
    {
        Capability.RESOURCE_LIST,
        Capability.RESOURCE_DUMP_MANIFEST,
        Capability.CHANGE_LIST,
        Capability.CHANGE_DUMP_MANIFEST,
    }
)
"""Capabilities that these forms support: documents whose entries are resources or changes."""

_ROOTS: Final = {(ATOM_NS, "feed"): "entry", (DRAFT_NS, "resync"): "item"}
_CONTENT: Final = frozenset({"content", "conent"})
"""The second is how the paper's own sample spells it once."""
_DEFAULT_LIMITS: Final = Limits()
_MAX_PRIORITY: Final = 999_999


class _FaultError(Exception):
    """An entry cannot be used."""

    def __init__(self, reason: str, code: str = "entry-invalid") -> None:
        super().__init__(reason)
        self.code = code


def read_feed(
    stream: BinaryIO,
    *,
    uri: str,
    limits: Limits = _DEFAULT_LIMITS,
    on_refused: Callable[[RefusedEntry], None] | None = None,
) -> "FeedDocument":
    """Open such a document: read as far as its head.

    Args:
        stream: The document; it stays open, and is read while the entries are.
        uri: Its address, for messages.
        limits: Its bounds.
        on_refused: Called with each entry that cannot be used, in order.

    Raises:
        NotAListError: Neither an Atom feed nor the native form.
        UnexpectedDocumentError: Its type is none that is read.
        TruncatedDocumentError: It stops before its end.
        MalformedDocumentError: No well-formed XML, a DOCTYPE, another encoding, a broken head.
        DocumentLimitError: Over one of the limits.
    """
    scanner = FeedScanner(_ROOTS, limits=limits, uri=uri)
    rest = document_blocks(stream, limits=limits, uri=uri)
    for block in rest:
        scanner.feed(block)
        if scanner.began:
            break
    else:
        scanner.close()
    return FeedDocument(scanner, rest, uri=uri, limits=limits, on_refused=on_refused)


@final
class FeedDocument:
    """An open document in one of these forms; its entries are read lazily, once.

    Attributes:
        header: Its header; a change document has no ``from``.
        uri: Its address.
        refused: Entries that could not be used so far.
        dialect: Its form; certain once the first entry was read.
    """

    def __init__(
        self,
        scanner: FeedScanner,
        rest: Iterator[bytes],
        *,
        uri: str,
        limits: Limits,
        on_refused: Callable[[RefusedEntry], None] | None,
    ) -> None:
        assert scanner.root is not None
        self.uri = uri
        self.refused = 0
        self.header = _header_of(scanner.root, uri)
        self.dialect = Dialect.NATIVE if scanner.root.name == "resync" else Dialect.ATOM_LINKS
        self._scanner = scanner
        self._rest = rest
        self._limits = limits
        self._on_refused = on_refused
        self._count = 0
        self._is_consumed = False

    def entries(self) -> Iterator[Entry]:
        """Yield the entries in the order of the document: `Resource`, or `Change`.

        Changes come oldest first, also where the document has the newest first.

        Raises:
            DocumentError: As from `read_feed`.
        """
        if self._is_consumed:
            raise RuntimeError("the entries of a document can be read once")
        self._is_consumed = True
        kind = self.header.capability
        if kind is not None and kind.is_log:
            return oldest_first(
                entry for entry in self._read_entries() if isinstance(entry, Change)
            )
        return self._read_entries()

    def _read_entries(self) -> Iterator[Entry]:
        for node in self._nodes():
            self._count += 1
            if self._count > self._limits.entries:
                most = self._limits.entries
                raise limit_error(most, "entries", uri=self.uri, line=node.line, column=node.column)
            try:
                yield self._entry(node)
            except _FaultError as fault:
                self._refuse(node, fault)

    def _nodes(self) -> Iterator[FeedNode]:
        """Yield the entries; the last one so far waits, for links may follow it."""
        for block in self._rest:
            self._scanner.feed(block)
            found = self._scanner.drain()
            self._scanner.entries = found[-1:]
            yield from found[:-1]
        self._scanner.close()
        yield from self._scanner.drain()

    def _entry(self, node: FeedNode) -> Entry:
        told, links, time = _parts_of(node)
        if node.name == "entry":
            is_content = told.name in _CONTENT
            self.dialect = Dialect.ATOM_ENTRIES if is_content else Dialect.ATOM_LINKS
        values = told.attributes
        resource = Resource(
            uri=_uri(values.get("src") or values.get("href", ""), self._limits),
            lastmod=_moment(time),
            length=_length(values.get("length")),
            digests=parse_digests(values.get("hash", "")),
            media_type=values.get("type", ""),
            encoding=values.get("encoding", ""),
            path=values.get("path", ""),
            links=tuple(
                link for feed_node in links if (link := _link(feed_node, self._limits)) is not None
            ),
        )
        kind = self.header.capability
        if kind in {Capability.RESOURCE_LIST, Capability.RESOURCE_DUMP_MANIFEST}:
            return resource
        return Change(
            kind=self._kind(values.get("change")), time=resource.lastmod, resource=resource
        )

    @staticmethod
    def _kind(word: str | None) -> ChangeKind:
        try:
            return ChangeKind((word or "").lower())
        except ValueError:
            said = "no change" if word is None else f"the change {word[:64]!r}"
            raise _FaultError(f"The entry has {said}", "change-unknown") from None

    def _refuse(self, node: FeedNode, fault: _FaultError) -> None:
        self.refused += 1
        if self._on_refused is not None:
            refused = RefusedEntry(line=node.line, code=fault.code, reason=str(fault))
            self._on_refused(refused)


def _header_of(root: FeedNode, uri: str) -> Header:
    label = root.attributes.get("rstype" if root.name == "resync" else "type", "")
    word = label.removeprefix(DRAFT_NS)
    known = Capability(word) if word in Capability.__members__.values() else None
    if known not in KINDS or known is None:
        raise UnexpectedDocumentError(
            f"The document's type is {label[:64]!r}, which is not supported in this form",
            uri=uri,
            line=root.line,
            column=root.column,
            evidence=(("got", label[:64]),),
        )
    text = root.attributes.get("modified") or _text(root.children, "updated")
    try:
        time = parse_w3c(text) if text else None
    except ValueError as error:
        raise MalformedDocumentError(
            f"The document's time is not a W3C Datetime: {text[:64]!r}",
            uri=uri,
            line=root.line,
            column=root.column,
            code="time-invalid",
        ) from error
    return Header(
        capability=known,
        at=time if known.is_snapshot else None,
        modified=time,
        links=tuple(
            link
            for child in root.children
            if child.name == "link" and (link := _link(child, _DEFAULT_LIMITS)) is not None
        ),
    )


def _parts_of(node: FeedNode) -> tuple[FeedNode, list[FeedNode], str]:
    """Return the element of the resource, its links, and the text of its time."""
    links = [child for child in node.children if child.name == "link"]
    if node.name == "item":
        return node, links, node.attributes.get("modified", "")
    time = _text(node.children, "updated")
    for child in node.children:
        if child.name in _CONTENT and "src" in child.attributes:
            return child, links, time
    for link in links:
        words = link.attributes.get("rel", "").lower().split()
        if "canonical" in words and "alternate" in words:
            return link, [feed_node for feed_node in links if feed_node is not link], time
    raise _FaultError("The entry has neither a content with a src nor a canonical alternate link")


def _text(nodes: Iterable[FeedNode], name: str) -> str:
    return next((node.text for node in nodes if node.name == name), "")


def _uri(text: str, limits: Limits) -> str:
    if not text:
        raise _FaultError("The entry has no address")
    if len(text) > limits.uri:
        raise _FaultError(f"The address has more than {limits.uri:,} characters")
    if any(char < " " or "\x7f" <= char <= "\x9f" for char in text):
        raise _FaultError("The address contains control characters")
    return text


def _moment(text: str) -> datetime | None:
    try:
        return parse_w3c(text) if text else None
    except ValueError as error:
        raise _FaultError(f"The time is not a W3C Datetime: {text[:64]!r}") from error


def _length(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return length_of(text)
    except RefusalError as error:
        raise _FaultError(error.reason) from error


def _link(node: FeedNode, limits: Limits) -> Link | None:
    """Return a link; ``None`` for one without a usable target."""
    values = node.attributes
    rel, href = values.get("rel", ""), values.get("href", "")
    if rel == DRAFT_NS + Capability.CAPABILITY_LIST:
        rel = Relation.UP.value
    try:
        priority = _length(values.get("pri"))
        return (
            Link(
                rel=rel,
                href=_uri(href, limits),
                media_type=values.get("type", ""),
                length=_length(values.get("length")),
                digests=parse_digests(values.get("hash", "")),
                encoding=values.get("encoding", ""),
                modified=_moment(values.get("modified", "")),
                path=values.get("path", ""),
                priority=priority if priority and priority <= _MAX_PRIORITY else None,
            )
            if rel
            else None
        )
    except _FaultError:
        return None
