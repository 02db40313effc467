"""Read the forms that were considered and given up: two of Atom, and one of ResourceSync's own.

They are those of the appendix of Klein et al., D-Lib Magazine 19(1/2), 2013. Their values are the
same as those of a Change List or a Resource List.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import BinaryIO, Final, final

from resourcesync.documents._context import RefusalError
from resourcesync.documents._feed_scanning import FeedNode, FeedScanner
from resourcesync.documents._limits import Limits, limit_error
from resourcesync.documents._octets import document_blocks
from resourcesync.documents._order import oldest_first
from resourcesync.documents._values import length_of
from resourcesync.errors import MalformedDocumentError, UnexpectedDocumentError
from resourcesync.model.capabilities import Entry, Header, RefusedEntry
from resourcesync.model.digests import parse_digests
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import parse_w3c
from resourcesync.model.vocabulary import Capability, ChangeKind, Dialect, Relation

ATOM_NS: Final = "http://www.w3.org/2005/Atom"
DRAFT_NS: Final = "http://www.openarchives.org/rs/"
"""Also what the values of ``type`` start with; the rest is a capability."""
KINDS: Final = frozenset(
    {
        Capability.RESOURCE_LIST,
        Capability.RESOURCE_DUMP_MANIFEST,
        Capability.CHANGE_LIST,
        Capability.CHANGE_DUMP_MANIFEST,
    }
)
"""What can be said in these forms: documents whose entries are resources or changes."""

_ROOTS: Final = {(ATOM_NS, "feed"): "entry", (DRAFT_NS, "resync"): "item"}
_CONTENT: Final = frozenset({"content", "conent"})
"""The second is how the paper's own sample spells it once."""
_DEFAULT_LIMITS: Final = Limits()
_MAX_PRIORITY: Final = 999_999


class _FaultError(Exception):
    """An entry cannot be used."""


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
        limits: What it may cost at most.
        on_refused: Told of each entry that cannot be used, in order.

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
    """An open document in one of these forms; its entries are read as they are asked for, once.

    Attributes:
        header: What its root says; a change document does not tell from when on it is complete.
        uri: Its address.
        refused: Entries that could not be used so far.
        dialect: Which form it is in; certain once the first entry was read.
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
            DocumentError: As `read_feed` does; and, where changes are told, an entry whose change
                is missing or unknown.
        """
        if self._is_consumed:
            raise RuntimeError("the entries of a document can be read once")
        self._is_consumed = True
        kind = self.header.capability
        if kind is not None and kind.is_log:
            return oldest_first(it for it in self._read_entries() if isinstance(it, Change))
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
                self._refuse(node, str(fault))

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
            links=tuple(link for it in links if (link := _link(it, self._limits)) is not None),
        )
        kind = self.header.capability
        if kind in {Capability.RESOURCE_LIST, Capability.RESOURCE_DUMP_MANIFEST}:
            return resource
        return Change(
            kind=self._kind(values.get("change"), node), time=resource.lastmod, resource=resource
        )

    def _kind(self, word: str | None, node: FeedNode) -> ChangeKind:
        try:
            return ChangeKind((word or "").lower())
        except ValueError:
            said = "no change" if word is None else f"the change {word[:64]!r}"
            raise MalformedDocumentError(
                f"An entry of the {self.header.phrase} has {said}",
                uri=self.uri,
                line=node.line,
                column=node.column,
                code="change-unknown",
            ) from None

    def _refuse(self, node: FeedNode, reason: str) -> None:
        self.refused += 1
        if self._on_refused is not None:
            self._on_refused(RefusedEntry(line=node.line, code="entry-invalid", reason=reason))


# --- the head ----------------------------------------------------------------------------------


def _header_of(root: FeedNode, uri: str) -> Header:
    label = root.attributes.get("rstype" if root.name == "resync" else "type", "")
    word = label.removeprefix(DRAFT_NS)
    known = Capability(word) if word in Capability.__members__.values() else None
    if known not in KINDS or known is None:
        raise UnexpectedDocumentError(
            f"The document's type is {label[:64]!r}, which is not read in this form",
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
            f"The document's time is no W3C Datetime: {text[:64]!r}",
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


# --- entries -----------------------------------------------------------------------------------


def _parts_of(node: FeedNode) -> tuple[FeedNode, list[FeedNode], str]:
    """Return the element that tells of the resource, its links, and the text of its time."""
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
            return link, [it for it in links if it is not link], time
    raise _FaultError("The entry has neither a content with a src nor a canonical alternate link")


def _text(nodes: Iterable[FeedNode], name: str) -> str:
    return next((node.text for node in nodes if node.name == name), "")


def _uri(text: str, limits: Limits) -> str:
    if not text:
        raise _FaultError("The entry has no address")
    if len(text) > limits.uri:
        raise _FaultError(f"The address has more than {limits.uri:,} characters")
    if any(char < " " or "\x7f" <= char <= "\x9f" for char in text):
        raise _FaultError("The address holds control characters")
    return text


def _moment(text: str) -> datetime | None:
    try:
        return parse_w3c(text) if text else None
    except ValueError as error:
        raise _FaultError(f"The time is no W3C Datetime: {text[:64]!r}") from error


def _length(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return length_of(text)
    except RefusalError as error:
        raise _FaultError(error.reason) from error


def _link(node: FeedNode, limits: Limits) -> Link | None:
    """Return a link; one that leads nowhere, or says nothing sound, spoils nothing."""
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
