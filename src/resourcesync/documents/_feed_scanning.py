"""XML of the drafts that are no sitemaps becomes nodes: a head, then entries with what is in them.

The same doors are closed as for lists (see `_expat`). They are rare, so nothing here is tuned.
"""

import pyexpat
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from resourcesync.documents._expat import (
    CUT_SHORT,
    MAX_PREFIXES,
    UTF_ENCODINGS,
    exceeded_bound,
    new_parser,
)
from resourcesync.documents._limits import Limits, limit_error
from resourcesync.documents._tokens import SEPARATOR
from resourcesync.errors import (
    DocumentError,
    MalformedDocumentError,
    NotAListError,
    TruncatedDocumentError,
)

TERMS: Final = frozenset(
    {"http://www.openarchives.org/rs/", "http://www.openarchives.org/rs/terms/"}
)
"""The ResourceSync namespaces that the drafts used."""

_MAX_CHILDREN: Final = 1_000
_IN_ROOT: Final = 2
_IN_ENTRY: Final = 3


@dataclass(slots=True)
class FeedNode:
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
    children: list["FeedNode"] = field(default_factory=list)


class FeedScanner:
    """Feeds one document through expat.

    Args:
        roots: The roots that are taken, as namespace and local name, each with the name of its
            entries.
        limits: What it may cost at most.
        uri: Its address, for messages.

    Attributes:
        root: The root without its entries: complete once `began` is true.
        began: Whether the first entry or the end of the root was met.
        entries: Complete entries that nobody took yet.
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
        self._fed = 0
        self._closed = False
        self._prefixes: set[str | None] = set()
        parser = new_parser(on_declaration=self._declaration, on_doctype=self._doctype)
        parser.StartNamespaceDeclHandler = self._prefix
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        self._parser = parser

    def feed(self, block: bytes) -> None:
        """Take the next bytes.

        Raises:
            DocumentError: They cannot be used.
        """
        self._fed += len(block)
        try:
            self._parser.Parse(block, False)  # noqa: FBT003 - expat's signature
        except pyexpat.ExpatError as error:
            raise self._malformed(error) from error
        if found := exceeded_bound(self._parser, self._fed):
            raise self._over(*found)

    def close(self) -> None:
        """Tell that the document ends here.

        Raises:
            TruncatedDocumentError: It is not complete.
            MalformedDocumentError: It is broken at its very end.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._parser.Parse(b"", True)  # noqa: FBT003 - expat's signature
        except pyexpat.ExpatError as error:
            if error.code in CUT_SHORT:
                raise TruncatedDocumentError(
                    "The document stops before its end",
                    uri=self._uri,
                    line=error.lineno,
                    column=error.offset + 1,
                ) from error
            raise self._malformed(error) from error

    def drain(self) -> list[FeedNode]:
        """Return the complete entries and forget them."""
        entries, self.entries = self.entries, []
        return entries

    # --- what expat calls ----------------------------------------------------------------------

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() not in UTF_ENCODINGS:
            raise self._fault("The document is neither in UTF-8 nor in UTF-16", "xml-encoding")

    def _doctype(self, *_: object) -> None:
        raise self._fault("The document has a DOCTYPE, which no list needs", "xml-dtd")

    def _prefix(self, prefix: str | None, uri: str | None) -> None:
        self._prefixes.add(prefix)
        if len(self._prefixes) > MAX_PREFIXES:
            raise self._over(MAX_PREFIXES, "different namespace prefixes")
        if max(len(prefix or ""), len(uri or "")) > self._limits.text:
            raise self._over(self._limits.text, "characters in one name")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._check(name, attributes)
        namespace, _, local = name.rpartition(SEPARATOR)
        node: FeedNode | None = FeedNode(
            local,
            _known_attributes(attributes, self._limits.text),
            self._parser.CurrentLineNumber,
            self._column(),
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
            line, column = self._place()
            raise NotAListError(
                f"The document is no list: its root is <{local[:100]}>",
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
            raise self._over(_MAX_CHILDREN, "elements in one entry")

    def _text(self, text: str) -> None:
        self._length += len(text)
        if self._length > self._limits.text:
            raise self._over(self._limits.text, "characters in one text")
        if self._open and self._open[-1] is not None:
            self._pieces.append(text)

    # --- faults --------------------------------------------------------------------------------

    def _check(self, name: str, attributes: Mapping[str, str]) -> None:
        limits = self._limits
        if len(self._open) >= limits.depth:
            raise self._over(limits.depth, "levels of elements")
        if len(attributes) > limits.attributes:
            raise self._over(limits.attributes, "attributes in one element")
        if len(name) > limits.text:
            raise self._over(limits.text, "characters in one name")

    def _column(self) -> int:
        return self._parser.CurrentColumnNumber + 1

    def _place(self) -> tuple[int, int]:
        return self._parser.CurrentLineNumber, self._column()

    def _fault(self, message: str, code: str) -> MalformedDocumentError:
        line, column = self._place()
        return MalformedDocumentError(message, uri=self._uri, line=line, column=column, code=code)

    def _over(self, limit: int, what: str) -> DocumentError:
        line, column = self._place()
        return limit_error(limit, what, uri=self._uri, line=line, column=column)

    def _malformed(self, error: pyexpat.ExpatError) -> MalformedDocumentError:
        return MalformedDocumentError(
            f"The document is not well-formed XML: {pyexpat.ErrorString(error.code)}",
            uri=self._uri,
            line=error.lineno,
            column=error.offset + 1,
        )


def _known_attributes(attributes: Mapping[str, str], longest: int) -> dict[str, str]:
    """Return the attributes by local name; one with the ResourceSync prefix wins.

    One with more than ``longest`` characters counts as not written.
    """
    pairs = [it for it in attributes.items() if max(map(len, it)) <= longest]
    plain = {name: value for name, value in pairs if SEPARATOR not in name}
    for name, value in pairs:
        namespace, _, local = name.rpartition(SEPARATOR)
        if namespace in TERMS:
            plain[local] = value
    return {name: value.strip(" \t\r\n") for name, value in plain.items()}
