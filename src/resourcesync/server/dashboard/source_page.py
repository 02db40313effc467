"""The page of a Source: how much it offers, its documents, and the subscribers of its hub."""

from collections.abc import Iterator
from typing import Final

from resourcesync.model import formatting
from resourcesync.model.timestamps import from_microseconds
from resourcesync.push_state.rows import TopicSubscriber
from resourcesync.server.dashboard import layout
from resourcesync.server.dashboard.markup import Markup, Piece, tag
from resourcesync.server.dashboard.views import SourceView

HOME: Final = "Source"
_SUBSCRIBER_HEADS: Final = ("Subscriber", "Channel", "Until", "State")
_HEADS: Final = ("Document", "#Size", "Written")


def source_page(view: SourceView) -> str:
    """Return the page."""
    documents = (
        (file.name, formatting.size(file.size), layout.ago(file.written, view.now))
        for file in view.documents
    )
    return layout.page(
        HOME,
        tag("h1", view.address),
        layout.numbers(_numbers(view)),
        _subscribers(view),
        layout.rows_card("Documents", _HEADS, documents),
        tag("p", tag("a", "Metrics", href="metrics")),
        now=view.now,
        home=HOME,
        is_live=True,
    )


def _numbers(view: SourceView) -> Iterator[tuple[str, str, Piece]]:
    yield "Resources", "-" if view.resources is None else formatting.count(view.resources), None
    yield "Changes", "-" if view.changes is None else formatting.count(view.changes), None
    written = max((file.written for file in view.documents), default=None)
    yield "Published", "never" if written is None else formatting.moment(written), None
    size = formatting.size(sum(file.size for file in view.documents))
    yield "Documents", formatting.count(len(view.documents)), size


def _subscribers(view: SourceView) -> Markup | None:
    if view.subscribers is None:
        return None
    rows = [layout.row(_SUBSCRIBER_HEADS, _subscriber(found)) for found in view.subscribers]
    more = view.subscribed - len(rows)
    rest = f"And {formatting.counted(more, 'other')}." if more > 0 else None
    body: Piece = (
        (layout.table(_SUBSCRIBER_HEADS, rows), rest) if rows else "There are no subscribers."
    )
    return layout.card(body, title="Subscribers")


def _subscriber(found: TopicSubscriber) -> Iterator[Piece]:
    yield tag("strong", found.origin)
    yield found.topic.rpartition("/")[2] or found.topic
    yield layout.time_tag(from_microseconds(found.expires))
    if found.attempts:
        failed = formatting.counted(found.attempts, "delivery", "deliveries")
        yield layout.label(f"{failed} failed", "bad")
    elif found.has_pending_delivery:
        yield layout.label("delivery pending", "calm")
    else:
        yield layout.label("up to date", "good")
