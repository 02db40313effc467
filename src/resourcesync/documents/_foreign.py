"""Elements of other communities: written back as they were read, after one cheap look (§7)."""

import pyexpat
from functools import lru_cache
from typing import Final

from resourcesync.documents._tokens import RS_NAMESPACES, SEPARATOR, SITEMAP_NAMESPACES
from resourcesync.model.links import Foreign
from resourcesync.model.vocabulary import SITEMAP_NS

_OURS: Final = frozenset({*RS_NAMESPACES, *SITEMAP_NAMESPACES})
_AROUND: Final = (f'<r xmlns="{SITEMAP_NS}">'.encode(), b"</r>")


def foreign_text(foreign: Foreign) -> str:
    """Return the elements, one after the other.

    Raises:
        ValueError: One of them is not exactly one element that stands alone, or is one of ours.
    """
    for fragment in foreign:
        _check(fragment)
    return "".join(foreign)


@lru_cache(maxsize=256)  # a Source says the same of many entries
def _check(fragment: str) -> None:
    look = _Look()
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
    if look.names[0].rpartition(SEPARATOR)[0] in _OURS:
        raise ValueError(f"not an element of another community: {fragment[:64]!r}")


class _Look:
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
