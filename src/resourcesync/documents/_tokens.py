"""The alphabet between the XML parser and the entries.

A document becomes a flat list of tokens, so that most of the work is C code appending to a list:

- an entry starts with ``ENTRY``, its line and its column;
- any other element that matters starts with its number; ``MD`` and ``LN`` are followed by how many
  strings their attributes take, and then by these: name, value, name, value...;
- an element ends with its name, which holds a character that XML text cannot;
- everything else is text.

Elements that do not matter leave no tokens.
"""

from typing import Final

from resourcesync.model.vocabulary import RS_NS, SITEMAP_NS

SEPARATOR: Final = "\x1f"
"""Stands between namespace and local name; XML cannot carry it, so no text looks like a name."""

Token = str | int | None

ENTRY: Final = None
LOC: Final = 1
LASTMOD: Final = 2
CHANGEFREQ: Final = 3
PRIORITY: Final = 4
MD: Final = 5
LN: Final = 6
MISPLACED: Final = 7
"""A ``sitemap`` in a ``urlset`` or the other way round; followed by its place as ``ENTRY`` is."""

SITEMAP_NAMESPACES: Final = (
    SITEMAP_NS,
    "https://www.sitemaps.org/schemas/sitemap/0.9",
    "http://www.google.com/schemas/sitemap/0.84",
)
"""The Sitemap namespace and the spellings of it that are met in the wild."""

RS_NAMESPACES: Final = (RS_NS, "https://www.openarchives.org/rs/terms/")

ROOTS: Final = {
    f"{namespace}{SEPARATOR}{local}": local == "sitemapindex"
    for namespace in SITEMAP_NAMESPACES
    for local in ("urlset", "sitemapindex")
}
"""The root elements, and whether each is an index."""


def marks(*, is_index: bool) -> dict[str, int | None]:
    """Return the token that starts each element that matters under such a root."""
    sitemap: dict[str, int | None] = {
        "url": MISPLACED if is_index else ENTRY,
        "sitemap": ENTRY if is_index else MISPLACED,
        "loc": LOC,
        "lastmod": LASTMOD,
        "changefreq": CHANGEFREQ,
        "priority": PRIORITY,
    }
    found = {
        f"{namespace}{SEPARATOR}{local}": mark
        for namespace in SITEMAP_NAMESPACES
        for local, mark in sitemap.items()
    }
    for namespace in RS_NAMESPACES:
        found[f"{namespace}{SEPARATOR}md"] = MD
        found[f"{namespace}{SEPARATOR}ln"] = LN
    return found
