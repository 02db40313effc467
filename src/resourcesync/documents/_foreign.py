"""Elements of other communities, as XML that stands alone, to be written back as read (§7).

The parser reports namespaces, not prefixes, so prefixes are assigned again, always in the same way:
each element is in the default namespace, and attributes that have a namespace get ``n1``, ``n2``...
"""

from functools import lru_cache
from typing import Final

from resourcesync.documents._expat import (
    RS_NAMESPACES,
    SEPARATOR,
    SITEMAP_NAMESPACES,
    XmlDriver,
)
from resourcesync.model.links import Foreign
from resourcesync.model.vocabulary import SITEMAP_NS

_OURS: Final = frozenset(
    f"{namespace}{SEPARATOR}{local}"
    for namespaces, names in (
        (RS_NAMESPACES, ("md", "ln")),
        (SITEMAP_NAMESPACES, ("urlset", "sitemapindex", "url", "sitemap")),
        (SITEMAP_NAMESPACES, ("loc", "lastmod", "changefreq")),
    )
    for namespace in namespaces
    for local in names
)
"""Elements that are written from values, and so cannot come as a fragment."""
_PRIORITY: Final = f'<priority xmlns="{SITEMAP_NS}"'
_AROUND: Final = (f'<r xmlns="{SITEMAP_NS}">'.encode(), b"</r>")


def foreign_text(foreign: Foreign) -> str:
    """Return the elements, one after the other."""
    for fragment in foreign:
        _check_fragment(fragment)
    return "".join(foreign)


def split_priority(foreign: Foreign) -> tuple[str, str]:
    """Return the same as two texts: ``priority``, which is before ``rs:md``, and the rest."""
    before = tuple(fragment for fragment in foreign if fragment.startswith(_PRIORITY))
    after = tuple(fragment for fragment in foreign if not fragment.startswith(_PRIORITY))
    return foreign_text(before), foreign_text(after)


@lru_cache(maxsize=256)  # many entries have the same
def _check_fragment(fragment: str) -> None:
    look = _FragmentOutline()
    # Inside the default namespace that it will meet, and with no prefix bound around it.
    before, after = _AROUND
    driver = XmlDriver(
        lambda fault: ValueError(f"no XML that stands alone ({fault.detail}): {fragment[:64]!r}")
    )
    driver.parser.StartElementHandler = look.start
    driver.parser.EndElementHandler = look.end
    driver.parser.CharacterDataHandler = look.text
    driver.read(before + fragment.encode() + after)
    if look.has_text or len(look.names) != 1:
        raise ValueError(f"not exactly one element: {fragment[:64]!r}")
    if look.names[0] in _OURS:
        raise ValueError(f"not an element of another community: {fragment[:64]!r}")


class _FragmentOutline:
    """The level directly around a fragment: names of elements, and whether there is text."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.has_text = False
        self._depth = 0

    def start(self, name: str, _attributes: object) -> None:
        if self._depth == 1:
            self.names.append(name)
        self._depth += 1

    def end(self, _name: str) -> None:
        self._depth -= 1

    def text(self, _text: str) -> None:
        self.has_text = self.has_text or self._depth == 1


_XML: Final = "http://www.w3.org/XML/1998/namespace"
TEXT_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
VALUE_ESCAPES: Final = str.maketrans(
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
    """Return an element with text alone."""
    start = f'<{local} xmlns="{namespace}"'
    return f"{start}>{text.translate(TEXT_ESCAPES)}</{local}>" if text else f"{start}/>"


class ForeignFragment:
    """One element, written as its parts arrive.

    ``is_over``: it is longer than its budget, and dropped.
    """

    def __init__(self, budget: int) -> None:
        self.is_over = budget <= 0
        self._left = budget
        self._pieces: list[str] = []
        self._inside: list[tuple[str, str, dict[str, str]]] = []  # name, namespace, prefixes
        self._is_open = False  # whether the last start tag still lacks its end

    def start(self, name: str, attributes: list[str]) -> None:
        """Add the start of an element."""
        namespace, _, local = name.rpartition(SEPARATOR)
        _, around, prefixes = self._inside[-1] if self._inside else ("", None, {})
        parts = [">" if self._is_open else "", "<", local]
        if namespace != around:
            parts.append(f' xmlns="{namespace.translate(VALUE_ESCAPES)}"')
        pairs = iter(attributes)
        for key, value in zip(pairs, pairs, strict=True):
            place, _, word = key.rpartition(SEPARATOR)
            if place == _XML:
                word = f"xml:{word}"
            elif place:
                if place not in prefixes:
                    prefixes = {**prefixes, place: f"n{len(prefixes) + 1}"}
                    parts.append(f' xmlns:{prefixes[place]}="{place.translate(VALUE_ESCAPES)}"')
                word = f"{prefixes[place]}:{word}"
            parts.append(f' {word}="{value.translate(VALUE_ESCAPES)}"')
        self._inside.append((local, namespace, prefixes))
        self._is_open = True
        self._add("".join(parts))

    def end(self) -> None:
        """Add the end of the element that was started last."""
        local = self._inside.pop()[0]
        self._add("/>" if self._is_open else f"</{local}>")
        self._is_open = False

    def text(self, text: str) -> None:
        """Add some text."""
        self._add((">" if self._is_open else "") + text.translate(TEXT_ESCAPES))
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
