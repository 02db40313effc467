"""An XML Patch (RFC 5261, RFC 7351) that leads from one version to the next.

Elements are selected by position, so that no name needs a namespace. Operations are written from
the end of the document to its beginning: each finds everything before it unchanged.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from html import escape
from typing import BinaryIO, Final, NamedTuple

import msgspec

from resourcesync.documents.patches.limits import MAX_BYTES, MAX_OPERATIONS, MAX_READ, read_all
from resourcesync.documents.patches.selectors import XmlScanner
from resourcesync.errors import PatchError

_MAX_DEPTH: Final = 200
_MAX_ELEMENTS: Final = 100_000


class Element(msgspec.Struct):
    """An element, in bytes.

    Attributes:
        start: The first byte of it.
        opened: The first byte after its start tag.
        scope: Namespaces by prefix inside it; the empty prefix is the default one.
        closing: The first byte of its end tag; ``opened`` where one tag is both.
        end: The first byte after it.
    """

    start: int
    opened: int
    scope: Mapping[str, str]
    closing: int = 0
    end: int = 0
    children: list["Element"] = msgspec.field(default_factory=list)


Item = tuple[int, int, Element | None]
"""A part of an element: its start, its end, and the element, if it is one."""


def items_of(element: Element) -> list[Item]:
    """Return the parts of an element, in order: its elements, and the text between them."""
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
        what: Its description, for messages.

    Raises:
        PatchError: It cannot be used, or is too deep or too large.
    """
    reader = _TreeReader(data, what)
    reader.run()
    assert reader.root is not None, "a document has a root"
    return reader.root


class _TreeReader(XmlScanner):
    """A reader of a document that records its elements."""

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


_MOST_PAIRS: Final = 250_000
"""Pairs of neighbours of two elements that are compared; beyond that the element is replaced."""
_NAMESPACE: Final = "urn:ietf:rfc:7351"
_BLANK: Final = re.compile(rb"[ \t\r\n]+")
_PREFIX: Final = re.compile(r"[<\s/@](?P<prefix>[^\W\d][\w.\-·]*):(?=[^\W\d])")
_VALUE: Final = re.compile(rb"([^\s=]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


def compute(previous: BinaryIO, current: BinaryIO, patch: BinaryIO, limit: int) -> None:
    """Write a patch that leads from one version to another.

    Args:
        previous: The version before.
        current: The version that it is to lead to.
        patch: Receives the patch.
        limit: Bytes that it may have.

    Raises:
        PatchError: There is none that small, or one of the versions is no XML, or too large.
    """
    before = read_all(previous, MAX_BYTES, "the version before")
    after = read_all(current, MAX_BYTES, "the new version")
    old, new = read_tree(before, "the version before"), read_tree(after, "the new version")
    if before[: old.start] != after[: new.start] or before[old.end :] != after[new.end :]:
        raise PatchError("the parts around the root differ")
    operations = _XmlDiffer(before, after).between(old, new, "/*")
    if len(operations) > min(MAX_OPERATIONS, MAX_READ // max(len(before), 1)):
        raise PatchError("the patch would have too many operations for a document of this size")
    taken = {*old.scope, *new.scope}
    prefix = "p"
    while prefix in taken:
        prefix += "p"
    inner = "".join(operation.text(prefix) for operation in operations)
    head = f'<{prefix}:patch xmlns:{prefix}="{_NAMESPACE}">'
    text = f"{head}{inner}</{prefix}:patch>".encode()
    if len(text) > limit:
        raise PatchError("the patch would be too large")
    patch.write(text)


class _DiffOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation.

    Attributes:
        kind: ``add``, ``replace`` or ``remove``.
        selector: The node it is done to.
        content: The content it adds.
        scope: Namespaces at the place of that content.
        more: Further attributes, as they are written.
    """

    kind: str
    selector: str
    content: bytes = b""
    scope: Mapping[str, str]
    more: str = ""

    def text(self, prefix: str) -> str:
        """Return it as it is written."""
        content = self.content.decode()
        used = {match["prefix"] for match in _PREFIX.finditer(f"{content} {self.selector}")}
        if "<" in content:
            used.add("")
        bound = "".join(
            f' xmlns{name and ":"}{name}="{escape(self.scope[name])}"'
            for name in sorted(used & self.scope.keys() - {"xml"})
        )
        head = f'<{prefix}:{self.kind} sel="{self.selector}"{self.more}{bound}'
        return f"{head}>{content}</{prefix}:{self.kind}>" if content else f"{head}/>"


class _ReplacedItems(NamedTuple):
    """Neighbours in an element of the version before, and their replacement."""

    items: list[Item]
    start: int
    end: int
    content: bytes


class _NotExpressibleError(Exception):
    """A difference that no operation can express: the element around it has to be replaced."""


class _XmlDiffer:
    """A comparison of two documents."""

    def __init__(self, before: bytes, after: bytes) -> None:
        self._before = before
        self._after = after

    def between(self, old: Element, new: Element, way: str) -> list[_DiffOperation]:
        """Return what makes one element of the other.

        Args:
            old: The element of the version before.
            new: That of the version after.
            way: The selector of the former.
        """
        content = self._after[new.start : new.end]
        if self._before[old.start : old.end] == content:
            return []
        whole = _DiffOperation(kind="replace", selector=way, content=content, scope=new.scope)
        try:
            operations = [*self._contents(old, new, way), *self._attributes(old, new, way)]
        except _NotExpressibleError:
            return [whole]
        cost = sum(len(operation.content) + len(operation.selector) for operation in operations)
        return operations if cost < len(content) + len(way) else [whole]

    def _attributes(self, old: Element, new: Element, way: str) -> Iterable[_DiffOperation]:
        """Yield the changes of values; names and blanks must be the same."""
        chunk, other = self._before[old.start : old.opened], self._after[new.start : new.opened]
        if chunk == other:
            return
        if _VALUE.sub(rb"\1=", chunk) != _VALUE.sub(rb"\1=", other):
            raise _NotExpressibleError
        for before, after in zip(_VALUE.finditer(chunk), _VALUE.finditer(other), strict=True):
            if before[0] == after[0]:
                continue
            name = before[1].decode()
            value = after[2] if after[3] is None else after[3]
            if name.startswith("xmlns") or not value or b"&" in before[0]:
                raise _NotExpressibleError
            selector = f"{way}/@{name}"
            yield _DiffOperation(kind="replace", selector=selector, content=value, scope=old.scope)

    def _contents(self, old: Element, new: Element, way: str) -> Iterable[_DiffOperation]:
        """Yield the changes between start tag and end tag, the last one first."""
        if self._before[old.closing : old.end] != self._after[new.closing : new.end]:
            raise _NotExpressibleError
        olds, news = items_of(old), items_of(new)
        for i, i_end, j, j_end in reversed(self._blocks(olds, news)):
            pairs = 0
            while pairs < min(i_end - i, j_end - j) and _is_pair(olds[i + pairs], news[j + pairs]):
                pairs += 1
            if i + pairs < i_end or j + pairs < j_end:
                content = self._text_of(news[j + pairs : j_end])
                run = _ReplacedItems(olds, i + pairs, i_end, content)
                yield from self._run(run, way, old, new.scope)
            for step in reversed(range(pairs)):
                yield from self._pair(olds, i + step, news[j + step], way, old)

    def _blocks(self, olds: list[Item], news: list[Item]) -> list[tuple[int, int, int, int]]:
        """Return the differing ranges of the neighbours."""
        item = [self._before[start:end] for start, end, _ in olds]
        other = [self._after[start:end] for start, end, _ in news]
        first = 0
        while first < min(len(item), len(other)) and item[first] == other[first]:
            first += 1
        last = 0
        while last < min(len(item), len(other)) - first and item[-1 - last] == other[-1 - last]:
            last += 1
        item, other = item[first : len(item) - last], other[first : len(other) - last]
        if len(item) == len(other):
            return [(first, first + len(item), first, first + len(other))] if item else []
        if len(item) * len(other) > _MOST_PAIRS:
            raise _NotExpressibleError
        found = SequenceMatcher(None, item, other, autojunk=False).get_opcodes()
        return [
            (i + first, i_end + first, j + first, j_end + first)
            for tag, i, i_end, j, j_end in found
            if tag != "equal"
        ]

    def _pair(
        self, olds: list[Item], at: int, new: Item, way: str, parent: Element
    ) -> Iterable[_DiffOperation]:
        start, end, element = olds[at]
        if element is not None and new[2] is not None:
            return self.between(element, new[2], f"{way}/*[{_position(olds, at)}]")
        text = self._after[new[0] : new[1]]
        if text == self._before[start:end]:
            return ()
        if b"<" in text or b"<" in self._text_between(olds):
            raise _NotExpressibleError
        number = sum(item[2] is None for item in olds[: at + 1])
        selector = f"{way}/text()[{number}]"
        return (
            _DiffOperation(kind="replace", selector=selector, content=text, scope=parent.scope),
        )

    def _text_between(self, items: list[Item]) -> bytes:
        """Return the text between elements; comments would split it into several texts."""
        return b"".join(self._before[start:end] for start, end, item in items if item is None)

    def _text_of(self, items: list[Item]) -> bytes:
        return self._after[items[0][0] : items[-1][1]] if items else b""

    def _run(
        self, run: _ReplacedItems, way: str, parent: Element, scope: Mapping[str, str]
    ) -> Iterable[_DiffOperation]:
        """Yield what removes a run of neighbours and puts others in its place."""
        gone = run.items[run.start : run.end]
        is_one = len(gone) == 1 and gone[0][2] is not None
        if is_one and run.content and not _is_edged(run.content):
            selector = f"{way}/*[{_position(run.items, run.start)}]"
            yield _DiffOperation(
                kind="replace", selector=selector, content=run.content, scope=scope
            )
            return
        if gone and run.content:
            raise _NotExpressibleError
        if gone:
            yield from self._removals(run, way, parent)
        else:
            yield self._addition(run, way, scope)

    def _addition(self, run: _ReplacedItems, way: str, scope: Mapping[str, str]) -> _DiffOperation:
        items, at = run.items, run.start
        more, selector = "", way
        if at and items[at - 1][2] is not None:
            more, selector = ' pos="after"', f"{way}/*[{_position(items, at - 1)}]"
        elif at < len(items) and items[at][2] is not None:
            more, selector = ' pos="before"', f"{way}/*[{_position(items, at)}]"
        elif at < len(items):
            more = ' pos="prepend"'
            if at:
                raise _NotExpressibleError
        return _DiffOperation(
            kind="add", selector=selector, content=run.content, scope=scope, more=more
        )

    def _removals(self, run: _ReplacedItems, way: str, parent: Element) -> Iterable[_DiffOperation]:
        """Yield the removal of elements, the last one first, with the blanks that go with them."""
        items = run.items[run.start : run.end]
        blanks = [item for item in items if item[2] is None]
        if any(not _BLANK.fullmatch(self._before[start:end]) for start, end, _ in blanks):
            raise _NotExpressibleError
        if len(blanks) == len(items):
            raise _NotExpressibleError
        leads, trails = items[0][2] is None, items[-1][2] is None
        first = run.start + leads
        for at in reversed(range(run.start, run.end)):
            if run.items[at][2] is None:
                continue
            before = at > first or leads
            is_last = at >= run.end - 1 - trails
            after = trails and is_last
            has_blank = before and run.items[at - 1][2] is None and at > run.start
            blank = "both" if has_blank and after else "before" if has_blank else ""
            blank = blank or ("after" if after else "")
            yield _DiffOperation(
                kind="remove",
                selector=f"{way}/*[{_position(run.items, at)}]",
                scope=parent.scope,
                more=f' ws="{blank}"' if blank else "",
            )


def _is_pair(old: Item, new: Item) -> bool:
    return (old[2] is None) == (new[2] is None)


def _is_edged(content: bytes) -> bool:
    """True if it begins or ends with a text, which a replacement would lose."""
    return not (content.startswith(b"<") and content.endswith(b">"))


def _position(items: list[Item], at: int) -> int:
    """Return which of the elements the item at a place is, from 1."""
    return sum(item[2] is not None for item in items[: at + 1])
