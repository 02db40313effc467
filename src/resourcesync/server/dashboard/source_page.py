"""The page of a Source: what do others see?

The page Explore: the documents of a Source as a tree, with what each of them holds.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from resourcesync.model import formatting
from resourcesync.model.timestamps import from_microseconds
from resourcesync.ports.subscriptions import TopicSubscriber
from resourcesync.server.dashboard.charts import Plot, Series, bars, integer_marks
from resourcesync.server.dashboard.layout import (
    INTERVALS,
    PAGES,
    advice,
    card,
    fact_table,
    interval_name,
    outcome,
    page,
    row,
    table,
    window_links,
)
from resourcesync.server.dashboard.markup import Markup, Piece, address, tag
from resourcesync.server.dashboard.views import (
    DocumentFile,
    DocumentTree,
    ExplorableSource,
    SourceView,
    TreeItem,
    ValidationStatus,
)

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


_MENU: Final = (("Source", "./"), ("Explore", "explore"), ("Figures", "metrics"))
_LISTENING_HEADS: Final = ("Subscriber", "Channel", "Until", "State")
_HEADS: Final = ("Document", "#Size", "#Age", "Written")


def source_page(it: SourceView) -> str:
    """Return the page."""
    documents = [row(_HEADS, list(_document(one, it))) for one in it.documents]
    title = tag("div", tag("h1", it.overview.address), window_links("./", it.days), class_="title")
    offers = card(fact_table(it.overview.lists), title="What it offers")
    return page(
        "Source",
        title,
        _numbers(it),
        tag("div", card(_rate(it)), offers, class_="plots"),
        _validation(it.validated),
        _subscribers(it),
        card(table(_HEADS, documents), title="Documents"),
        card(fact_table(_figures(it)), title="What its server counts"),
        now=it.now,
        here="Source",
        menu=_MENU,
    )


def validating_page(it: ValidationStatus) -> str:
    """Return the page of a validation that goes on, or came to no end."""
    return page(
        "Validation",
        tag("h1", "Validation"),
        _validation(it),
        now=it.now,
        here="Source",
        menu=_MENU,
    )


def explored_page(it: DocumentTree) -> str:
    """Return the page of its documents."""
    return explore_page(it, _MENU)


def _numbers(it: SourceView) -> Markup:
    overview = it.overview
    written = max((one.written for one in it.documents), default=None)
    ago = None if written is None else (it.now - written).total_seconds()
    shown = (
        ("Resources", "-" if overview.resources is None else formatting.count(overview.resources)),
        ("Changes", "-" if overview.changes is None else formatting.count(overview.changes)),
        ("Published", "never" if ago is None else f"{formatting.age(ago)} ago"),
        ("Documents", formatting.count(len(it.documents))),
        ("Their size", formatting.size(sum(one.size for one in it.documents))),
    )
    return tag(
        "dl",
        [
            tag("div", tag("dt", name), tag("dd", tag("span", value, class_="value")))
            for name, value in shown
        ],
        class_="numbers",
    )


def _rate(it: SourceView) -> Markup:
    series = [Series(name=kind, values=values) for kind, values in it.changes]
    plot = Plot(
        title=f"Changes per {interval_name(it.days)}",
        since=it.since,
        step=INTERVALS[it.days],
        series=tuple(series),
        form=lambda value: formatting.count(round(value)),
        marks=integer_marks,
    )
    return bars(plot)


def _subscribers(it: SourceView) -> Markup | None:
    if it.subscribers is None:
        return None
    rows = [row(_LISTENING_HEADS, list(_listening(one))) for one in it.subscribers]
    more = it.subscribed - len(it.subscribers)
    rest = (
        tag("p", f"And {formatting.counted(more, 'other')}.", class_="muted") if more > 0 else None
    )
    body: Piece = (table(_LISTENING_HEADS, rows), rest) if rows else "Nobody is subscribed."
    return card(body, title="Subscribers")


def _listening(it: TopicSubscriber) -> Iterator[Piece]:
    yield tag("strong", it.origin)
    yield it.topic.rpartition("/")[2] or it.topic
    yield formatting.moment(from_microseconds(it.expires))
    if it.attempts:
        failed = formatting.counted(it.attempts, "delivery", "deliveries")
        yield outcome(is_good=False, word=f"{failed} failed")
    elif it.has_pending_delivery:
        yield tag("span", "is being told", class_="state calm")
    else:
        yield outcome(is_good=True, word="has all")


def _validation(it: ValidationStatus) -> Markup:
    return card([tag("p", part) for part in _judged(it)], title="Validation")


def _judged(it: ValidationStatus) -> Iterator[Piece]:
    if it.ended is not None:
        word = outcome(is_good=it.is_good, word="no error" if it.is_good else "not good")
        yield word, f" {it.error or it.summary}"
        stale = " The documents have changed since." if it.is_stale else ""
        yield f"Judged {formatting.moment(it.ended)}.{stale}"
    if it.is_running:
        many = formatting.counted(it.documents, "document")
        yield (
            f"The documents are being judged: {many} so far. ",
            tag("a", "Look again", href="validate"),
        )
    elif it.ended is None:
        yield "The documents were not judged since this service began. ", _link("Validate them")
    elif it.is_stale:
        yield _link("Validate them again")
    else:
        again = tag("a", "Validate again", href=address("validate", again=1))
        yield again if it.error else (_link("The findings"), " · ", again)


def _link(text: str) -> Markup:
    return tag("a", text, href="validate")


def _document(one: DocumentFile, it: SourceView) -> Iterator[Piece]:
    yield one.name
    yield formatting.size(one.size)
    yield formatting.age((it.now - one.written).total_seconds())
    yield formatting.moment(one.written)


def _figures(it: SourceView) -> Iterator[tuple[str, Piece]]:
    for figure in it.figures:
        for labels, value in figure.values:
            named = ", ".join(f"{name} {text}" for name, text in labels)
            yield (
                figure.help_text + (f" ({named})" if named else ""),
                f"{value:,.6g}" if value % 1 else (formatting.count(int(value))),
            )
