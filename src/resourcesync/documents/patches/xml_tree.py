"""The elements of an XML document with their places in its bytes, so that two can be compared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from resourcesync.documents.patches.scanning import XmlScanner
from resourcesync.errors import PatchError

_MAX_DEPTH: Final = 200
_MAX_ELEMENTS: Final = 100_000


@dataclass(slots=True)
class Element:
    """An element, in bytes.

    Attributes:
        start: The first byte of it.
        opened: The first byte after its start tag.
        scope: Namespaces by prefix inside it; the empty prefix is the default one.
        closing: The first byte of its end tag; ``opened`` where one tag is both.
        end: The first byte after it.
        children: Its elements.
    """

    start: int
    opened: int
    scope: Mapping[str, str]
    closing: int = 0
    end: int = 0
    children: list["Element"] = field(default_factory=list)


Item = tuple[int, int, Element | None]
"""What stands in an element: from where to where, and which element, if it is one."""


def items_of(element: Element) -> list[Item]:
    """Return what stands in an element, in order: its elements, and what is between them."""
    items: list[Item] = []
    at = element.opened
    for child in element.children:
        if child.start > at:
            items.append((at, child.start, None))
        items.append((child.start, child.end, child))
        at = child.end
    if element.closing > at:
        items.append((at, element.closing, None))
    return items


def read_tree(data: bytes, what: str) -> Element:
    """Return the root of a document.

    Args:
        data: The document.
        what: What it is, for messages.

    Raises:
        PatchError: It cannot be used, or is too deep or too large.
    """
    reader = _TreeReader(data, what)
    reader.run()
    assert reader.root is not None, "a document has a root"
    return reader.root


class _TreeReader(XmlScanner):
    """Reads a document and keeps its elements."""

    def __init__(self, data: bytes, what: str) -> None:
        super().__init__(data, what)
        self.root: Element | None = None
        self._open: list[Element] = []
        self._count = 0
        self._bound: dict[str, str] = {}
        parser = self.parser
        parser.StartNamespaceDeclHandler = self._bind
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end

    def _bind(self, prefix: str | None, uri: str | None) -> None:
        self._bound[prefix or ""] = uri or ""

    def _start(self, _name: str, _attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._open) >= _MAX_DEPTH or self._count > _MAX_ELEMENTS:
            raise PatchError("a version is nested too deeply, or has too many elements")
        scope = self._open[-1].scope if self._open else {}
        if self._bound:
            scope, self._bound = {**scope, **self._bound}, {}
        start = self.position()
        element = Element(start, self.tag_end(start), scope)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def _end(self, _name: str) -> None:
        element = self._open.pop()
        if self.data[element.opened - 2 : element.opened] == b"/>":
            element.closing = element.end = element.opened
        else:
            element.closing = self.position()
            element.end = self.data.index(b">", element.closing) + 1
