"""What a patch puts into a document keeps its namespaces there (RFC 5261 §4.2.2, §4.3).

Bytes are changed only where a prefix means something else at the place than in the patch: it gets
the prefix that means the same there, or else the declaration that it had in the patch.
"""

from collections.abc import Mapping
from html import escape
from typing import Final

from resourcesync.documents.patches.locating import attributes_in, tag_name
from resourcesync.documents.patches.scanning import XmlScanner
from resourcesync.errors import PatchError

_FIXED: Final = frozenset({"xml", "xmlns"})

Scope = Mapping[str, str]
"""Namespaces by prefix; the empty prefix is the default one."""


def rewrite_namespaces(content: bytes, scope: Scope, target: Scope) -> bytes:
    """Return the content of an operation as it is to stand in the document.

    Args:
        content: As it is written in the patch.
        scope: Namespaces where that is.
        target: Namespaces at the place where it is put.

    Raises:
        PatchError: A tag of it is too long.
    """
    if b"<" not in content:
        return content
    head = f"<w{''.join(declaration(*it) for it in scope.items() if it[0] != 'xml')}>".encode()
    carrier = _NamespaceRewriter(head + content + b"</w>", scope, target)
    carrier.run()
    return carrier.edited()[len(head) : -len(b"</w>")]


def prefix_for(prefix: str, scope: Scope, target: Scope) -> str | None:
    """Return the prefix of an attribute at another place; ``None`` when it has to be declared.

    Raises:
        PatchError: It has to be, and means something else there.
    """
    uri = scope[prefix]
    found = min((it for it, bound in target.items() if it and bound == uri), default=None)
    if target.get(prefix) == uri:
        return prefix
    if found is None and prefix in target:
        raise PatchError(f"the prefix {prefix!r} is bound to another namespace there")
    return found


def declaration(prefix: str, uri: str) -> str:
    """Return what binds a prefix, with the blank before it."""
    return f' xmlns{prefix and ":"}{prefix}="{escape(uri)}"'


class _NamespaceRewriter(XmlScanner):
    """Reads content, and notes which bytes of it are to be others."""

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
        same = {it for it, bound in self._target.items() if bound == uri and uri}
        usable = {it for it in same - own if self._scope.get(it, uri if it else "") == uri}
        return min((it for it in usable if it or is_element), default=None)

    def _end(self, _name: str) -> None:
        _, name = self._open.pop()
        if name:
            start = self.position() + len(b"</")
            end = self.data.index(b">", start)
            self._edits.append((start, end, name))
        if len(self._open) == 1:
            text = "".join(declaration(it, self._scope.get(it, "")) for it in sorted(self._missing))
            self._edits.append((self._top, self._top, text.encode()))
            self._missing.clear()
