"""XML Patch (RFC 5261, RFC 7351) by cutting and pasting bytes: all else stays as it is written.

No tree is built and nothing is formatted again, so what the patch does not touch keeps its bytes.
One reading of the document finds the place of each operation; the result is read once before it is
given. DOCTYPE is refused, and so there are no entities; documents and patches are in UTF-8.

Pasted bytes keep their namespaces (RFC 5261 §4.2.2, §4.3). They are changed only where a prefix
means something else at the place than in the patch: it gets the prefix that means the same there,
or else the declaration that it had in the patch.
"""

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import BinaryIO, Final

import msgspec

from resourcesync.documents.patches.limits import MAX_BYTES, MAX_OPERATIONS, MAX_READ, read_all
from resourcesync.documents.patches.selectors import (
    VALUES,
    NodeSpan,
    Selector,
    SelectorKind,
    XmlScanner,
    attributes_in,
    expanded_attribute,
    locate,
    parse_selector,
    tag_name,
    value_span,
)
from resourcesync.errors import PatchError

_FIXED: Final = frozenset({"xml", "xmlns"})

Scope = Mapping[str, str]
"""Namespaces by prefix; the empty prefix is the default one."""


def rewrite_namespaces(content: bytes, scope: Scope, target: Scope) -> bytes:
    """Return the content of an operation as it is to be in the document.

    Args:
        content: As it is written in the patch.
        scope: Namespaces where that is.
        target: Namespaces at the place where it is put.

    Raises:
        PatchError: A tag of it is too long.
    """
    if b"<" not in content:
        return content
    head = (
        f"<w{''.join(declaration(*item) for item in scope.items() if item[0] != 'xml')}>".encode()
    )
    carrier = _NamespaceRewriter(head + content + b"</w>", scope, target)
    carrier.run()
    return carrier.edited()[len(head) : -len(b"</w>")]


def prefix_for(prefix: str, scope: Scope, target: Scope) -> str | None:
    """Return the prefix of an attribute at another place; ``None`` when it has to be declared.

    Raises:
        PatchError: It has to be, and means something else there.
    """
    uri = scope[prefix]
    found = min((name for name, bound in target.items() if name and bound == uri), default=None)
    if target.get(prefix) == uri:
        return prefix
    if found is None and prefix in target:
        raise PatchError(f"the prefix {prefix!r} is bound to another namespace there")
    return found


def declaration(prefix: str, uri: str) -> str:
    """Return what binds a prefix, with the blank before it."""
    return f' xmlns{prefix and ":"}{prefix}="{escape(uri)}"'


class _NamespaceRewriter(XmlScanner):
    """A reader of content that records which of its bytes to replace."""

    def __init__(self, data: bytes, scope: Scope, target: Scope) -> None:
        super().__init__(data, "the patch")
        self._scope = scope
        self._target = target
        self._edits: list[tuple[int, int, bytes]] = []
        self._new: set[str] = set()
        self._open: list[tuple[frozenset[str], bytes]] = []
        self._top = 0
        self._missing: set[str] = set()
        parser = self.parser
        parser.StartNamespaceDeclHandler = self._bind
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end

    def edited(self) -> bytes:
        """Return the data with all that was noted."""
        pieces, at = [], 0
        for start, end, text in sorted(self._edits):
            pieces += [self.data[at:start], text]
            at = end
        return b"".join([*pieces, self.data[at:]])

    def _bind(self, prefix: str | None, _uri: str | None) -> None:
        self._new.add(prefix or "")

    def _start(self, _name: str, _attributes: dict[str, str]) -> None:
        if not self._open:  # the element around the content, which binds what the patch binds
            self._new.clear()
            self._open.append((frozenset(), b""))
            return
        start = self.position()
        own, self._new = self._open[-1][0] | self._new, set()
        name = tag_name(self.data, start)
        if len(self._open) == 1:
            self._top = start + 1 + len(name)
        renamed = self._rename(name, start + 1, own, is_element=True)
        opened = self.tag_end(start)
        for found in attributes_in(self.data, start, opened):
            if b":" in found[1]:
                self._rename(found[1], found.start(1), own, is_element=False)
        is_empty = self.data.startswith(b"/>", opened - 2)
        self._open.append((own, b"" if is_empty else renamed))

    def _rename(self, name: bytes, at: int, own: frozenset[str], *, is_element: bool) -> bytes:
        """Give a name the prefix that it has at the place; return it if it is another one."""
        prefix, _, local = name.decode().rpartition(":")
        if prefix in own or prefix in _FIXED:
            return b""
        other = self._prefix(prefix, own, is_element=is_element)
        if other is None:
            self._missing.add(prefix)
        if other is None or other == prefix:
            return b""
        renamed = f"{other}{other and ':'}{local}".encode()
        self._edits.append((at, at + len(name), renamed))
        return renamed

    def _prefix(self, prefix: str, own: frozenset[str], *, is_element: bool) -> str | None:
        """Return which prefix means the same at the place; ``None`` when none does.

        One that means something else in the patch is none: it may be declared around the name.
        """
        uri = self._scope.get(prefix, "")
        if self._target.get(prefix, "") == uri:
            return prefix
        same = {name for name, bound in self._target.items() if bound == uri and uri}
        usable = {name for name in same - own if self._scope.get(name, uri if name else "") == uri}
        return min((name for name in usable if name or is_element), default=None)

    def _end(self, _name: str) -> None:
        _, name = self._open.pop()
        if name:
            start = self.position() + len(b"</")
            end = self.data.index(b">", start)
            self._edits.append((start, end, name))
        if len(self._open) == 1:
            text = "".join(
                declaration(name, self._scope.get(name, "")) for name in sorted(self._missing)
            )
            self._edits.append((self._top, self._top, text.encode()))
            self._missing.clear()


_BLANKS: Final = b" \t\r\n"
_POSITIONS: Final = frozenset({"", "prepend", "before", "after"})
_WHITE_SPACE: Final = frozenset({"", "before", "after", "both"})
_WITHOUT_SPACE: Final = frozenset({*VALUES, SelectorKind.TEXT})
_NAME: Final = r"[^\W\d][\w.\-·]*"
_ATTRIBUTE: Final = re.compile(rf"@((?:{_NAME}:)?{_NAME})")
_NAMESPACE: Final = re.compile(rf"namespace::({_NAME})")


def apply(previous: BinaryIO, patch: BinaryIO, result: BinaryIO, limit: int) -> None:
    """Write the version that a patch leads to.

    Args:
        previous: The version before.
        patch: The patch.
        result: Receives the bytes.
        limit: Bytes that the result may have.

    Raises:
        PatchError: The patch is none, does not fit, uses what is not supported, or leads to
            what is no XML; or the version before is too large.
    """
    document = read_all(previous, MAX_BYTES, "the version before")
    most = max(limit, len(document))
    read = 0
    for number, operation in enumerate(_operations(read_all(patch, MAX_BYTES, "the patch")), 1):
        read += len(document)
        if number > MAX_OPERATIONS or read > MAX_READ:
            raise PatchError("the XML Patch has too many operations for a document of this size")
        try:
            place = locate(document, operation.selector)
            document = _APPLY[operation.kind](document, operation, place)
        except PatchError as error:
            raise PatchError(f"operation {number} of the XML Patch: {error.message}") from error
        if len(document) > most:
            raise PatchError("the patched version is longer than listed")
    if len(document) > limit:
        raise PatchError("the patched version is longer than listed")
    XmlScanner(document, "the result").run()
    result.write(document)


class _PatchOperation(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    attributes: Mapping[str, str]
    content: bytes
    selector: Selector
    scope: Mapping[str, str]


def _operations(patch: bytes) -> Iterator[_PatchOperation]:
    """Read the operations of a patch: the children of its root, whatever that is called."""
    reader = _PatchReader(patch)
    reader.run()
    yield from reader.operations


class _PatchReader(XmlScanner):
    """A reader of a patch."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, "the patch")
        self.operations: list[_PatchOperation] = []
        self._depth = 0
        self._scopes: list[tuple[str, str | None]] = []
        self._begun: tuple[str, dict[str, str], int, dict[str, str]] = ("", {}, 0, {})
        parser = self.parser
        parser.StartNamespaceDeclHandler = self._bind
        parser.EndNamespaceDeclHandler = self._unbind
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end

    def _bind(self, prefix: str | None, uri: str | None) -> None:
        self._scopes.append((prefix or "", uri))

    def _unbind(self, _prefix: str | None) -> None:
        self._scopes.pop()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 2:  # noqa: PLR2004 - a child of the root
            scope = {prefix: uri or "" for prefix, uri in self._scopes}
            self._begun = (self.local(name), attributes, self.position(), scope)

    def _end(self, _name: str) -> None:
        self._depth -= 1
        if self._depth != 1:
            return
        kind, attributes, start, scope = self._begun
        opened = self.tag_end(start)
        is_empty = self.data[opened - 2 : opened] == b"/>"
        content = b"" if is_empty else self.data[opened : self.position()]
        if kind not in _APPLY or len(self.operations) >= MAX_OPERATIONS:
            raise PatchError(f"an XML Patch adds, replaces and removes, at most {MAX_OPERATIONS:,}")
        self.operations.append(
            _PatchOperation(
                kind=kind,
                attributes=attributes,
                content=content,
                selector=parse_selector(attributes.get("sel", ""), scope),
                scope=scope,
            )
        )


def _add(document: bytes, operation: _PatchOperation, place: NodeSpan) -> bytes:
    kind = operation.attributes.get("type", "")
    where = operation.attributes.get("pos", "")
    if operation.selector.kind in VALUES or where not in _POSITIONS:
        raise PatchError("nothing can be added there")
    if kind:
        if where or operation.selector.kind is not SelectorKind.ELEMENT:
            raise PatchError("attributes and namespaces are added to elements")
        return _add_value(document, operation, place, kind)
    if where in ("before", "after"):
        content = rewrite_namespaces(operation.content, operation.scope, place.outer)
        at = place.start if where == "before" else place.end
        return document[:at] + content + document[at:]
    if operation.selector.kind is not SelectorKind.ELEMENT:
        raise PatchError("only an element can have content")
    content = rewrite_namespaces(operation.content, operation.scope, place.scope)
    if place.is_empty:
        head = document[: place.opened - 2].rstrip(_BLANKS)
        name = place.tag_name(document)
        return head + b">" + content + b"</" + name + b">" + document[place.opened :]
    at = place.opened if where == "prepend" else place.closing
    return document[:at] + content + document[at:]


def _add_value(document: bytes, operation: _PatchOperation, place: NodeSpan, kind: str) -> bytes:
    """Add an attribute, or the declaration of a namespace."""
    at = place.opened - (2 if place.is_empty else 1)
    while document[at - 1 : at].isspace():
        at -= 1
    if (found := _NAMESPACE.fullmatch(kind)) is not None:
        name, known = f"xmlns:{found[1]}", (SelectorKind.NAMESPACE, ("", found[1]))
    elif (found := _ATTRIBUTE.fullmatch(kind)) is not None:
        name = _attribute_name(found[1], operation.scope, place)
        known = (SelectorKind.ATTRIBUTE, expanded_attribute(found[1], operation.scope))
    else:
        raise PatchError(f"the type {kind[:200]!r} cannot be added")
    if value_span(document, place, *known) is not None:
        raise PatchError(f"{kind} already exists")
    added = f' {name}="'.encode() + _value(operation.content, b'"') + b'"'
    return document[:at] + added + document[at:]


def _attribute_name(name: str, scope: Mapping[str, str], place: NodeSpan) -> str:
    """Return the name that an attribute has in the document, with a declaration that it needs."""
    prefix, _, local = name.rpartition(":")
    if prefix in ("", "xml"):
        return name
    uri, _ = expanded_attribute(name, scope)
    there = prefix_for(prefix, scope, place.scope)
    if there is None:
        return f"{declaration(prefix, uri).lstrip()} {name}"
    return f"{there}:{local}"


def _replace(document: bytes, operation: _PatchOperation, place: NodeSpan) -> bytes:
    selector, content = operation.selector, operation.content
    if selector.kind in VALUES:
        start, end = _span(document, place, selector)
        quote = document[end - 1 : end]
        opening = document.index(quote, start) + 1
        return document[:opening] + _value(content, quote) + document[end - 1 :]
    if selector.kind is not SelectorKind.TEXT:
        content = content.strip(_BLANKS)
        if not content:
            raise PatchError("the replacement is missing")
    content = rewrite_namespaces(content, operation.scope, place.outer)
    return document[: place.start] + content + document[place.end :]


def _remove(document: bytes, operation: _PatchOperation, place: NodeSpan) -> bytes:
    selector, blanks = operation.selector, operation.attributes.get("ws", "")
    if blanks not in _WHITE_SPACE or (blanks and selector.kind in _WITHOUT_SPACE):
        raise PatchError("white space is removed before or after an element, comment or such")
    if selector.kind in VALUES:
        start, end = _span(document, place, selector)
    elif selector.kind is SelectorKind.ELEMENT and len(selector.steps) == 1:
        raise PatchError("the root cannot be removed")
    else:
        before = place.blanks_before(document) if blanks in ("before", "both") else place.start
        after = place.blanks_after(document) if blanks in ("after", "both") else place.end
        if before is None or after is None:
            raise PatchError(f"there is no white space alone to be removed: {blanks}")
        start, end = before, after
    return document[:start] + document[end:]


_APPLY: Final = {"add": _add, "replace": _replace, "remove": _remove}


def _span(document: bytes, place: NodeSpan, selector: Selector) -> tuple[int, int]:
    span = value_span(document, place, selector.kind, selector.name)
    if span is None:
        raise PatchError(f"there is no {selector.kind.name.lower()} {selector.name[1]}")
    return span


def _value(content: bytes, quote: bytes) -> bytes:
    if b"<" in content:
        raise PatchError("an attribute takes text alone")
    return content.replace(quote, b"&quot;" if quote == b'"' else b"&apos;")
