"""The state of a mirror's push subscriptions: a word in the list of mirrors, a card on its page."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from resourcesync.model import formatting
from resourcesync.server.dashboard.layout import ago, card, row, sentence, table, time_tag
from resourcesync.server.dashboard.markup import Markup, Piece, tag
from resourcesync.server.dashboard.views import PushStatus
from resourcesync.websub.subscription_status import (
    DeliveryFault,
    SubscriptionReport,
    SubscriptionStatus,
)

_PUSH_HEADS: Final = ("Channel", "State", "Until", "Last delivery", "#Accepted", "#Refused")
_WORST_FIRST: Final = (
    SubscriptionStatus.REFUSED,
    SubscriptionStatus.PENDING,
    SubscriptionStatus.ENDING,
    SubscriptionStatus.VERIFIED,
)
_STATUS_CLASSES: Final = {
    SubscriptionStatus.VERIFIED: "good",
    SubscriptionStatus.PENDING: "warn",
    SubscriptionStatus.REFUSED: "bad",
    SubscriptionStatus.ENDING: "calm",
}
_FAULTS: Final = {
    DeliveryFault.SIGNATURE: "without a valid signature",
    DeliveryFault.SIZE: "too long",
    DeliveryFault.BODY: "cut short or too slow",
}


def push_status(push: PushStatus | None) -> Piece:
    """Return a word for the state of a mirror's push subscriptions."""
    if push is None:
        return "-"
    found = {subscription.status for subscription in push.subscriptions}
    worst = next((status for status in _WORST_FIRST if status in found), None)
    if worst is not None:
        return _status_pill(worst)
    return tag("span", "not offered" if push.is_known else "not yet", class_="muted")


def push_card(push: PushStatus | None, now: datetime) -> Markup | None:
    """Return a card with a mirror's subscriptions; ``None`` when it is only polled."""
    if push is None:
        return None
    if push.subscriptions:
        rows = [
            part
            for subscription in push.subscriptions
            for part in _subscription_rows(subscription, now)
        ]
        return card(table(_PUSH_HEADS, rows), title="Notifications")
    why = "The Source offers no channel of notifications. It is polled."
    if not push.is_known:
        why = "The Source's channels are not known yet: the next pull reads them."
    return card(tag("p", why), title="Notifications")


def _status_pill(standing: SubscriptionStatus) -> Markup:
    word = "on" if standing is SubscriptionStatus.VERIFIED else standing.value
    return tag("span", word, class_=f"state {_STATUS_CLASSES[standing]}")


def _subscription_rows(report: SubscriptionReport, now: datetime) -> Iterator[Markup]:
    yield row(_PUSH_HEADS, list(_subscription_cells(report, now)))
    sentences = [f"at the hub {report.hub}."]
    if report.reason:
        sentences.append(f"{report.reason}.".replace("?.", "?"))
    if report.refused:
        faults = [
            f"{formatting.count(number)} {_FAULTS[fault]}"
            for fault, number in report.refusals
            if fault in _FAULTS
        ]
        sentences.append(f"refused: {', '.join(faults)}.")
    if report.late:
        sentences.append(
            f"{formatting.count(report.late)} sent to a former callback, as after a renewal."
        )
    drawn = [tag("span", sentence(note), " ") for note in sentences]
    yield tag("tr", tag("td", drawn, colspan=len(_PUSH_HEADS)), class_="note")


def _subscription_cells(report: SubscriptionReport, now: datetime) -> Iterator[Piece]:
    yield tag("strong", report.topic)
    yield _status_pill(report.status)
    yield "-" if report.until is None else time_tag(report.until)
    yield "none" if report.last is None else ago(report.last, now)
    yield formatting.count(report.accepted)
    yield formatting.count(report.refused)
