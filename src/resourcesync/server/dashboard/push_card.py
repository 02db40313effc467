"""How a mirror is told by its Source: a word in the list of mirrors, a card on its own page."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from resourcesync.model import formatting
from resourcesync.server.dashboard.layout import card, row, sentence, table
from resourcesync.server.dashboard.markup import Markup, Piece, tag
from resourcesync.server.dashboard.views import PushStatus
from resourcesync.websub.standing import DeliveryFault, SubscriptionReport, SubscriptionStatus

_PUSH_HEADS: Final = ("Channel", "State", "Until", "Last delivery", "#Taken", "#Refused")
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
    DeliveryFault.SIGNATURE: "not signed as agreed",
    DeliveryFault.SIZE: "too long",
    DeliveryFault.BODY: "cut short or too slow",
}


def push_status(push: PushStatus | None) -> Piece:
    """Return in a word whether a mirror's Source tells it of changes."""
    if push is None:
        return "-"
    found = {it.status for it in push.subscriptions}
    worst = next((it for it in _WORST_FIRST if it in found), None)
    if worst is not None:
        return _status_pill(worst)
    return tag("span", "not offered" if push.is_known else "not yet", class_="muted")


def push_card(push: PushStatus | None, now: datetime) -> Markup | None:
    """Return what is known of a mirror's subscriptions; ``None`` when it is only polled."""
    if push is None:
        return None
    if push.subscriptions:
        rows = [part for it in push.subscriptions for part in _subscription_rows(it, now)]
        return card(table(_PUSH_HEADS, rows), title="Notifications")
    why = "The Source offers no channel of notifications. It is polled."
    if not push.is_known:
        why = "The Source has not yet told which channels it offers: that comes with a pull."
    return card(tag("p", why), title="Notifications")


def _status_pill(standing: SubscriptionStatus) -> Markup:
    return tag("span", standing.value, class_=f"state {_STATUS_CLASSES[standing]}")


def _subscription_rows(it: SubscriptionReport, now: datetime) -> Iterator[Markup]:
    yield row(_PUSH_HEADS, list(_subscription_cells(it, now)))
    said = [f"at the hub {it.hub}."]
    if it.reason:
        said.append(f"{it.reason}.".replace("?.", "?"))
    if it.refused:
        faults = [
            f"{formatting.count(number)} {_FAULTS[fault]}"
            for fault, number in it.refusals
            if fault in _FAULTS
        ]
        said.append(f"refused: {', '.join(faults)}.")
    if it.late:
        said.append(f"{formatting.count(it.late)} came to a former callback, as after a renewal.")
    drawn = [tag("span", sentence(note), " ") for note in said]
    yield tag("tr", tag("td", drawn, colspan=len(_PUSH_HEADS)), class_="note")


def _subscription_cells(it: SubscriptionReport, now: datetime) -> Iterator[Piece]:
    yield tag("strong", it.topic)
    yield _status_pill(it.status)
    yield "-" if it.until is None else formatting.moment(it.until)
    yield "none" if it.last is None else f"{formatting.age((now - it.last).total_seconds())} ago"
    yield formatting.count(it.accepted)
    yield formatting.count(it.refused)
