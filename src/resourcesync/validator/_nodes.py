"""Elements with their places, and the window of bytes that shows where an attribute stands."""

import re
from dataclasses import dataclass, field
from typing import Final

TEXT: Final = "#text"
"""Names the text of an element where otherwise an attribute is named."""

_WINDOW_SIZE: Final = 2**20
_CONTEXT: Final = 512
_SHOWN: Final = 160
_BEFORE: Final = 80
_TAG: Final = re.compile(rb"<[^\s/>]+((?:\s+[^\s=<>]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*)")
_ATTRIBUTE: Final = re.compile(rb"([^\s=<>\"']+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_BLANKS: Final = re.compile(rb"\s*")


@dataclass(slots=True, eq=False)
class ElementNode:
    """An element: its name, attributes, text and children, and where it starts.

    Attributes:
        namespace, name: The two parts of its name.
        attributes: Attributes without a prefix.
        qualified: Attributes with one, as (namespace, name, value).
        line, column: Where its start tag begins, from 1.
        offset: The byte where its start tag begins.
        text: Its text, white space at the ends left off.
        children: The elements in it, one level deep.
    """

    namespace: str
    name: str
    attributes: dict[str, str]
    qualified: tuple[tuple[str, str, str], ...]
    line: int
    column: int
    offset: int
    text: str = ""
    children: "list[ElementNode]" = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A place that can be shown."""

    line: int = 0
    column: int = 0
    length: int = 1
    excerpt: str = ""
    excerpt_column: int = 0


class ByteWindow:
    """The last bytes of a document, at least from the start of the entry being read."""

    def __init__(self) -> None:
        self._bytes = b""
        self._base = 0

    def push(self, block: bytes, *, keep_from: int) -> None:
        """Take the next bytes and forget those before ``keep_from``."""
        end = self._base + len(self._bytes)
        start = max(keep_from - _CONTEXT, end - _WINDOW_SIZE, self._base)
        self._bytes = self._bytes[start - self._base :] + block
        self._base = start

    def spot(self, node: ElementNode, part: str = "") -> Spot:
        """Return the place of an element, of one of its attributes, or of its text."""
        start = node.offset - self._base
        if start < 0:
            return Spot(line=node.line, column=node.column)
        found = self._part(start, part) if part else None
        begin, end = found or (start, start + 1 + len(node.name))
        line, column = self._place(node, start, begin)
        text = self._bytes[begin:end].decode("utf-8", "replace")
        length = max(1, len(re.split(r"[\r\n]", text, maxsplit=1)[0].rstrip()))
        excerpt, excerpt_column = self._excerpt(begin)
        return Spot(
            line=line,
            column=column,
            length=length,
            excerpt=excerpt,
            excerpt_column=excerpt_column,
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
        end = min(
            (
                at
                for at in (self._bytes.find(b"\n", begin), self._bytes.find(b"\r", begin))
                if at >= 0
            ),
            default=len(self._bytes),
        )
        before = self._bytes[head:begin].decode("utf-8", "ignore")
        after = self._bytes[begin : min(end, head + _SHOWN)].decode("utf-8", "ignore")
        return before + after, len(before) + 1
