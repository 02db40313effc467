"""One element inside a document becomes a document of its own, with the prefixes it was written in.

Metadata formats use names with prefixes in values too (``xsi:type="dcterms:URI"``), so prefixes are
kept, and those declared further out come along. Comments and instructions do not.
"""

from collections.abc import Mapping
from typing import Final

from resourcesync.documents._tokens import SEPARATOR

DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_MOST_PREFIXES: Final = 200
_TEXT: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_VALUE: Final = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        '"': "&quot;",
        "\t": "&#9;",
        "\n": "&#10;",
        "\r": "&#13;",
    }
)

Scope = Mapping[str, str]
"""Namespaces by prefix; the default one is at the empty prefix."""


class ElementCopier:
    """One element and all inside it, written as its parts come.

    Args:
        scope: The prefixes that are declared around it.
        budget: Most characters of it.

    Attributes:
        is_over: Whether it is longer than its budget; then it is not kept.
    """

    def __init__(self, scope: Scope, budget: int) -> None:
        self.is_over = False
        self._around = scope
        self._left = budget
        self._root = ""  # the root's start tag, up to where declarations go
        self._own: dict[str, str] = {}  # what the root declares itself
        self._pieces: list[str] = []
        self._names: list[str] = []
        self._is_open = False  # whether the last start tag still lacks its end
        self._needs_default = False

    def start(self, name: str, attributes: list[str], declared: Scope) -> None:
        """Take the start of an element, and what it declares."""
        if len(declared) > _MOST_PREFIXES:
            self.is_over = True
        written, namespace = _qualified_name(name)
        pairs = iter(attributes)
        values = "".join(
            f' {_qualified_name(key)[0]}="{value.translate(_VALUE)}"'
            for key, value in zip(pairs, pairs, strict=True)
        )
        self._needs_default = self._needs_default or namespace == self._around.get("")
        if not self._names:
            self._root, self._own = f"<{written}", dict(declared)
            self._add(values)
        else:
            self._add(f"{'>' if self._is_open else ''}<{written}{_declared(declared)}{values}")
        self._names.append(written)
        self._is_open = True

    def end(self) -> bool:
        """Take the end of the element that was started last; return whether that is all."""
        name = self._names.pop()
        self._add("/>" if self._is_open else f"</{name}>")
        self._is_open = False
        return not self._names

    def text(self, text: str) -> None:
        """Take some text."""
        self._add((">" if self._is_open else "") + text.translate(_TEXT))
        self._is_open = False

    def document(self) -> bytes:
        """Return the whole as a document."""
        scope = {**self._around, **self._own}
        if not self._needs_default and "" not in self._own:
            scope.pop("", None)
        body = "".join(self._pieces)
        return f"{DECLARATION}{self._root}{_declared(scope)}{body}\n".encode()

    def _add(self, piece: str) -> None:
        self._left -= len(piece)
        if self._left < 0:
            self.is_over = True
        if self.is_over:
            self._pieces.clear()
        else:
            self._pieces.append(piece)


def _qualified_name(name: str) -> tuple[str, str]:
    """Return a name as it is written, and its namespace if that is the default one there."""
    namespace, local, prefix = (*name.split(SEPARATOR), "", "")[:3]
    if not local:
        return namespace, ""
    return (f"{prefix}:{local}", "") if prefix else (local, namespace)


def _declared(scope: Scope) -> str:
    return "".join(
        f' xmlns{":" if prefix else ""}{prefix}="{scope[prefix].translate(_VALUE)}"'
        for prefix in sorted(scope)
        if prefix != "xml"
    )
