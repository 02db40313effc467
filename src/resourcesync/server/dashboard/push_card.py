"""The push subscriptions of a mirror: a word in the list of mirrors, a card on its page."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from resourcesync.model import formatting
from resourcesync.server.dashboard import layout
from resourcesync.server.dashboard.markup import Markup, Piece, tag
from resourcesync.server.dashboard.views import PushStatus
from resourcesync.websub.subscription_status import SubscriptionReport, SubscriptionStatus

_HEADS: Final = ("Channel", "State", "Until", "Last delivery", "#Accepted", "#Refused")
_LOOKS: Final = {
    SubscriptionStatus.REFUSED: "bad",
    SubscriptionStatus.PENDING: "warn",
    SubscriptionStatus.VERIFIED: "good",
}
"""The colours of the states, the worst first."""


def push_label(push: PushStatus | None) -> Piece:
    """Return a word for the state of a mirror's subscriptions: the worst of them."""
    if push is None:
        return "-"
    found = {subscription.status for subscription in push.subscriptions}
    worst = next((status for status in _LOOKS if status in found), None)
    if worst is not None:
        return _status_label(worst)
    return tag("span", "not offered" if push.is_known else "not yet", class_="muted")


def push_card(push: PushStatus | None, now: datetime) -> Markup | None:
    """Return a card with a mirror's subscriptions; ``None`` when it is only polled."""
    if push is None:
        return None
    if not push.subscriptions:
        why = "The Source offers no channel of notifications. It is polled."
        if not push.is_known:
            why = "The Source's channels are not known yet: the next pull reads them."
        return layout.card(tag("p", why), title="Notifications")
    rows = [part for report in push.subscriptions for part in _rows(report, now)]
    return layout.card(layout.table(_HEADS, rows), title="Notifications")


def _status_label(status: SubscriptionStatus) -> Markup:
    return layout.label(
        "on" if status is SubscriptionStatus.VERIFIED else status.value, _LOOKS[status]
    )


def _rows(report: SubscriptionReport, now: datetime) -> Iterator[Markup]:
    yield layout.row(
        _HEADS,
        (
            tag("strong", report.topic),
            _status_label(report.status),
            "-" if report.until is None else layout.time_tag(report.until),
            "none" if report.last is None else layout.ago(report.last, now),
            formatting.count(report.accepted),
            formatting.count(report.refused),
        ),
    )
    faults = [f"{formatting.count(number)} {fault.value}" for fault, number in report.refusals]
    notes = (
        f"at the hub {report.hub}.",
        f"{report.reason}." if report.reason else "",
        f"refused deliveries: {', '.join(faults)}." if faults else "",
    )
    yield layout.note_row(_HEADS, *(layout.sentence(note) for note in notes if note))
