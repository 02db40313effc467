"""The page of a Source: what do others see?"""

from collections.abc import Iterator
from typing import Final

from resourcesync.model import formatting
from resourcesync.model.timestamps import from_microseconds
from resourcesync.ports.subscriptions import TopicSubscriber
from resourcesync.server.dashboard.explore_page import explore_page
from resourcesync.server.dashboard.layout import card, fact_table, outcome, page, row, table
from resourcesync.server.dashboard.markup import Markup, Piece, address, tag
from resourcesync.server.dashboard.plots import Plot, Series, bars, integer_marks
from resourcesync.server.dashboard.views import (
    DocumentFile,
    DocumentTree,
    SourceView,
    ValidationStatus,
)
from resourcesync.server.dashboard.windows import INTERVALS, interval_name, window_links

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
