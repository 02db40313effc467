"""The pages of a Source: overview, validation, and its documents as a tree (Explore)."""

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
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
    time_tag,
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
"""Numbers of levels that can be chosen; the first is the default."""

_NAMES: Final = {3: "lists", 4: "parts and packages", 5: "manifests", 8: "all"}
_EXPLORE_HEADS: Final = ("Name", "Kind", "Address")


def sources_page(sources: Sequence[ExplorableSource], now: datetime) -> str:
    """Return the page that lists the Sources to explore."""
    rows = [
        row(
            _EXPLORE_HEADS,
            [
                tag("a", tag("strong", source.name), href=address("explore", name=source.name)),
                source.kind,
                source.address,
            ],
        )
        for source in sources
    ]
    body: Piece = table(_EXPLORE_HEADS, rows) if rows else "There is no Source to explore."
    lead = "The documents of a Source as a tree. They are read on request."
    return page(
        "Explore",
        tag("h1", "Explore"),
        tag("p", lead, class_="muted"),
        card(body),
        now=now,
        here="Explore",
    )


def explore_page(document_tree: DocumentTree, menu: Sequence[tuple[str, str]] = PAGES) -> str:
    """Return the page of one Source."""
    head = tag(
        "div",
        tag("h1", document_tree.name or document_tree.address),
        _depth_links(document_tree),
        class_="title",
    )
    tree = (
        card(_tree_level(deque(document_tree.found), 1, document_tree.address), title="Documents")
        if document_tree.found
        else None
    )
    summary = f"{document_tree.summary}. " if document_tree.summary else ""
    read = f"Read {formatting.moment(document_tree.read_at)}."
    return page(
        f"Explore {document_tree.name or document_tree.address}",
        head,
        tag("p", document_tree.address, class_="muted") if document_tree.name else None,
        tag("p", summary + read, class_="muted"),
        advice(document_tree.notes, is_bad=not document_tree.found),
        tree,
        now=document_tree.read_at,
        here="Explore",
        menu=menu,
    )


def _depth_links(tree: DocumentTree) -> Markup:
    links = [
        tag(
            "a",
            _NAMES[depth],
            href=address("explore", **({"name": tree.name} if tree.name else {}), depth=depth),
            aria_current="true" if depth == tree.depth else None,
        )
        for depth in DEPTHS
    ]
    return tag("nav", links, class_="choice", aria_label="Levels")


def _tree_level(waiting: deque[TreeItem], depth: int, base: str) -> Markup:
    """Return the items of one level, each with those below it."""
    items = []
    while waiting and waiting[0].depth >= depth:
        tree_item = waiting.popleft()
        below = None
        if waiting and waiting[0].depth > tree_item.depth:
            below = _tree_level(waiting, tree_item.depth + 1, base)
        items.append(tag("li", _tree_item(tree_item, base), below))
    return tag("ul", items, class_="tree")


def _tree_item(tree_item: TreeItem, base: str) -> Piece:
    first, *rest = tree_item.labels or ("",)
    first = first[:1].upper() + first[1:]
    if tree_item.is_total:
        return tag("p", " · ".join(tree_item.labels), class_="muted")
    kind = tag("span", first, class_="state bad") if tree_item.is_bad else tag("strong", first)
    details = fact_table((name[:1].upper() + name[1:], value) for name, value in tree_item.details)
    return (
        tag("p", kind, " ", _document_link(tree_item.uri, base)),
        tag("p", " · ".join(rest), class_="muted") if rest else None,
        tag("details", tag("summary", "Details"), details) if tree_item.details else None,
    )


def _document_link(uri: str, base: str) -> Piece:
    """Return a link, its text without the part in common with the Source's own address."""
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


SOURCE_MENU: Final = (("Source", "./"), ("Explore", "explore"), ("Metrics", "metrics"))
"""The pages of a Source, and their addresses."""
_LISTENING_HEADS: Final = ("Subscriber", "Channel", "Until", "State")
_HEADS: Final = ("Document", "#Size", "#Age", "Written")


def source_page(view: SourceView) -> str:
    """Return the page."""
    documents = [row(_HEADS, list(_document(document, view))) for document in view.documents]
    title = tag(
        "div", tag("h1", view.overview.address), window_links("./", view.days), class_="title"
    )
    offers = card(
        fact_table((item.capability.phrase, item.uri) for item in view.overview.lists),
        title="Capabilities",
    )
    return page(
        "Source",
        title,
        _numbers(view),
        tag("div", card(_rate(view)), offers, class_="plots"),
        _validation(view.validated),
        _subscribers(view),
        card(table(_HEADS, documents), title="Documents"),
        card(fact_table(_figures(view)), title="Server metrics"),
        now=view.now,
        here="Source",
        menu=SOURCE_MENU,
    )


def validating_page(status: ValidationStatus) -> str:
    """Return the page of a validation that is running, or failed."""
    return page(
        "Validation",
        tag("h1", "Validation"),
        _validation(status),
        now=status.now,
        here="Source",
        menu=SOURCE_MENU,
    )


def explored_page(tree: DocumentTree) -> str:
    """Return the page of the Source's documents."""
    return explore_page(tree, SOURCE_MENU)


def _numbers(view: SourceView) -> Markup:
    overview = view.overview
    written = max((document.written for document in view.documents), default=None)
    ago = None if written is None else (view.now - written).total_seconds()
    shown = (
        ("Resources", "-" if overview.resources is None else formatting.count(overview.resources)),
        ("Changes", "-" if overview.changes is None else formatting.count(overview.changes)),
        ("Published", "never" if ago is None else f"{formatting.age(ago)} ago"),
        ("Documents", formatting.count(len(view.documents))),
        ("Size", formatting.size(sum(document.size for document in view.documents))),
    )
    return tag(
        "dl",
        [
            tag("div", tag("dt", name), tag("dd", tag("span", value, class_="value")))
            for name, value in shown
        ],
        class_="numbers",
    )


def _rate(view: SourceView) -> Markup:
    series = [Series(name=kind, values=values) for kind, values in view.changes]
    plot = Plot(
        title=f"Changes per {interval_name(view.days)}",
        since=view.since,
        step=INTERVALS[view.days],
        series=tuple(series),
        form=lambda value: formatting.count(round(value)),
        marks=integer_marks,
    )
    return bars(plot)


def _subscribers(view: SourceView) -> Markup | None:
    if view.subscribers is None:
        return None
    rows = [row(_LISTENING_HEADS, list(_listening(subscriber))) for subscriber in view.subscribers]
    more = view.subscribed - len(view.subscribers)
    rest = (
        tag("p", f"And {formatting.counted(more, 'other')}.", class_="muted") if more > 0 else None
    )
    body: Piece = (table(_LISTENING_HEADS, rows), rest) if rows else "There are no subscribers."
    return card(body, title="Subscribers")


def _listening(subscriber: TopicSubscriber) -> Iterator[Piece]:
    yield tag("strong", subscriber.origin)
    yield subscriber.topic.rpartition("/")[2] or subscriber.topic
    yield formatting.moment(from_microseconds(subscriber.expires))
    if subscriber.attempts:
        failed = formatting.counted(subscriber.attempts, "delivery", "deliveries")
        yield outcome(is_good=False, word=f"{failed} failed")
    elif subscriber.has_pending_delivery:
        yield tag("span", "delivery pending", class_="state calm")
    else:
        yield outcome(is_good=True, word="up to date")


def _validation(status: ValidationStatus) -> Markup:
    return card([tag("p", part) for part in _judged(status)], title="Validation")


def _judged(status: ValidationStatus) -> Iterator[Piece]:
    if status.ended is not None:
        word = outcome(is_good=status.is_good, word="no error" if status.is_good else "errors")
        yield word, f" {status.error or status.summary}"
        stale = " The documents have changed since." if status.is_stale else ""
        yield f"Validated {formatting.moment(status.ended)}.{stale}"
    if status.is_running:
        many = formatting.counted(status.documents, "document")
        yield (
            f"The documents are being validated: {many} so far. ",
            tag("a", "Reload", href="validate"),
        )
    elif status.ended is None:
        yield "Not validated since this service started. ", _link("Validate the documents")
    elif status.is_stale:
        yield _link("Validate them again")
    else:
        again = tag("a", "Validate again", href=address("validate", again=1))
        yield again if status.error else (_link("The findings"), " · ", again)


def _link(text: str) -> Markup:
    return tag("a", text, href="validate")


def _document(file: DocumentFile, view: SourceView) -> Iterator[Piece]:
    yield file.name
    yield formatting.size(file.size)
    yield formatting.age((view.now - file.written).total_seconds())
    yield formatting.moment(file.written)


def _figures(view: SourceView) -> Iterator[tuple[str, Piece]]:
    for figure in view.figures:
        for labels, value in figure.values:
            named = ", ".join(f"{name} {text}" for name, text in labels)
            label = figure.help_text.partition(";")[0].rstrip(".")
            yield label + (f" ({named})" if named else ""), _figure_text(figure.name, value)


def _figure_text(name: str, value: float) -> Piece:
    """Return the value of a metric in the unit that its name ends with."""
    unit = name.removesuffix("_total").rpartition("_")[2]
    if unit == "bytes":
        return formatting.size(round(value))
    if name.endswith("_timestamp_seconds"):
        return time_tag(datetime.fromtimestamp(value, UTC)) if value else "never"
    if unit == "seconds":
        return formatting.duration(value)
    return f"{value:,.6g}" if value % 1 else formatting.count(int(value))
