"""The page of all mirrors, and the state of their push subscriptions.

Push is a word in the list of mirrors, and a card on the mirror's own page.
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
    return tag("span", standing.value, class_=f"state {_STATUS_CLASSES[standing]}")


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
    yield "-" if report.until is None else formatting.moment(report.until)
    yield (
        "none"
        if report.last is None
        else f"{formatting.age((now - report.last).total_seconds())} ago"
    )
    yield formatting.count(report.accepted)
    yield formatting.count(report.refused)


_HEADS: Final = (
    "Mirror",
    "State",
    "#In sync",
    "#Lag",
    "#Resources",
    "#Pending",
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
    rows = [part for summary in ordered for part in _rows(summary, now, heads)]
    body: Piece = tag("div", table(heads, rows), class_="card")
    if not mirrors:
        body = tag("p", "There are no mirrors yet.", class_="card")
    head = tag("h1", "Mirrors")
    return page(
        "Mirrors", head, tag("p", _summary(ordered), class_="muted"), body, now=now, here="Mirrors"
    )


def _heads(mirrors: Sequence[MirrorSummary]) -> tuple[str, ...]:
    """Return the headings of the columns; those without a value for any mirror are left out."""
    more = {
        "Next pull": any(mirror.next_pull for mirror in mirrors),
        "Notified": any(mirror.push is not None for mirror in mirrors),
    }
    return (*_HEADS, *(head for head, is_known in more.items() if is_known))


def _badness(summary: MirrorSummary) -> tuple[bool, int, float, str]:
    lag = inf if summary.lag is None else summary.lag
    return not summary.error, _ORDER.index(summary.status.state), -lag, summary.name


def _summary(mirrors: Sequence[MirrorSummary]) -> str:
    unread = sum(bool(mirror.error) for mirror in mirrors)
    counts = Counter(mirror.status.state for mirror in mirrors if not mirror.error)
    parts = [f"{number} {state.value}" for state in _ORDER if (number := counts[state])]
    parts = [f"{unread} cannot be read", *parts] if unread else parts
    return f"{formatting.counted(len(mirrors), 'mirror')}: {', '.join(parts)}." if parts else ""


def _rows(summary: MirrorSummary, now: datetime, heads: Sequence[str]) -> Iterator[Markup]:
    if summary.error:
        cells: list[Piece] = [
            tag("strong", summary.name),
            outcome(is_good=False, word="not readable"),
        ]
        yield row(heads, [*cells, *["-"] * (len(heads) - len(cells))])
    else:
        more = {"Next pull": summary.next_pull or "-", "Notified": push_status(summary.push)}
        shown = [more[head] for head in heads[len(_HEADS) :]]
        yield row(heads, [*_cells(summary, now), *shown])
    notes = summary.notes or ((summary.error,) if summary.error else ())
    if notes:
        sentences = [tag("span", sentence(note), " ") for note in _first_notes(notes)]
        yield tag("tr", tag("td", sentences, colspan=len(heads)), class_="note")


def _first_notes(notes: Sequence[str]) -> Sequence[str]:
    """Return the first note, and the one with the remedy."""
    fix = next(
        (note for note in notes[1:] if "resourcesync " in note or note.startswith("next")), None
    )
    return notes[:1] if fix is None else (notes[0], fix)


def _cells(summary: MirrorSummary, now: datetime) -> Iterator[Piece]:
    status = summary.status
    yield tag("a", tag("strong", summary.name), href=address("mirror", name=summary.name))
    yield pill(status.state)
    yield share(summary)
    lag = "-" if summary.lag is None else formatting.age(summary.lag)
    is_late = summary.max_lag is not None and (summary.lag is None or summary.lag > summary.max_lag)
    yield tag("span", lag, class_="state bad") if is_late else lag
    yield formatting.count(status.resources)
    yield formatting.count(status.pending)
    yield spark(summary.days, "Changes of the last 7 days")
    ran = status.last_run
    yield "never" if ran is None else f"{formatting.age((now - ran).total_seconds())} ago"


def share(summary: MirrorSummary) -> str:
    """Return the share that is in sync, of listed and deleted resources, where it is known."""
    every = summary.listed + summary.status.held
    is_given = not summary.status.absent + summary.status.skipped
    is_known = every > 0 or (summary.status.state is MirrorState.IN_SYNC and is_given)
    return formatting.share(summary.right, every) if is_known and summary.status.is_counted else "-"
