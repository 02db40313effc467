"""Elements with their places, one child of the root at a time, in bounded memory.

A window of the bytes shows where an attribute is.
"""

import re
from typing import Final

import msgspec

from resourcesync.documents.expat import MAX_TOKEN, SEPARATOR, XmlDriver, XmlFault, XmlFaultKind
from resourcesync.documents.reader import Limits
from resourcesync.validator.summaries import DocumentPlace

TEXT: Final = "#text"
"""Name of an element's text, in place of an attribute's name."""

_WINDOW_SIZE: Final = 2**20
_CONTEXT: Final = 512
_SHOWN: Final = 160
_BEFORE: Final = 80
_TAG: Final = re.compile(rb"<[^\s/>]+((?:\s+[^\s=<>]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*)")
_ATTRIBUTE: Final = re.compile(rb"([^\s=<>\"']+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_BLANKS: Final = re.compile(rb"\s*")
_LINE_END: Final = re.compile(rb"[\r\n]")


class ElementNode(msgspec.Struct, eq=False):
    """An element, the children in it one level deep, and where its start tag begins, from 1.

    Attributes with a prefix are ``qualified``: (namespace, name, value). White space at the ends of
    its text is left off.
    """

    namespace: str
    name: str
    attributes: dict[str, str]
    qualified: tuple[tuple[str, str, str], ...]
    line: int
    column: int
    offset: int
    text: str = ""
    children: "list[ElementNode]" = msgspec.field(default_factory=list)


class ByteWindow:
    """A window of the last bytes of a document, at least from the start of the present entry."""

    def __init__(self) -> None:
        self._bytes = b""
        self._base = 0

    def push(self, block: bytes, *, keep_from: int) -> None:
        end = self._base + len(self._bytes)
        start = max(keep_from - _CONTEXT, end - _WINDOW_SIZE, self._base)
        self._bytes = self._bytes[start - self._base :] + block
        self._base = start

    def spot(self, node: ElementNode, part: str = "") -> DocumentPlace:
        """Return the place of an element, of one of its attributes, or of its text."""
        start = node.offset - self._base
        if start < 0:
            return DocumentPlace(line=node.line, column=node.column)
        found = self._part(start, part) if part else None
        begin, end = found or (start, start + 1 + len(node.name))
        line, column = self._place(node, start, begin)
        text = self._bytes[begin:end].decode("utf-8", "replace")
        length = max(1, len(re.split(r"[\r\n]", text, maxsplit=1)[0].rstrip()))
        excerpt, excerpt_column = self._excerpt(begin)
        return DocumentPlace(
            line=line, column=column, length=length, excerpt=excerpt, excerpt_column=excerpt_column
        )

    def _part(self, start: int, part: str) -> tuple[int, int] | None:
        tag = _TAG.match(self._bytes, start)
        if tag is None:
            return None
        if part == TEXT:
            opened = self._bytes.find(b">", tag.end())
            blank = _BLANKS.match(self._bytes, opened + 1)
            if opened < 0 or blank is None:
                return None
            end = self._bytes.find(b"<", blank.end())
            return (blank.end(), max(end, blank.end()))
        for found in _ATTRIBUTE.finditer(self._bytes, tag.start(1), tag.end(1)):
            if found[1].rpartition(b":")[2] == part.encode():
                return found.span(2) if found[2] is not None else found.span(3)
        return None

    def _place(self, node: ElementNode, start: int, begin: int) -> tuple[int, int]:
        before = self._bytes[start:begin].decode("utf-8", "replace")
        before = before.replace("\r\n", "\n").replace("\r", "\n")
        lines = before.count("\n")
        if not lines:
            return node.line, node.column + len(before)
        return node.line + lines, len(before) - before.rfind("\n")

    def _excerpt(self, begin: int) -> tuple[str, int]:
        head = self._bytes.rfind(b"\n", 0, begin) + 1
        head = max(head, self._bytes.rfind(b"\r", head, begin) + 1, begin - _BEFORE)
        ended = _LINE_END.search(self._bytes, begin)
        end = len(self._bytes) if ended is None else ended.start()
        before = self._bytes[head:begin].decode("utf-8", "ignore")
        after = self._bytes[begin : min(end, head + _SHOWN)].decode("utf-8", "ignore")
        return before + after, len(before) + 1


_MAX_CHILDREN: Final = 1_000
_ENCODINGS: Final = frozenset({"", "utf-8", "utf8"})


class StopError(Exception):
    """The document cannot be checked any further."""

    def __init__(self, message: str, spot: DocumentPlace) -> None:
        super().__init__(message)
        self.message = message
        self.spot = spot


class ElementParser:
    """A parser of one document that buffers the children of the root."""

    def __init__(self, limits: Limits) -> None:
        self.window = ByteWindow()
        self.root: ElementNode | None = None
        self._limits = limits
        self._ready: list[ElementNode] = []
        self._open: list[ElementNode] = []
        self._depth = 0
        self._texts: list[str] = []
        self._text_size = 0
        self._names: dict[str, tuple[str, str]] = {}
        self._driver = XmlDriver(self._error_of, encodings=None)
        self._parser = parser = self._driver.parser
        parser.ordered_attributes = True
        parser.StartNamespaceDeclHandler = self._namespace
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters

    @property
    def encoding(self) -> str:
        """The encoding in the XML declaration, if it is not UTF-8."""
        declared = self._driver.declared[:40]
        return "" if declared.lower() in _ENCODINGS else declared

    def feed(self, block: bytes) -> None:
        keep_from = self._open[1].offset if len(self._open) > 1 else self._parser.CurrentByteIndex
        self.window.push(block, keep_from=max(0, keep_from))
        self._driver.feed(block)

    def close(self) -> None:
        self._driver.close()

    def drain(self) -> list[ElementNode]:
        """Return the children of the root that ended since the last call."""
        ready, self._ready = self._ready, []
        return ready

    def _error_of(self, fault: XmlFault) -> StopError:
        place = ElementNode("", "", {}, (), fault.line, fault.column, fault.offset)
        return StopError(_stop_message(fault), self.window.spot(place))

    def _namespace(self, prefix: str | None, uri: str | None) -> None:
        self._driver.check_namespace(prefix, uri, self._limits.text)

    def _start(self, name: str, attributes: list[str]) -> None:
        self._depth += 1
        if self._depth > self._limits.depth:
            raise self._driver.over(self._limits.depth, "levels of elements")
        if self._depth > 3:  # noqa: PLR2004 - the content of an entry's elements is foreign
            return
        if len(attributes) > 2 * self._limits.attributes:
            raise self._driver.over(self._limits.attributes, "attributes in one element")
        if sum(map(len, attributes)) > MAX_TOKEN:
            raise self._driver.over(MAX_TOKEN, "bytes in one tag")
        node = self._node(name, attributes)
        if self._open and len(self._open) > 1:
            self._open[-1].children.append(node)
            if len(self._open[-1].children) > _MAX_CHILDREN:
                raise self._driver.over(_MAX_CHILDREN, "elements in one entry")
        self._open.append(node)
        if self.root is None:
            self.root = node
        self._texts.clear()
        self._text_size = 0

    def _node(self, name: str, attributes: list[str]) -> ElementNode:
        namespace, local = self._split(name)
        plain: dict[str, str] = {}
        qualified: tuple[tuple[str, str, str], ...] = ()
        for at in range(0, len(attributes), 2):
            key, value = attributes[at], attributes[at + 1]
            if SEPARATOR in key:
                qualified += ((*self._split(key), value),)
            else:
                plain[key] = value
        return ElementNode(
            namespace, local, plain, qualified, *self._driver.place(), self._parser.CurrentByteIndex
        )

    def _split(self, name: str) -> tuple[str, str]:
        found = self._names.get(name)
        if found is None:
            namespace, _, local = name.rpartition(SEPARATOR)
            found = (namespace, local)
            self._names[name] = found
        return found

    def _end(self, _name: str) -> None:
        self._depth -= 1
        if self._depth >= len(self._open):
            return
        node = self._open.pop()
        if self._texts:
            node.text = "".join(self._texts).strip()
            self._texts.clear()
        if len(self._open) == 1:
            self._ready.append(node)

    def _characters(self, text: str) -> None:
        if self._depth == len(self._open) and self._text_size <= self._limits.text:
            self._texts.append(text)
            self._text_size += len(text)


def _stop_message(fault: XmlFault) -> str:
    match fault.kind:
        case XmlFaultKind.BROKEN:
            return f"not well-formed XML: {fault.detail}"
        case XmlFaultKind.CUT_SHORT:
            return "the document stops before its end"
        case XmlFaultKind.LIMIT:
            message = f"there are more than {fault.limit:,} {fault.detail}"
        case _:
            html = ": this looks like an HTML page" if fault.detail.lower() == "html" else ""
            message = f"the document has a DOCTYPE{html}"
    return f"{message}; the rest is not checked"
