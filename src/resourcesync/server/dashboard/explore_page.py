"""The page Explore: the documents of a Source as a tree, with what each of them holds."""

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from resourcesync.model import formatting
from resourcesync.server.dashboard.layout import (
    PAGES,
    advice,
    card,
    fact_table,
    page,
    row,
    table,
)
from resourcesync.server.dashboard.markup import Markup, Piece, address, tag
from resourcesync.server.dashboard.views import DocumentTree, ExplorableSource, TreeItem

DEPTHS: Final = (3, 4, 5, 8)
"""Levels of documents that can be chosen; the first is the usual one."""

_NAMES: Final = {3: "lists", 4: "parts and packages", 5: "manifests", 8: "all"}
_EXPLORE_HEADS: Final = ("Name", "What", "Source")


def sources_page(sources: Sequence[ExplorableSource], now: datetime) -> str:
    """Return the page that asks which Source is to be looked at."""
    rows = [
        row(
            _EXPLORE_HEADS,
            [
                tag("a", tag("strong", it.name), href=address("explore", name=it.name)),
                it.kind,
                it.address,
            ],
        )
        for it in sources
    ]
    body: Piece = table(_EXPLORE_HEADS, rows) if rows else "There is no Source here to look at."
    lead = "The documents of a Source as a tree. They are read when you ask for them."
    return page(
        "Explore",
        tag("h1", "Explore"),
        tag("p", lead, class_="muted"),
        card(body),
        now=now,
        here="Explore",
    )


def explore_page(it: DocumentTree, menu: Sequence[tuple[str, str]] = PAGES) -> str:
    """Return the page of one Source.

    Args:
        it: The Source, and what was found.
        menu: The other pages.
    """
    head = tag("div", tag("h1", it.name or it.address), _depth_links(it), class_="title")
    tree = (
        card(_tree_level(deque(it.found), 1, it.address), title="Documents") if it.found else None
    )
    said = f"{it.summary}. " if it.summary else ""
    read = f"Read {formatting.moment(it.read_at)}."
    return page(
        f"Explore {it.name or it.address}",
        head,
        tag("p", it.address, class_="muted") if it.name else None,
        tag("p", said + read, class_="muted"),
        advice(it.notes, is_bad=not it.found),
        tree,
        now=it.read_at,
        here="Explore",
        menu=menu,
    )


def _depth_links(it: DocumentTree) -> Markup:
    links = [
        tag(
            "a",
            _NAMES[depth],
            href=address("explore", **({"name": it.name} if it.name else {}), depth=depth),
            aria_current="true" if depth == it.depth else None,
        )
        for depth in DEPTHS
    ]
    return tag("nav", links, class_="choice", aria_label="How far down")


def _tree_level(waiting: deque[TreeItem], depth: int, base: str) -> Markup:
    """Return the places of one level, each with those below it."""
    items = []
    while waiting and waiting[0].depth >= depth:
        one = waiting.popleft()
        below = None
        if waiting and waiting[0].depth > one.depth:
            below = _tree_level(waiting, one.depth + 1, base)
        items.append(tag("li", _tree_item(one, base), below))
    return tag("ul", items, class_="tree")


def _tree_item(one: TreeItem, base: str) -> Piece:
    first, *rest = one.labels or ("",)
    first = first[:1].upper() + first[1:]
    if one.is_total:
        return tag("p", " · ".join(one.labels), class_="muted")
    kind = tag("span", first, class_="state bad") if one.is_bad else tag("strong", first)
    told = fact_table((name[:1].upper() + name[1:], value) for name, value in one.details)
    return (
        tag("p", kind, " ", _document_link(one.uri, base)),
        tag("p", " · ".join(rest), class_="muted") if rest else None,
        tag("details", tag("summary", "All that is known"), told) if one.details else None,
    )


def _document_link(uri: str, base: str) -> Piece:
    """Return an address, without what it has in common with the Source's own."""
    if not uri.startswith(("http://", "https://")):
        return uri.removeprefix(base.rstrip("/"))
    origin = _origin(base)
    is_near = origin and uri.startswith(f"{origin}/")
    return tag("a", uri[len(origin) :] if is_near else uri, href=uri, rel="noreferrer")


def _origin(base: str) -> str:
    try:
        parts = urlsplit(base)
    except ValueError:  # such as http://[
        return ""
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
