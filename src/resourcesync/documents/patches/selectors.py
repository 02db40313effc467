"""The selectors of an XML Patch that are supported: one node, found in one reading, with no tree.

They are a part of what RFC 5261 §4.1 takes from XPath: a path from the root of element names or
``*``, each with ``[n]`` and ``[@name='value']``. At its end may stand ``@name``,
``namespace::prefix``, ``text()``, ``comment()`` or ``processing-instruction('target')``.
"""

import re
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Final

import msgspec

from resourcesync.documents._expat import SEPARATOR, XmlDriver, XmlFault, XmlFaultKind
from resourcesync.errors import PatchError

_ENCODINGS: Final = ("utf-8", "utf8", "us-ascii")
_TAG: Final = re.compile(rb"<[^\s/>]+(?:\s+[^\s=]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*/?>")
_ENDINGS: Final = ((b"<!--", b"-->"), (b"<?", b"?>"), (b"</", b">"))


class XmlScanner:
    """A scanner of one document.

    Args:
        data: The document.
        what: Its description, for messages.
    """

    def __init__(self, data: bytes, what: str) -> None:
        self.data = data
        self._what = what
        self._driver = XmlDriver(self._error_of, encodings=_ENCODINGS)
        self.parser = self._driver.parser

    def run(self) -> None:
        """Read it to its end.

        Raises:
            PatchError: It cannot be used.
        """
        self._driver.read(self.data)

    def position(self) -> int:
        """Return the place of the current event, in bytes."""
        return self.parser.CurrentByteIndex

    def tag_end(self, start: int) -> int:
        """Return where the tag ends that begins at ``start``."""
        found = _TAG.match(self.data, start)
        if found is None:
            raise PatchError(f"{self._what} has an unsupported tag")
        return found.end()

    def markup_end(self, start: int) -> int:
        """Return where the tag, comment or instruction ends that begins at ``start``."""
        for opening, closing in _ENDINGS:
            if self.data.startswith(opening, start):
                return self.data.index(closing, start) + len(closing)
        return self.tag_end(start)

    @staticmethod
    def local(name: str) -> str:
        """Return a name without its namespace."""
        return name.rpartition(SEPARATOR)[2]

    def _error_of(self, fault: XmlFault) -> PatchError:
        match fault.kind:
            case XmlFaultKind.DOCTYPE:
                return PatchError(f"{self._what} has a DOCTYPE")
            case XmlFaultKind.ENCODING:
                return PatchError(f"{self._what} is not in UTF-8")
            case XmlFaultKind.LIMIT:
                return PatchError(f"{self._what} has more than {fault.limit:,} {fault.detail}")
            case _:
                where = f"line {fault.line}, column {fault.column}"
                return PatchError(f"{self._what} is not usable XML: {fault.detail}: {where}")


XML_NAMESPACE: Final = "http://www.w3.org/XML/1998/namespace"
_NCNAME: Final = r"[^\W\d][\w.\-·]*"
_NAME: Final = rf"(?:{_NCNAME}:)?{_NCNAME}"
_STEP: Final = re.compile(
    rf"/?(?:@(?P<attribute>{_NAME})|namespace::(?P<prefix>{_NCNAME})"
    r"|(?P<text>text\(\s*\))|(?P<comment>comment\(\s*\))"
    rf"|(?P<instruction>processing-instruction\(\s*(?:'(?P<one>{_NCNAME})'|\"(?P<two>{_NCNAME})\")?"
    rf"\s*\))|(?P<name>{_NAME}|\*))"
)
_PREDICATE: Final = re.compile(
    rf"\[\s*(?:(?P<position>[1-9][0-9]{{0,8}})"
    rf"|@(?P<name>{_NAME})\s*=\s*(?:'(?P<one>[^']*)'|\"(?P<two>[^\"]*)\"))\s*\]"
)
_MAX_STEPS: Final = 100

Name = tuple[str, str]
"""Namespace and local name."""


class SelectorKind(Enum):
    """The kind of node that a selector selects."""

    ELEMENT = auto()
    ATTRIBUTE = auto()
    NAMESPACE = auto()
    TEXT = auto()
    COMMENT = auto()
    INSTRUCTION = auto()


VALUES: Final = frozenset({SelectorKind.ATTRIBUTE, SelectorKind.NAMESPACE})
"""The name and attributes of a start tag."""


class Predicate(msgspec.Struct, frozen=True):
    """A condition on a node: to be the n-th one, or to have an attribute of a value."""

    position: int = 0
    attribute: Name = ("", "")
    value: str = ""


class SelectorStep(msgspec.Struct, frozen=True):
    """One element on the way; ``name`` is ``None`` for any."""

    name: Name | None
    predicates: tuple[Predicate, ...]


class Selector(msgspec.Struct, frozen=True, kw_only=True):
    """The way to one node.

    Attributes:
        steps: The elements on the way, the root first.
        kind: The kind of node that it selects.
        name: Of an attribute; for a namespace its prefix, for an instruction its target, as the
            local name. An instruction without one may have any target.
        position: Position among the texts, comments or instructions, from 1; 0 for the only one.
    """

    steps: tuple[SelectorStep, ...]
    kind: SelectorKind = SelectorKind.ELEMENT
    name: Name = ("", "")
    position: int = 0


def parse_selector(text: str, scope: Mapping[str, str]) -> Selector:
    """Understand a selector.

    Args:
        text: As it is written.
        scope: Namespaces by prefix where it is written; the empty prefix is the default one.

    Raises:
        PatchError: It is none, or one that we do not follow.
    """
    steps: list[SelectorStep] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        slash = text.startswith("/", at)
        if found is None or (at > 0 and not slash) or len(steps) >= _MAX_STEPS:
            break
        predicates, at = _predicates(text, found.end(), scope)
        if not found["name"]:
            return _ending(text[at:], tuple(steps), found, predicates, scope)
        name = None if found["name"] == "*" else _expanded(found["name"], scope, is_element=True)
        steps.append(SelectorStep(name, predicates))
    if at < len(text) or not steps:
        raise _unknown(text)
    return Selector(steps=tuple(steps))


def _ending(
    rest: str,
    steps: tuple[SelectorStep, ...],
    found: re.Match[str],
    predicates: tuple[Predicate, ...],
    scope: Mapping[str, str],
) -> Selector:
    """Return a selector that ends with what is no element."""
    kind, name = _kind(found, scope)
    is_outside = not steps and kind not in (SelectorKind.COMMENT, SelectorKind.INSTRUCTION)
    if rest or is_outside or len(predicates) > (kind not in VALUES):
        raise _unknown(found.string)
    if predicates and not predicates[0].position:
        raise _unknown(found.string)
    position = predicates[0].position if predicates else 0
    return Selector(steps=steps, kind=kind, name=name, position=position)


def _kind(found: re.Match[str], scope: Mapping[str, str]) -> tuple[SelectorKind, Name]:
    if found["attribute"]:
        return SelectorKind.ATTRIBUTE, expanded_attribute(found["attribute"], scope)
    if found["prefix"]:
        return SelectorKind.NAMESPACE, ("", found["prefix"])
    if found["instruction"]:
        return SelectorKind.INSTRUCTION, ("", found["one"] or found["two"] or "")
    return (SelectorKind.TEXT if found["text"] else SelectorKind.COMMENT), ("", "")


def expanded_attribute(name: str, scope: Mapping[str, str]) -> Name:
    """Return an attribute's name with its namespace.

    Raises:
        PatchError: Its prefix is bound to none.
    """
    return _expanded(name, scope, is_element=False)


def _predicates(text: str, at: int, scope: Mapping[str, str]) -> tuple[tuple[Predicate, ...], int]:
    predicates = []
    while found := _PREDICATE.match(text, at):
        at = found.end()
        if found["position"]:
            predicates.append(Predicate(position=int(found["position"])))
        else:
            value = found["two"] if found["one"] is None else found["one"]
            attribute = expanded_attribute(found["name"], scope)
            predicates.append(Predicate(attribute=attribute, value=value))
    return tuple(predicates), at


def _expanded(name: str, scope: Mapping[str, str], *, is_element: bool) -> Name:
    prefix, _, local = name.rpartition(":")
    if not prefix:
        return (scope.get("", "") if is_element else ""), local
    if prefix == "xml":
        return XML_NAMESPACE, local
    if prefix not in scope:
        raise PatchError(f"the prefix {prefix!r} is bound to no namespace in the patch")
    return scope[prefix], local


def _unknown(text: str) -> PatchError:
    return PatchError(f"the selector {text[:200]!r} is not supported")


_ATTRIBUTE: Final = re.compile(rb"\s+([^\s=]+)\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_TAG_NAME: Final = re.compile(rb"<([^\s/>]+)")
_BLANKS: Final = b" \t\r\n"
_MAX_DEPTH: Final = 1_000


class NodeSpan(msgspec.Struct):
    """The place of a node in bytes; of a part of an element, ``start`` and ``end`` are its own.

    Attributes:
        start: The first byte of it.
        opened: The first byte after the start tag of its element.
        closing: The first byte of the end tag of its element.
        end: The first byte after it.
        is_empty: True if its element is written as one tag.
        tag: The first byte of its element.
        before: Start of the text before it.
        after: End of the text after it.
        scope: Namespaces by prefix in its element; the empty prefix is the default one.
        outer: The same around its element.
    """

    start: int = 0
    opened: int = 0
    closing: int = 0
    end: int = 0
    is_empty: bool = False
    tag: int = 0
    before: int = 0
    after: int = 0
    scope: Mapping[str, str] = msgspec.field(default_factory=dict)
    outer: Mapping[str, str] = msgspec.field(default_factory=dict)

    def tag_name(self, document: bytes) -> bytes:
        """Return the name of its element as it is written."""
        return tag_name(document, self.tag)

    def blanks_before(self, document: bytes) -> int | None:
        """Return where the white space before it begins, if there is nothing else before it."""
        return _if_blank(document, self.before, self.start, self.before)

    def blanks_after(self, document: bytes) -> int | None:
        """Return where the white space after it ends, if there is nothing else after it."""
        return _if_blank(document, self.end, self.after, self.after)


def _if_blank(document: bytes, start: int, end: int, place: int) -> int | None:
    return place if start < end and not document[start:end].strip(_BLANKS) else None


def tag_name(document: bytes, start: int) -> bytes:
    """Return the name in the tag that begins at a place, as it is written."""
    found = _TAG_NAME.match(document, start)
    assert found is not None, "a tag has a name"
    return found[1]


def attributes_in(document: bytes, tag: int, opened: int) -> Iterator[re.Match[bytes]]:
    """Yield the attributes of a start tag; the first group is the name as it is written.

    Args:
        document: The document.
        tag: The first byte of the tag.
        opened: The first byte after it.
    """
    at = tag + 1 + len(tag_name(document, tag))
    while found := _ATTRIBUTE.match(document, at, opened):
        yield found
        at = found.end()


def locate(document: bytes, selector: Selector) -> NodeSpan:
    """Return the place of the one node that a selector means.

    Raises:
        PatchError: There is none, or more than one; or the document cannot be used.
    """
    locator = _NodeLocator(document, selector)
    locator.run()
    if len(locator.found) != 1:
        count = "none" if not locator.found else "more than one"
        raise PatchError(f"its selector selects {count} of the nodes")
    return locator.found[0]


def value_span(
    document: bytes, place: NodeSpan, kind: SelectorKind, name: Name
) -> tuple[int, int] | None:
    """Return the range of a value in a start tag, from the blank before it; ``None`` if absent.

    Args:
        document: The document.
        place: Of the element.
        kind: An attribute, or the declaration of a namespace.
        name: Of the attribute; of a declaration the prefix is the local name.
    """
    for found in attributes_in(document, place.tag, place.opened):
        prefix, _, local = found[1].decode().rpartition(":")
        if kind is SelectorKind.NAMESPACE:
            is_it = (prefix, local) == ("xmlns", name[1])
        else:
            bound = XML_NAMESPACE if prefix == "xml" else place.scope.get(prefix)
            is_it = prefix != "xmlns" and (bound if prefix else "", local) == name
        if is_it:
            return found.span()
    return None


class _NodeLocator(XmlScanner):
    """A reader of a document that records the places of the selected nodes, two at most."""

    def __init__(self, data: bytes, selector: Selector) -> None:
        super().__init__(data, "the version before")
        self.found: list[NodeSpan] = []
        self._steps = selector.steps
        self._kind = SelectorKind.ELEMENT if selector.kind in VALUES else selector.kind
        self._selector = selector
        self._depth = 0
        self._matched = 0  # so many elements, from the root on, are those of the steps
        self._counts: list[dict[int, int]] = [{}]
        self._scopes: list[tuple[str, str]] = []
        self._new_scopes = 0
        self._last = -1  # the first byte of the tag, comment or instruction before
        self._is_opened = False  # whether that is a start tag
        self._children_counted = 0  # texts, comments or instructions in the element that is meant
        self._ends_next: NodeSpan | None = None
        self._target = None if self._steps else NodeSpan()
        parser = self.parser
        parser.StartNamespaceDeclHandler = self._bind
        parser.EndNamespaceDeclHandler = self._unbind
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CommentHandler = self._comment
        parser.ProcessingInstructionHandler = self._instruction

    def _bind(self, prefix: str | None, uri: str | None) -> None:
        self._scopes.append((prefix or "", uri or ""))
        self._new_scopes += 1

    def _unbind(self, _prefix: str | None) -> None:
        self._scopes.pop()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._depth >= _MAX_DEPTH:
            raise PatchError("the version before is nested too deeply")
        self._end_text()
        is_next = self._matched == self._depth < len(self._steps)
        if is_next and self._fits(self._steps[self._depth], name, attributes):
            self._matched += 1
            self._counts.append({})
            if self._matched == len(self._steps):
                self._begin_target()
        self._new_scopes = 0
        self._depth += 1
        self._last, self._is_opened = self.position(), True

    def _end(self, _name: str) -> None:
        is_empty = self._ends_at_once()
        if not is_empty:
            self._end_text()
        self._depth -= 1
        if self._matched == self._depth + 1:
            if self._matched == len(self._steps):
                target = self._target
                assert target is not None, "it began"
                self._target = None
                if not target.is_empty:
                    target.closing = self.position()
                    target.end = self.markup_end(target.closing)
                if self._kind is SelectorKind.ELEMENT:
                    self._add_found(target)
            self._matched -= 1
            self._counts.pop()
        if not is_empty:
            self._last = self.position()
        self._is_opened = False

    def _ends_at_once(self) -> bool:
        """True if the element that ends now is written as one tag, after which we are."""
        at = self.position()
        is_likely = self._is_opened and self.data.startswith(b"/>", at - 2)
        return is_likely and self.markup_end(self._last) == at

    def _comment(self, _text: str) -> None:
        self._end_text()
        if self._kind is SelectorKind.COMMENT:
            self._count_child()
        self._last, self._is_opened = self.position(), False

    def _instruction(self, target: str, _text: str) -> None:
        self._end_text()
        if self._kind is SelectorKind.INSTRUCTION and self._selector.name[1] in ("", target):
            self._count_child()
        self._last, self._is_opened = self.position(), False

    def _end_text(self) -> None:
        """Record the text that ends where the next tag, comment or instruction begins."""
        if self._ends_next is not None:
            self._ends_next.after, self._ends_next = self.position(), None
        if (
            self._kind is SelectorKind.TEXT
            and self._is_in_target()
            and self._last_end() < self.position()
        ):
            self._count(self._last_end(), self.position())

    def _is_in_target(self) -> bool:
        return self._target is not None and self._depth == len(self._steps)

    def _last_end(self) -> int:
        return 0 if self._last < 0 else self.markup_end(self._last)

    def _fits(self, step: SelectorStep, name: str, attributes: dict[str, str]) -> bool:
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
        start = self.position()
        opened = self.tag_end(start)
        outer = self._scopes[: len(self._scopes) - self._new_scopes]
        self._target = NodeSpan(
            start=start,
            opened=opened,
            closing=opened,
            end=opened,
            is_empty=self.data[opened - 2 : opened] == b"/>",
            tag=start,
            before=self._last_end(),
            scope=dict(self._scopes),
            outer=dict(outer),
        )
        self._children_counted = 0

    def _count_child(self) -> None:
        if self._is_in_target():
            self._count(self.position(), self.markup_end(self.position()))

    def _count(self, start: int, end: int) -> None:
        """Count a text, comment or instruction of the selected element."""
        self._children_counted += 1
        target = self._target
        assert target is not None, "it is within"
        if self._selector.position in (0, self._children_counted):
            self._add_found(
                NodeSpan(
                    start=start,
                    opened=target.opened,
                    end=end,
                    is_empty=target.is_empty,
                    tag=target.tag,
                    before=self._last_end(),
                    scope=target.scope,
                    outer=target.scope,
                )
            )

    def _add_found(self, place: NodeSpan) -> None:
        if len(self.found) < 2:  # noqa: PLR2004 - a second one shows that it is not the only one
            self.found.append(place)
            self._ends_next = place


def _split(name: str) -> Name:
    namespace, _, local = name.rpartition(SEPARATOR)
    return namespace, local


def _joined(name: Name) -> str:
    namespace, local = name
    return f"{namespace}{SEPARATOR}{local}" if namespace else local
