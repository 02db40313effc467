"""Find the one node that a selector means, in one reading, with no tree in memory."""

import re
from dataclasses import dataclass
from typing import Final

from resourcesync.documents._tokens import SEPARATOR
from resourcesync.documents.patches.scanning import Scanner
from resourcesync.documents.patches.selectors import Name, Selector, Step
from resourcesync.errors import PatchError

_ATTRIBUTE: Final = re.compile(rb"\s+([^\s=]+)\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_TAG_NAME: Final = re.compile(rb"<([^\s/>]+)")
_MAX_DEPTH: Final = 1_000


@dataclass(slots=True)
class Place:
    """Where a node is, in bytes; of a text, ``start`` and ``end`` are its own.

    Attributes:
        start: The first byte of it.
        opened: The first byte after the start tag of its element.
        closing: The first byte of the end tag of its element.
        end: The first byte after it.
        is_empty: Whether its element is written as one tag.
        tag: The first byte of its element.
    """

    start: int = 0
    opened: int = 0
    closing: int = 0
    end: int = 0
    is_empty: bool = False
    tag: int = 0

    def tag_name(self, document: bytes) -> bytes:
        """Return the name of its element as it is written."""
        found = _TAG_NAME.match(document, self.tag)
        assert found is not None, "an element has a tag"
        return found[1]


def locate(document: bytes, selector: Selector) -> Place:
    """Return the place of the one node that a selector means.

    Raises:
        PatchError: There is none, or more than one; or the document cannot be used.
    """
    locator = _Locator(document, selector)
    locator.run()
    if len(locator.found) != 1:
        count = "none" if not locator.found else "more than one"
        raise PatchError(f"its selector means {count} of the nodes")
    return locator.found[0]


def attribute_span(document: bytes, place: Place, name: str) -> tuple[int, int] | None:
    """Return where an attribute is, from the blank before it; ``None`` when it is not there.

    Args:
        document: The document.
        place: Of its element.
        name: As it is written, with its prefix.
    """
    at = place.tag + 1 + len(place.tag_name(document))
    while found := _ATTRIBUTE.match(document, at, place.opened):
        if found[1] == name.encode():
            return found.span()
        at = found.end()
    return None


class _Locator(Scanner):
    """Reads a document and keeps the places of the nodes that are meant, two at most."""

    def __init__(self, data: bytes, selector: Selector) -> None:
        super().__init__(data, "the version before")
        self.found: list[Place] = []
        self._steps = selector.steps
        self._text = selector.text
        self._depth = 0
        self._matched = 0  # so many elements, from the root on, are those of the steps
        self._counts: list[dict[int, int]] = [{}]
        self._target: Place | None = None
        self._texts = 0
        self._text_start = 0
        parser = self.parser
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CommentHandler = self._between
        parser.ProcessingInstructionHandler = self._between_too

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._depth >= _MAX_DEPTH:
            raise PatchError("the version before is nested too deeply")
        if self._parts_texts():
            self._end_of_text(self.at())
            self._text_start = -self.at()  # a child: the next text begins after it
        is_next = self._matched == self._depth < len(self._steps)
        if is_next and self._fits(self._steps[self._depth], name, attributes):
            self._matched += 1
            self._counts.append({})
            if self._matched == len(self._steps):
                self._begin_target()
        self._depth += 1

    def _parts_texts(self) -> bool:
        """Whether what is met now stands between texts one of which is meant."""
        return bool(self._text) and self._target is not None and self._depth == len(self._steps)

    def _fits(self, step: Step, name: str, attributes: dict[str, str]) -> bool:
        if step.name is not None and _split(name) != step.name:
            return False
        counts = self._counts[self._depth]
        for number, predicate in enumerate(step.predicates):
            if predicate.position:
                counts[number] = counts.get(number, 0) + 1
                if counts[number] != predicate.position:
                    return False
            elif attributes.get(_joined(predicate.attribute)) != predicate.value:
                return False
        return True

    def _begin_target(self) -> None:
        start = self.at()
        opened = self.tag_end(start)
        is_empty = self.data[opened - 2 : opened] == b"/>"
        self._target = Place(start, opened, opened, opened, is_empty, start)
        self._texts, self._text_start = 0, opened

    def _end(self, _name: str) -> None:
        self._depth -= 1
        if self._parts_texts():
            self._text_start = self._child_end(-self._text_start)
        if self._matched == self._depth + 1:
            if self._matched == len(self._steps):
                self._end_target()
            self._matched -= 1
            self._counts.pop()

    def _child_end(self, start: int) -> int:
        opened = self.tag_end(start)
        if self.data[opened - 2 : opened] == b"/>":
            return opened
        return self.data.index(b">", self.at()) + 1

    def _end_target(self) -> None:
        target = self._target
        assert target is not None, "it began"
        self._target = None
        if not target.is_empty:
            target.closing = self.at()
            target.end = self.data.index(b">", target.closing) + 1
            self._target = target
            self._end_of_text(target.closing)
            self._target = None
        if not self._text:
            self._keep(target)

    def _between(self, _text: str) -> None:
        self._skip(b"-->")

    def _between_too(self, _target: str, _text: str) -> None:
        self._skip(b"?>")

    def _skip(self, ending: bytes) -> None:
        """Take note of a comment or an instruction, which parts two texts."""
        if self._parts_texts():
            self._end_of_text(self.at())
            self._text_start = self.data.index(ending, self.at()) + len(ending)

    def _end_of_text(self, end: int) -> None:
        """Take note of a text of the element that is meant, if there is one."""
        start, target = self._text_start, self._target
        if target is None or end <= start:
            return
        self._texts += 1
        if self._texts == self._text:
            self._keep(
                Place(start, target.opened, target.closing, end, target.is_empty, target.tag)
            )

    def _keep(self, place: Place) -> None:
        if len(self.found) < 2:  # noqa: PLR2004 - a second one shows that it is not the only one
            self.found.append(place)


def _split(name: str) -> Name:
    namespace, _, local = name.rpartition(SEPARATOR)
    return namespace, local


def _joined(name: Name) -> str:
    namespace, local = name
    return f"{namespace}{SEPARATOR}{local}" if namespace else local
