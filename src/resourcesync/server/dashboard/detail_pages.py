"""The pages of a resource, a pull, audits and events."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.model import formatting
from resourcesync.server.dashboard.layout import (
    LIVE,
    card,
    command,
    fact_table,
    outcome,
    page,
    pill,
    row,
    table,
    time_tag,
)
from resourcesync.server.dashboard.markup import Piece, address, tag
from resourcesync.server.dashboard.views import (
    EndedAudit,
    EndedPull,
    EndedRun,
    ExplainedResource,
)

_HISTORY_HEADS: Final = ("Applied", "Change")
_AUDIT_HEADS: Final = (
    "Audit",
    "Mirror",
    "Result",
    "#Coverage",
    "#Accuracy",
    "#Not as listed",
    "#Not at the Source",
    "Method",
)
_MOST_EVENTS: Final = 500
_LONG_URI: Final = 120
_EVENT_HEADS: Final = ("Ended", "Mirror", "Run", "Result", "Summary")
_COUNTS: Final = (
    ("Listed", "listed"),
    ("Unchanged", "unchanged"),
    ("Created", "created"),
    ("Updated", "updated"),
    ("Deleted", "deleted"),
    ("Pending", "pending"),
    ("Entries that cannot be used", "refused"),
    ("Deletions not applied", "held"),
    ("Verified by a strong hash", "verified"),
    ("Verified by the server's digest", "server_verified"),
    ("Verified by a weak hash", "weak"),
    ("Not verified", "unverified"),
    ("Copies known by a listed hash", "by_hash"),
    ("Copies known by a request of this pull", "by_request"),
    ("Copies known by their dates only", "by_date"),
    ("Stale copies found by rechecks", "stale_dates"),
    ("Updated by patches", "patched"),
    ("Requests", "requests"),
)


def resource_page(name: str, resource: ExplainedResource, now: datetime) -> str:
    """Return the page that explains one resource of a mirror."""
    facts = fact_table((label, command(text)) for label, text in resource.lines)
    rows = [
        row(_HISTORY_HEADS, [time_tag(change.time), change.kind]) for change in resource.history
    ]
    past = card(table(_HISTORY_HEADS, rows), title="Changes") if rows else None
    return page(
        resource.uri,
        _up(name),
        tag(
            "h1",
            resource.uri,
            class_="long" if len(resource.uri) > _LONG_URI else None,
            tabindex=0 if len(resource.uri) > _LONG_URI else None,
        ),
        card(facts),
        past,
        now=now,
        here="Mirrors",
    )


def run_page(name: str, pull: EndedPull, now: datetime) -> str:
    """Return the page of one pull."""
    report = pull.report
    state = MirrorState.FAILING if report is None else report.state
    times: list[tuple[str, Piece]] = [
        ("Started", formatting.moment(pull.started)),
        ("Ended", formatting.moment(pull.ended)),
        ("Duration", formatting.duration((pull.ended - pull.started).total_seconds())),
        ("Pull", pull.run),
    ]
    title = tag(
        "div", tag("h1", f"Pull of {formatting.moment(pull.ended)}"), pill(state), class_="title"
    )
    if report is None:
        failed = pull.failed
        why: list[tuple[str, Piece]] = [("Code", pull.outcome)]
        if failed is not None:
            why += [
                ("Reason", failed.message),
                ("Next", command(failed.hint)),
            ]
        body = card(fact_table((label, text) for label, text in why if text), title="Failure")
    else:
        body = card(fact_table(_counts(report)), title="Result")
    return page(
        f"Pull of {name}", _up(name), title, card(fact_table(times)), body, now=now, here="Mirrors"
    )


def _counts(report: RunReport) -> list[tuple[str, Piece]]:
    pairs: list[tuple[str, Piece]] = [("Mode", report.mode.value)]
    if report.as_of is not None:
        pairs.append(("Source as of", formatting.moment(report.as_of)))
    pairs += [
        (label, formatting.count(number))
        for label, name in _COUNTS
        if (number := getattr(report, name)) or name in {"listed", "requests"}
    ]
    useful = min(report.useful, report.received)
    pairs.append(("Received", formatting.size(report.received)))
    pairs.append(("Content received", formatting.size(useful)))
    return pairs


def audits_page(audits: Sequence[EndedAudit], now: datetime) -> str:
    """Return the page of all audits."""
    rows = [row(_AUDIT_HEADS, _audit(audit)) for audit in audits]
    body: Piece = table(_AUDIT_HEADS, rows)
    if not rows:
        body = command("No audit is recorded yet. Audit a mirror: resourcesync audit MIRROR")
    return page("Audits", tag("h1", "Audits"), card(body), now=now, here="Audits")


def _audit(audit: EndedAudit) -> list[Piece]:
    report = audit.report
    wrong = report.listed - report.accurate + report.extra + report.refused
    return [
        tag(
            "a",
            formatting.moment(audit.ended),
            href=address("audit", name=audit.mirror, run=report.run),
        ),
        tag("a", audit.mirror, href=address("mirror", name=audit.mirror)),
        outcome(is_good=report.in_sync, word="in sync" if report.in_sync else "not in sync"),
        "-" if report.is_begun else formatting.share(report.present, report.listed),
        "-" if report.accuracy is None else formatting.share(report.accurate, report.present),
        formatting.count(wrong),
        formatting.count(report.absent + report.skipped),
        audit.method,
    ]


def events_page(events: Sequence[EndedRun], now: datetime, *, only_problems: bool = False) -> str:
    """Return the page of the last runs; if only problems are wanted, without the good ones."""
    wanted = [run for run in events if not (only_problems and run.is_good)]
    rows = [row(_EVENT_HEADS, list(_event(run))) for run in wanted[:_MOST_EVENTS]]
    more = (
        f"{formatting.counted(sum(run.count for run in wanted), 'run')}; pulls of the last 30 days,"
        " others since this service started."
    )
    if len(wanted) > _MOST_EVENTS:
        more += f" The last {formatting.count(_MOST_EVENTS)} lines are shown."
    links = [
        tag("a", text, href=place, aria_current="true" if is_chosen else None)
        for text, place, is_chosen in (
            ("all", "events", not only_problems),
            ("problems only", address("events", only="problems"), only_problems),
        )
    ]
    return page(
        "Events",
        tag("div", tag("h1", "Events"), tag("nav", links, class_="choice"), class_="title"),
        tag(
            "div",
            tag("p", more, class_="muted"),
            card(table(_EVENT_HEADS, rows) if rows else "None."),
            id="ended",
            **LIVE,
        ),
        now=now,
        here="Events",
        script=True,
    )


def _event(run: EndedRun) -> Iterator[Piece]:
    yield time_tag(run.time)
    yield tag("a", run.mirror, href=address("mirror", name=run.mirror))
    yield run.kind
    yield outcome(is_good=run.is_good, word=run.word)
    if run.since is None:
        yield run.text
    else:
        times = formatting.counted(run.count, "time")
        yield f"{run.text}; {times} since ", time_tag(run.since)


def missing_page(what: str, now: datetime) -> str:
    """Return the page for a missing page, with the reason."""
    return page("Not found", tag("h1", "Not found"), card(command(what)), now=now)


def _up(name: str) -> Piece:
    return tag("p", tag("a", name, href=address("mirror", name=name)), " /", class_="muted")
