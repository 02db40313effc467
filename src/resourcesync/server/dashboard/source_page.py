"""The page of a Source: what do others see?"""

from collections.abc import Iterator
from typing import Final

from resourcesync.model import wording
from resourcesync.server.dashboard.explore_page import explore_page
from resourcesync.server.dashboard.layout import card, facts, page, row, table
from resourcesync.server.dashboard.markup import Markup, Piece, tag
from resourcesync.server.dashboard.views import Document, Explored, SourceView

_MENU: Final = (("Source", "./"), ("Explore", "explore"), ("Figures", "metrics"))
_HEADS: Final = ("Document", "#Size", "#Age", "Written")


def source_page(it: SourceView) -> str:
    """Return the page."""
    documents = [row(_HEADS, list(_document(one, it))) for one in it.documents]
    offered = facts(it.overview.lists)
    return page(
        "Source",
        tag("h1", it.overview.address),
        _numbers(it),
        card(offered, title="What it offers"),
        card(table(_HEADS, documents), title="Documents"),
        card(facts(_figures(it)), title="What its server counts"),
        now=it.now,
        here="Source",
        menu=_MENU,
    )


def explored_page(it: Explored) -> str:
    """Return the page of its documents."""
    return explore_page(it, _MENU)


def _numbers(it: SourceView) -> Markup:
    overview = it.overview
    written = max((one.written for one in it.documents), default=None)
    ago = None if written is None else (it.now - written).total_seconds()
    shown = (
        ("Resources", "-" if overview.resources is None else wording.count(overview.resources)),
        ("Changes", "-" if overview.changes is None else wording.count(overview.changes)),
        ("Published", "never" if ago is None else f"{wording.age(ago)} ago"),
        ("Documents", wording.count(len(it.documents))),
        ("Their size", wording.size(sum(one.size for one in it.documents))),
    )
    return tag(
        "dl",
        [
            tag("div", tag("dt", name), tag("dd", tag("span", value, class_="value")))
            for name, value in shown
        ],
        class_="numbers",
    )


def _document(one: Document, it: SourceView) -> Iterator[Piece]:
    yield one.name
    yield wording.size(one.size)
    yield wording.age((it.now - one.written).total_seconds())
    yield wording.moment(one.written)


def _figures(it: SourceView) -> Iterator[tuple[str, Piece]]:
    for figure in it.figures:
        for labels, value in figure.values:
            named = ", ".join(f"{name} {text}" for name, text in labels)
            yield (
                figure.what + (f" ({named})" if named else ""),
                f"{value:,.6g}" if value % 1 else (wording.count(int(value))),
            )
