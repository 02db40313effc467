"""expat in its safe setup, and the elements and namespaces that matter.

Every caller must pass its handlers of a DOCTYPE and of the XML declaration, so neither can be
forgotten.
"""

import pyexpat
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS

SEPARATOR: Final = "\x1f"
"""Separator of namespace and local name; XML excludes it, so no text looks like a name."""

# Numbers of the elements that matter.
ENTRY: Final = 0
LOC: Final = 1
LASTMOD: Final = 2
CHANGEFREQ: Final = 3
PRIORITY: Final = 4
MD: Final = 5
LN: Final = 6
MISPLACED: Final = 7
"""A ``sitemap`` in a ``urlset`` or the other way round."""

# Elements of the drafts of 2012, which rs:md has replaced.
SIZE: Final = 8
FIXITY: Final = 9
MD5: Final = 10
EVENT: Final = 11
EXPIRES: Final = 12
DRAFT_ELEMENTS: Final = frozenset({SIZE, FIXITY, MD5, EVENT, EXPIRES})
FOREIGN: Final = 13

SITEMAP_NAMESPACES: Final = (
    SITEMAP_NS,
    "https://www.sitemaps.org/schemas/sitemap/0.9",
    "http://www.google.com/schemas/sitemap/0.84",
    "http://www.google.com/schemas/sitemap/0.9",
    "http://www.google.com/schemas/sitemap/0.90",
    "http://www.sitemaps.org/schemas/sitemap/0.90",
    "http://sitemaps.org/schemas/sitemap/0.9",
    "https://sitemaps.org/schemas/sitemap/0.9",
    *(
        f"{scheme}://{host}/schemas/sitemap/0.9/"
        for scheme in ("http", "https")
        for host in ("www.sitemaps.org", "sitemaps.org")
    ),
)
"""The Sitemap namespace and the spellings of it that are met in the wild."""

RS_NAMESPACES: Final = (RS_NS, "https://www.openarchives.org/rs/terms/")

P0_NAMESPACES: Final = ("http://resourcesync.org/ns/", "http://resourcesync.org/schemas/resync/0.9")
P2_NAMESPACE: Final = "http://www.openarchives.org/rs/"
ALL_RS_NAMESPACES: Final = (*RS_NAMESPACES, *P0_NAMESPACES, P2_NAMESPACE)
"""The ResourceSync namespace, its other spelling, and those of the drafts."""

ROOTS: Final = {
    f"{namespace}{SEPARATOR}{local}": local == "sitemapindex"
    for namespace in SITEMAP_NAMESPACES
    for local in ("urlset", "sitemapindex")
} | {"urlset": False, "sitemapindex": True}
"""The root elements, and whether each is an index; in no namespace, too."""


_OURS: Final = {
    "md": MD,
    "ln": LN,
    "size": SIZE,
    "fixity": FIXITY,
    "md5": MD5,
    "eventtype": EVENT,
    "expires": EXPIRES,
}


@cache
def marks(*, is_index: bool, is_bare: bool = False) -> Mapping[str, int]:
    """Return the number of each element that matters under such a root.

    Args:
        is_index: True if it is a ``sitemapindex``.
        is_bare: True if it is in no namespace; then its elements are in none, too.
    """
    sitemap: dict[str, int] = {
        "url": MISPLACED if is_index else ENTRY,
        "sitemap": ENTRY if is_index else MISPLACED,
        "loc": LOC,
        "lastmod": LASTMOD,
        "changefreq": CHANGEFREQ,
        "priority": PRIORITY,
        "expires": EXPIRES,
    }
    found = {
        f"{namespace}{SEPARATOR}{local}": mark
        for namespace in SITEMAP_NAMESPACES
        for local, mark in sitemap.items()
    }
    found.update(
        (f"{namespace}{SEPARATOR}{local}", mark)
        for namespace in ALL_RS_NAMESPACES
        for local, mark in _OURS.items()
    )
    if is_bare:
        found |= sitemap
    return found


MAX_TOKEN: Final = 65_536
"""Bytes of one tag or instruction, and characters of one text: no list has as many.

It keeps expat's time linear; comments are split before (see `_blocks`).
"""
MAX_NAMES: Final = 1_000
"""Different element and attribute names: expat keeps each until the end."""
MAX_PREFIXES: Final = 100
"""Different namespace prefixes, for the same reason."""

UTF_ENCODINGS: Final = frozenset({"utf-8", "utf8", "utf-16", "utf-16le", "utf-16be"})
"""Encodings that a declaration may name: UTF-16 has been converted to UTF-8 before."""
CUT_SHORT: Final = frozenset({3, 5, 6, 20})
"""expat's codes for: no element, an unclosed token, half a character, an unclosed CDATA section."""


def new_parser(
    *, on_declaration: Callable[[str, str | None, int], None], on_doctype: Callable[..., None]
) -> pyexpat.XMLParserType:
    """Return a parser that reports names as namespace, `SEPARATOR`, local name.

    Args:
        on_declaration: Called with version, encoding and standalone of the XML declaration.
        on_doctype: Called at the start of a DOCTYPE; it must raise, so that nothing is expanded.
    """
    # The encoding is decided before (see `_octets`); nothing in the document changes it.
    parser = pyexpat.ParserCreate("utf-8", SEPARATOR)
    parser.buffer_text = True
    # Newer expats wait for more bytes before they try a token again; MAX_TOKEN does it for all.
    at_once = getattr(parser, "SetReparseDeferralEnabled", None)
    if at_once is not None:
        at_once(False)  # noqa: FBT003 - expat's signature
    parser.XmlDeclHandler = on_declaration
    parser.StartDoctypeDeclHandler = on_doctype
    return parser


def exceeded_bound(parser: pyexpat.XMLParserType, fed: int) -> tuple[int, str] | None:
    """Return which bound is passed, as limit and what it counts, after ``fed`` bytes in all."""
    if fed - parser.CurrentByteIndex > MAX_TOKEN:
        return MAX_TOKEN, "bytes in one tag"
    if len(parser.intern) > MAX_NAMES:
        return MAX_NAMES, "different names"
    return None
