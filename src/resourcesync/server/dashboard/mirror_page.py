"""The page of one mirror: its state, latencies and traffic."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from math import ceil
from statistics import median
from typing import Final

from msgspec.structs import replace

from resourcesync.destination.reports import MirrorState, MirrorStatus, RunReport
from resourcesync.model import formatting
from resourcesync.server.dashboard.charts import Plot, Series, bars, integer_marks, lines
from resourcesync.server.dashboard.layout import (
    DEFAULT_RANGE,
    LIVE,
    TimeRange,
    advice,
    card,
    interval_of,
    interval_start,
    interval_text,
    page,
    pill,
    range_links,
    row,
    table,
    time_tag,
)
from resourcesync.server.dashboard.markup import Markup, Piece, address, tag
from resourcesync.server.dashboard.mirrors_page import (
    failing_text,
    planned,
    share,
    state_labels,
    without_exit,
)
from resourcesync.server.dashboard.operator_actions import operator_form
from resourcesync.server.dashboard.push_status import push_card
from resourcesync.server.dashboard.timeline import pull_summary, timeline
from resourcesync.server.dashboard.views import EndedPull, MirrorDetail, MirrorSummary, PendingCause

_RUN_HEADS: Final = ("Pull", "State", "Result", "#Requests", "#Received", "#Duration")
_CAUSE_HEADS: Final = ("Cause", "#Resources", "Reason", "Next try", "Example")
_SHOWN_RUNS: Final = 12


def mirror_page(
    detail: MirrorDetail, chosen: TimeRange = DEFAULT_RANGE, *, can_act: bool = False
) -> str:
    """Return the page."""
    status = detail.summary.status
    bad = status.state in {MirrorState.FAILING, MirrorState.STOPPED}
    title = tag(
        "div",
        tag("h1", detail.summary.name),
        state_labels(detail.summary, detail.until),
        range_links("mirror", chosen, name=detail.summary.name),
        class_="title",
    )
    live = (
        title,
        tag("p", _source(detail.summary), class_="muted"),
        _advice(detail, is_bad=bad),
        _recorded_charts(detail),
        _causes(detail),
        push_card(detail.summary.push, detail.until),
        _runs(detail),
    )
    return page(
        detail.summary.name,
        tag("div", live, id="mirror", **LIVE),
        operator_form(detail.summary.name, is_paused=detail.summary.is_paused) if can_act else None,
        _find(detail),
        now=detail.until,
        here="Mirrors",
        script=True,
    )


def _recorded_charts(detail: MirrorDetail) -> Piece:
    """Return the numbers and charts; without any pull that succeeded, a sentence."""
    status = detail.summary.status
    if status.last_run is None:
        return card("This mirror was never pulled.")
    if not status.resources and status.in_sync_at is None and not _reports(detail):
        return card("No pull has succeeded yet.")
    if not detail.runs:
        return _numbers(detail), card("No pull ended in this range of time.")
    return (
        _numbers(detail),
        card(timeline(detail), title="Timeline"),
        tag("div", [card(plot) for plot in _plots(detail)], class_="plots"),
    )


def _reports(detail: MirrorDetail) -> list[RunReport]:
    return [ran.report for ran in detail.runs if ran.report is not None]


def _advice(detail: MirrorDetail, *, is_bad: bool) -> Markup | None:
    """Return since when the mirror fails, when it is tried again, why, and what to do."""
    failing = failing_text(detail.summary, detail.failing_since)
    notes = [without_exit(note) for note in detail.summary.notes if not note.startswith("! ")]
    return advice(notes, first=failing, is_bad=is_bad)


def _source(summary: MirrorSummary) -> Piece:
    place = summary.status.source
    documents = tag("a", "its documents", href=address("explore", name=summary.name))
    explore = (documents, " · next pull: ", planned(summary)) if summary.next_pull else documents
    if not place.startswith(("http://", "https://")):
        return (place, " · ", explore) if place else None
    return "follows ", tag("a", place, href=place, rel="noreferrer"), " · ", explore


def _numbers(detail: MirrorDetail) -> Markup:
    brief, status = detail.summary, detail.summary.status
    lag = "-" if brief.lag is None else formatting.age(brief.lag)
    since: Piece = "never in sync"
    if status.in_sync_at is not None:
        since = "in sync at ", time_tag(status.in_sync_at)
    waits = _latencies(detail)
    late = f"95 % within {formatting.duration(_p95(waits))}" if waits else "no dated changes"
    cost = sum(ran.report.received for ran in detail.runs if ran.report is not None)
    listed = f"{formatting.count(status.listed - status.held)} listed"
    shown: list[tuple[str, str, Piece]] = [
        ("In sync", share(brief), ", ".join(_waiting(status))),
        ("Lag", lag, since),
        ("Resources", formatting.count(status.resources), listed if status.is_counted else ""),
        ("Latency, median", formatting.duration(median(waits)) if waits else "-", late),
        (
            "Received",
            formatting.size(cost),
            f"in {formatting.counted(len(detail.runs), 'pull')} since {_begin(detail)}",
        ),
    ]
    if brief.disk_free is not None:
        used = f"of {formatting.size(brief.disk_size)} of its file system"
        shown.append(("Disk, free", formatting.size(brief.disk_free), used))
    return tag(
        "dl",
        [
            tag(
                "div",
                tag("dt", name),
                tag("dd", tag("span", value, class_="value"), tag("span", more, class_="more")),
            )
            for name, value, more in shown
        ],
        class_="numbers",
    )


def _begin(detail: MirrorDetail) -> str:
    is_today = detail.since.date() == detail.until.date()
    return detail.since.strftime("%H:%MZ" if is_today else "%Y-%m-%d")


def _waiting(status: MirrorStatus) -> Iterator[str]:
    """Yield what keeps the mirror from being in sync: pending resources and deletions."""
    if status.pending or not status.held:
        yield f"{formatting.count(status.pending)} pending"
    if status.held:
        word = "held" if status.state is MirrorState.STOPPED else "not applied"
        yield f"{formatting.counted(status.held, 'deletion')} {word}"


def _latencies(detail: MirrorDetail) -> list[float]:
    """Return the latencies of the changes made within the window, in seconds."""
    return [
        max((change.time - change.dated).total_seconds(), 0.0)
        for change in detail.changes
        if change.dated is not None and change.dated >= detail.since
    ]


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[max(ceil(len(values) * 0.95) - 1, 0)]


def _plots(detail: MirrorDetail) -> Iterator[Markup]:
    step = interval_of(detail.until - detail.since)
    since = interval_start(detail.since, step)
    count = ceil((detail.until - since) / step)

    def group(pairs: Iterable[tuple[datetime, float]]) -> list[list[float]]:
        found: list[list[float]] = [[] for _ in range(count)]
        for moment, value in pairs:
            index = (moment - since) // step
            if 0 <= index < count:
                found[index].append(value)
        return found

    def plot(title: str, form: Callable[[float], str], *series: Series) -> Plot:
        return Plot(title=title, since=since, step=step, series=series, form=form)

    yield _latency(detail, plot, group)
    yield _in_sync(detail, since, plot)
    runs = [ran for ran in detail.runs if not ran.is_first]
    kinds = [
        Series(name=kind, values=tuple(map(sum, group(_counted(runs, kind)))))
        for kind in ("created", "updated", "deleted")
    ]
    made = plot(
        f"Changes per {interval_text(step)}", lambda value: formatting.count(round(value)), *kinds
    )
    yield bars(replace(made, marks=integer_marks))
    yield _bytes(detail, step)


def _counted(runs: Iterable[EndedPull], name: str) -> Iterator[tuple[datetime, float]]:
    for ran in runs:
        if ran.report is not None:
            yield ran.ended, float(getattr(ran.report, name))


_Grouped = Callable[[Iterable[tuple[datetime, float]]], list[list[float]]]


def _latency(detail: MirrorDetail, plot: Callable[..., Plot], group: _Grouped) -> Markup:
    found = group(
        (change.time, max((change.time - change.dated).total_seconds(), 0.0))
        for change in detail.changes
        if change.dated is not None and change.dated >= detail.since
    )
    middle = Series(name="median", values=tuple(median(item) if item else None for item in found))
    late = Series(name="95 % within", values=tuple(_p95(item) if item else None for item in found))
    drawn = replace(
        plot("Latency of changes", formatting.duration, middle, late),
        marks=_marks_of_time,
        axis=_time,
    )
    # Bars of days would dwarf those of minutes.
    most = max((value for value in late.values if value is not None), default=0.0)
    limit = detail.summary.max_lag
    if limit is not None and limit <= 4 * max(most, 1.0):
        drawn = replace(drawn, limit=limit)
    return lines(drawn)


_TIMES: Final = (1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200)


def _marks_of_time(most: float) -> list[float]:
    """Return the marks of an axis of seconds, at round times."""
    day = 86_400.0
    rounded = [float(time) for time in _TIMES] + [
        day * number for number in (1, 2, 5, 10, 50, 200, 2_000)
    ]
    step = next((item for item in rounded if item * 4 >= most), max(most / 4, 1.0))
    return [step * number for number in range(max(ceil(most / step), 1) + 1)]


def _time(seconds: float) -> str:
    """Return a round time as an axis label: in the largest unit that it is a multiple of."""
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds and seconds % unit == 0:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:g} s" if seconds else "0"


def _in_sync(detail: MirrorDetail, since: datetime, plot: Callable[..., Plot]) -> Markup:
    step: timedelta = plot("", str).step
    count = ceil((detail.until - since) / step)
    worst: list[float | None] = [None] * count
    for ran in detail.runs:
        index = (ran.ended - since) // step
        report = ran.report
        every = 0 if report is None else report.listed + report.held
        if report is None or not every or not 0 <= index < count:
            continue
        value = 100.0 * max(report.listed - report.pending - report.refused, 0) / every
        before = worst[index]
        worst[index] = value if before is None else min(before, value)
    least = min((value for value in worst if value is not None), default=99.0)
    floor_ = max(0.0, 100.0 - _rounded_up(100.0 - least))

    def form(value: float) -> str:
        return f"{value:.4f}".rstrip("0").rstrip(".") + " %"

    drawn = plot("In sync, minimum per interval", form, Series(name="in sync", values=tuple(worst)))
    return lines(drawn, floor_=floor_, ceiling=100.0)


def _rounded_up(value: float) -> float:
    """Return a round number a little above a missing share, in percent."""
    return next(item for item in (0.1, 0.5, 1, 2, 5, 10, 20, 50, 100) if item >= value)


def _bytes(detail: MirrorDetail, step: timedelta) -> Markup:
    since = interval_start(detail.since, step)
    count = ceil((detail.until - since) / step)
    content, rest = [0.0] * count, [0.0] * count
    for ran in detail.runs:
        index = (ran.ended - since) // step
        if ran.report is not None and 0 <= index < count:
            content[index] += min(ran.report.useful, ran.report.received)
            rest[index] += max(ran.report.received - ran.report.useful, 0)
    series = (
        Series(name="content", values=tuple(content)),
        Series(name="lists and retries", values=tuple(rest)),
    )
    return bars(
        Plot(
            title=f"Bytes per {interval_text(step)}",
            since=since,
            step=step,
            series=series,
            form=lambda value: formatting.size(round(value)),
        )
    )


def _causes(detail: MirrorDetail) -> Markup | None:
    if not detail.causes:
        return None
    rows = [row(_CAUSE_HEADS, list(_cause(detail, cause))) for cause in detail.causes]
    return card(table(_CAUSE_HEADS, rows), title="Pending resources, by cause")


def _cause(detail: MirrorDetail, cause: PendingCause) -> Iterator[Piece]:
    yield tag("strong", cause.code or "not tried yet")
    yield formatting.count(cause.count)
    yield cause.reason
    rests = cause.due is not None and cause.due > detail.until
    if rests and cause.due is not None:
        yield "from ", time_tag(cause.due)
    else:
        yield (
            "with the next pull",
            (", ", planned(detail.summary)) if detail.summary.next_pull else None,
        )
    place = address("resource", name=detail.summary.name, resource=cause.uri)
    yield tag("a", cause.uri, href=place)


def _find(detail: MirrorDetail) -> Markup:
    form = tag(
        "form",
        tag("label", "URI of a resource, or its path in the mirror:", for_="resource"),
        tag("input", type="hidden", name="name", value=detail.summary.name),
        tag("input", id="resource", name="resource", required="", autocomplete="off"),
        tag("button", "Explain"),
        method="get",
        action="resource",
    )
    return card(form, title="A resource")


def _runs(detail: MirrorDetail) -> Markup:
    rows = [row(_RUN_HEADS, list(_run(detail, ran))) for ran in detail.runs[:_SHOWN_RUNS]]
    what = "The last pulls" if len(detail.runs) > _SHOWN_RUNS else "Pulls"
    return card(table(_RUN_HEADS, rows) if rows else "None in this window.", title=what)


def _run(detail: MirrorDetail, ran: EndedPull) -> Iterator[Piece]:
    place = address("run", name=detail.summary.name, run=ran.run)
    yield tag("a", time_tag(ran.ended), href=place)
    yield pill(MirrorState.FAILING if ran.report is None else ran.report.state)
    yield pull_summary(ran).partition("; ")[2] or pull_summary(ran)
    yield "-" if ran.report is None else formatting.count(ran.report.requests)
    yield "-" if ran.report is None else formatting.size(ran.report.received)
    yield formatting.duration((ran.ended - ran.started).total_seconds())
