"""The page of one mirror: its state, what keeps it behind, its last pulls and audits."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Final

from resourcesync.destination.audits.reports import AuditRecord
from resourcesync.destination.mirror_health import pending_text
from resourcesync.destination.reports import MirrorState
from resourcesync.mirror_state.rows import PendingCause, PendingTask
from resourcesync.model import formatting
from resourcesync.model.timestamps import from_microseconds
from resourcesync.server.dashboard import layout, views
from resourcesync.server.dashboard.markup import Markup, Piece, tag
from resourcesync.server.dashboard.mirrors_page import (
    HOME,
    failing_text,
    next_pull,
    notes_of,
    state_labels,
)
from resourcesync.server.dashboard.operator_actions import operator_form
from resourcesync.server.dashboard.push_card import push_card

_RUN_HEADS: Final = ("Pull", "State", "Result", "#Requests", "#Received", "#Duration")
_CAUSE_HEADS: Final = ("Cause", "#Resources", "Reason", "Next try", "Example")
_AUDIT_HEADS: Final = ("Audit", "Result", "#Present", "#Accurate", "#Wrong", "Method")
_CHANGES: Final = ("created", "updated", "deleted")
_SHOWN_RUNS: Final = 50
_URL: Final = ("http://", "https://")


def mirror_page(detail: views.MirrorDetail, *, can_act: bool = False) -> str:
    """Return the page; with a form for operators who may act."""
    summary, now = detail.summary, detail.now
    causes = [_cause(cause, detail) for cause in detail.causes]
    audits = [_audit(kept) for kept in detail.audits]
    return layout.page(
        summary.name,
        tag("div", tag("h1", summary.name), state_labels(summary, now), class_="title"),
        tag("p", _source(summary), "next pull: ", next_pull(summary, now), class_="muted"),
        _advice(summary, now),
        None if summary.error else layout.numbers(_numbers(summary)),
        layout.rows_card("Pending resources, by cause", _CAUSE_HEADS, causes) if causes else None,
        push_card(summary.push, now),
        _runs(detail),
        layout.rows_card("Audits", _AUDIT_HEADS, audits) if audits else None,
        operator_form(summary) if can_act else None,
        now=now,
        home=HOME,
    )


def _source(summary: views.MirrorSummary) -> Piece:
    place = summary.status.source
    if not place:
        return None
    link = tag("a", place, href=place, rel="noreferrer") if place.startswith(_URL) else place
    return "follows ", link, " · "


def _advice(summary: views.MirrorSummary, now: datetime) -> Markup | None:
    notes: list[Piece] = [*failing_text(summary, now), *map(layout.sentence, notes_of(summary))]
    bad = summary.error or summary.status.state in {MirrorState.FAILING, MirrorState.STOPPED}
    look = "advice bad" if bad else "advice"
    return layout.card([tag("p", note) for note in notes], look=look) if notes else None


def _numbers(summary: views.MirrorSummary) -> Iterator[tuple[str, str, Piece]]:
    status = summary.status
    held = f"{formatting.counted(status.held, 'deletion')} held" if status.held else ""
    yield "In sync", status.share_text, ""
    yield "Pending", pending_text(status), held
    since: Piece = "never in sync"
    if status.in_sync_at is not None:
        since = "in sync at ", layout.time_tag(status.in_sync_at)
    yield "Lag", "-" if summary.seen.lag is None else formatting.age(summary.seen.lag), since
    listed = f"{formatting.count(status.listed.total)} listed" if status.is_counted else ""
    yield "Copies", formatting.count(status.resources), listed
    if disk := summary.seen.disk:
        used = f"of {formatting.size(disk.total)} of its file system"
        yield "Disk, free", formatting.size(disk.free), used


def _cause(cause: PendingCause, detail: views.MirrorDetail) -> Iterator[Piece]:
    is_deletion = cause.task == PendingTask.DELETE
    yield tag("strong", cause.code or ("deletion" if is_deletion else "not tried yet"))
    yield formatting.count(cause.number)
    yield cause.reason
    due = from_microseconds(cause.due)
    if is_deletion and detail.summary.status.held:
        yield "when it is released"
    else:
        yield ("from ", layout.time_tag(due)) if due > detail.now else "with the next pull"
    yield cause.uri


def _runs(detail: views.MirrorDetail) -> Markup:
    groups = groupby(detail.runs, key=lambda ran: (ran.outcome, _pull_text(ran)))
    same = [list(group) for _, group in groups][:_SHOWN_RUNS]
    since = "since the service was started" if detail.summary.error else "of the last 7 days"
    if not same:
        return layout.card("None.", title=f"Pulls {since}")
    return layout.rows_card(f"Pulls {since}", _RUN_HEADS, map(_run, same))


def _run(same: Sequence[views.EndedPull]) -> Iterator[Piece]:
    ran, first = same[0], same[-1]
    yield layout.time_tag(ran.ended)
    failed = MirrorState.FAILING if ran.failed is None else ran.failed.state
    yield layout.pill(failed if ran.report is None else ran.report.state)
    again = (f"; {formatting.counted(len(same), 'time')} since ", layout.time_tag(first.ended))
    yield _pull_text(ran), again if len(same) > 1 else None
    yield "-" if ran.report is None else formatting.count(ran.report.requests)
    yield "-" if ran.report is None else formatting.size(ran.report.received_bytes)
    yield formatting.duration((ran.ended - ran.started).total_seconds())


def _pull_text(ran: views.EndedPull) -> str:
    if ran.failed is not None:
        return f"{ran.failed.code}: {ran.failed.text}" if ran.failed.message else ran.failed.code
    report = ran.report
    if report is None:
        return ran.outcome
    changes = {kind: getattr(report, kind) for kind in _CHANGES} | {"failed": report.failed}
    parts = [f"{formatting.count(number)} {kind}" for kind, number in changes.items() if number]
    if report.held:
        parts.append(f"{formatting.counted(report.held, 'deletion')} held")
    return ", ".join(parts) or "nothing new"


def _audit(kept: AuditRecord) -> Iterator[Piece]:
    report = kept.report
    yield layout.time_tag(from_microseconds(kept.ended))
    yield layout.label("in sync", "good") if report.in_sync else layout.label("not in sync", "bad")
    yield "-" if report.is_begun else formatting.share(report.present, report.listed)
    yield "-" if report.accuracy is None else formatting.share(report.accurate, report.checked)
    yield formatting.count(report.listed - report.accurate + report.extra + report.refused)
    yield kept.method
