"""Elements of other communities: written back as they were read, after one cheap look (§7)."""

import pyexpat
from functools import lru_cache
from typing import Final

from resourcesync.documents._tokens import RS_NAMESPACES, SEPARATOR, SITEMAP_NAMESPACES
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
"""What is written from values, and so cannot come as a fragment."""
_PRIORITY: Final = f'<priority xmlns="{SITEMAP_NS}"'
_AROUND: Final = (f'<r xmlns="{SITEMAP_NS}">'.encode(), b"</r>")


def foreign_text(foreign: Foreign) -> str:
    """Return the elements, one after the other.

    Raises:
        ValueError: One of them is not exactly one element that stands alone, or is one of those
            that are written from values.
    """
    for fragment in foreign:
        _check_fragment(fragment)
    return "".join(foreign)


def split_priority(foreign: Foreign) -> tuple[str, str]:
    """Return the same as two texts: what stands before ``rs:md``, which is ``priority``, and after.

    Raises:
        ValueError: As `foreign_text` does.
    """
    before = tuple(fragment for fragment in foreign if fragment.startswith(_PRIORITY))
    after = tuple(fragment for fragment in foreign if not fragment.startswith(_PRIORITY))
    return foreign_text(before), foreign_text(after)


@lru_cache(maxsize=256)  # a Source says the same of many entries
def _check_fragment(fragment: str) -> None:
    look = _FragmentOutline()
    # Inside the default namespace that it will meet, and with no prefix bound around it.
    before, after = _AROUND
    parser = pyexpat.ParserCreate("utf-8", SEPARATOR)
    parser.StartElementHandler = look.start
    parser.EndElementHandler = look.end
    parser.CharacterDataHandler = look.text
    try:
        parser.Parse(before + fragment.encode() + after, True)  # noqa: FBT003 - its signature
    except pyexpat.ExpatError as error:
        reason = pyexpat.ErrorString(error.code)
        raise ValueError(f"no XML that stands alone ({reason}): {fragment[:64]!r}") from error
    if look.has_text or len(look.names) != 1:
        raise ValueError(f"not exactly one element: {fragment[:64]!r}")
    if look.names[0] in _OURS:
        raise ValueError(f"not an element of another community: {fragment[:64]!r}")


class _FragmentOutline:
    """What stands directly around a fragment: names of elements, and whether there is text."""

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
