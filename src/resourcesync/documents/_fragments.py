"""Elements of other communities become XML that stands alone (§7).

The parser tells namespaces, not prefixes, so prefixes are given anew, always in the same way: each
element is in the default namespace, and attributes that have a namespace get ``n1``, ``n2``...
"""

from typing import Final

from resourcesync.documents._tokens import SEPARATOR

_XML: Final = "http://www.w3.org/XML/1998/namespace"
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


def text_element(namespace: str, local: str, text: str) -> str:
    """Return an element that holds text alone."""
    start = f'<{local} xmlns="{namespace}"'
    return f"{start}>{text.translate(_TEXT)}</{local}>" if text else f"{start}/>"


class ForeignFragment:
    """One element, written as its parts come.

    Args:
        budget: Most characters of it.

    Attributes:
        is_over: Whether it is longer than its budget; then it is not kept.
    """

    def __init__(self, budget: int) -> None:
        self.is_over = budget <= 0
        self._left = budget
        self._pieces: list[str] = []
        self._inside: list[tuple[str, str, dict[str, str]]] = []  # name, namespace, prefixes
        self._is_open = False  # whether the last start tag still lacks its end

    def start(self, name: str, attributes: list[str]) -> None:
        """Take the start of an element."""
        namespace, _, local = name.rpartition(SEPARATOR)
        _, around, prefixes = self._inside[-1] if self._inside else ("", None, {})
        parts = [">" if self._is_open else "", "<", local]
        if namespace != around:
            parts.append(f' xmlns="{namespace.translate(_VALUE)}"')
        pairs = iter(attributes)
        for key, value in zip(pairs, pairs, strict=True):
            place, _, word = key.rpartition(SEPARATOR)
            if place == _XML:
                word = f"xml:{word}"
            elif place:
                if place not in prefixes:
                    prefixes = {**prefixes, place: f"n{len(prefixes) + 1}"}
                    parts.append(f' xmlns:{prefixes[place]}="{place.translate(_VALUE)}"')
                word = f"{prefixes[place]}:{word}"
            parts.append(f' {word}="{value.translate(_VALUE)}"')
        self._inside.append((local, namespace, prefixes))
        self._is_open = True
        self._add("".join(parts))

    def end(self) -> None:
        """Take the end of the element that was started last."""
        local = self._inside.pop()[0]
        self._add("/>" if self._is_open else f"</{local}>")
        self._is_open = False

    def text(self, text: str) -> None:
        """Take some text."""
        self._add((">" if self._is_open else "") + text.translate(_TEXT))
        self._is_open = False

    def __str__(self) -> str:
        return "".join(self._pieces)

    def _add(self, piece: str) -> None:
        self._left -= len(piece)
        if self._left < 0:
            self.is_over = True
            self._pieces.clear()
        if not self.is_over:
            self._pieces.append(piece)
