"""The page of all mirrors: is anything wrong?

How a mirror is told by its Source: a word in the list of mirrors, a card on its own page.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from math import inf
from typing import Final

from resourcesync.destination.reports import MirrorState
from resourcesync.model import formatting
from resourcesync.server.dashboard.charts import spark
from resourcesync.server.dashboard.layout import card, outcome, page, pill, row, sentence, table
from resourcesync.server.dashboard.markup import Markup, Piece, address, tag
from resourcesync.server.dashboard.views import MirrorSummary, PushStatus
from resourcesync.websub.subscription_status import (
    DeliveryFault,
    SubscriptionReport,
    SubscriptionStatus,
)

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


_HEADS: Final = (
    "Mirror",
    "State",
    "#In sync",
    "#Lag",
    "#Resources",
    "#Not here",
    "Changes, 7 days",
    "Last pull",
)
_ORDER: Final = (
    MirrorState.STOPPED,
    MirrorState.FAILING,
    MirrorState.BEHIND,
    MirrorState.NEW,
    MirrorState.SYNCING,
    MirrorState.IN_SYNC,
)


def mirrors_page(mirrors: Sequence[MirrorSummary], now: datetime) -> str:
    """Return the page; the worst mirror comes first."""
    ordered = sorted(mirrors, key=_badness)
    heads = _heads(mirrors)
    rows = [part for it in ordered for part in _rows(it, now, heads)]
    body: Piece = tag("div", table(heads, rows), class_="card")
    if not mirrors:
        body = tag("p", "No mirrors are kept here yet.", class_="card")
    head = tag("h1", "Mirrors")
    return page(
        "Mirrors", head, tag("p", _summary(ordered), class_="muted"), body, now=now, here="Mirrors"
    )


def _heads(mirrors: Sequence[MirrorSummary]) -> tuple[str, ...]:
    """Return the heads of the columns; those that say nothing of any mirror are left out."""
    more = {
        "Next pull": any(it.next_attempt for it in mirrors),
        "Notified": any(it.push is not None for it in mirrors),
    }
    return (*_HEADS, *(head for head, is_known in more.items() if is_known))


def _badness(it: MirrorSummary) -> tuple[bool, int, float, str]:
    lag = inf if it.lag is None else it.lag
    return not it.error, _ORDER.index(it.status.state), -lag, it.name


def _summary(mirrors: Sequence[MirrorSummary]) -> str:
    unread = sum(bool(it.error) for it in mirrors)
    counts = Counter(it.status.state for it in mirrors if not it.error)
    parts = [f"{number} {state.value}" for state in _ORDER if (number := counts[state])]
    parts = [f"{unread} cannot be read", *parts] if unread else parts
    return f"{formatting.counted(len(mirrors), 'mirror')}: {', '.join(parts)}." if parts else ""


def _rows(it: MirrorSummary, now: datetime, heads: Sequence[str]) -> Iterator[Markup]:
    if it.error:
        cells: list[Piece] = [tag("strong", it.name), outcome(is_good=False, word="not readable")]
        yield row(heads, [*cells, *["-"] * (len(heads) - len(cells))])
    else:
        more = {"Next pull": it.next_attempt or "-", "Notified": push_status(it.push)}
        shown = [more[head] for head in heads[len(_HEADS) :]]
        yield row(heads, [*_cells(it, now), *shown])
    notes = it.notes or ((it.error,) if it.error else ())
    if notes:
        said = [tag("span", sentence(note), " ") for note in _first_notes(notes)]
        yield tag("tr", tag("td", said, colspan=len(heads)), class_="note")


def _first_notes(notes: Sequence[str]) -> Sequence[str]:
    """Return the first note, and the one that says what to do."""
    fix = next((it for it in notes[1:] if "resourcesync " in it or it.startswith("next")), None)
    return notes[:1] if fix is None else (notes[0], fix)


def _cells(it: MirrorSummary, now: datetime) -> Iterator[Piece]:
    status = it.status
    yield tag("a", tag("strong", it.name), href=address("mirror", name=it.name))
    yield pill(status.state)
    yield share(it)
    lag = "-" if it.lag is None else formatting.age(it.lag)
    is_late = it.max_lag is not None and (it.lag is None or it.lag > it.max_lag)
    yield tag("span", lag, class_="state bad") if is_late else lag
    yield formatting.count(status.resources)
    yield formatting.count(status.pending)
    yield spark(it.days, "Changes of the last 7 days")
    ran = status.last_run
    yield "never" if ran is None else f"{formatting.age((now - ran).total_seconds())} ago"


def share(it: MirrorSummary) -> str:
    """Return which share is right, of what is listed or to be deleted, where that is known."""
    every = it.listed + it.status.held
    is_given = not it.status.absent + it.status.skipped
    is_known = every > 0 or (it.status.state is MirrorState.IN_SYNC and is_given)
    return formatting.share(it.right, every) if is_known and it.status.is_counted else "-"
