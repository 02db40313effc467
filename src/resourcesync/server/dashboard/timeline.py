"""Timeline of lists, changes, notifications and pulls, like the figures of the specification.

Each change is joined to the pull that fetched it: the slope is its latency, and a missed pull is
visible.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from resourcesync.destination.reports import MirrorState
from resourcesync.model import formatting
from resourcesync.server.dashboard.charts import days_between, picture
from resourcesync.server.dashboard.layout import time_tag
from resourcesync.server.dashboard.markup import Markup, address, tag
from resourcesync.server.dashboard.views import EndedPull, MirrorDetail

_WIDTH: Final = 1120
_LEFT: Final = 128
_RIGHT: Final = 14
_LANES: Final = {"lists": 34, "changes": 88, "source": 142, "notices": 262, "pulls": 302}
_LANE_NAMES: Final = {
    "lists": "Resource Lists",
    "changes": "Change Lists",
    "source": "Changes",
    "notices": "Notifications",
    "pulls": "Pulls",
}
_HEIGHT: Final = 350
_MOST: Final = 2_000
_KINDS: Final = {"created": "s0", "updated": "s1", "deleted": "s2"}


def timeline(detail: MirrorDetail) -> Markup:
    """Return the timeline of a mirror."""
    x = _scale(detail)
    drawing = picture(
        "Timeline: lists, changes, notifications and pulls",
        tag("defs", _hatch()),
        _frame(detail, x),
        tag("g", _change_lines(detail, x), class_="joins"),
        _resource_lists(detail, x),
        _change_lists(detail, x),
        _dots(detail, x),
        _awaited(detail, x),
        _notices(detail, x),
        _pulls(detail, x),
        size=(_WIDTH, _HEIGHT),
        label="Timeline; the same as a table below",
        look="timeline",
        role="group",  # not "img": the pulls in it are links
    )
    return tag(
        "figure",
        tag(
            "div",
            drawing,
            class_="wide from-end",
            tabindex="0",
            role="region",
            aria_label="Timeline",
        ),
        tag("p", "Now is at the right end; the past is to the left.", class_="muted narrow"),
        _legend(detail),
        _table(detail),
    )


def _scale(detail: MirrorDetail) -> Callable[[datetime], float]:
    span = max((detail.until - detail.since).total_seconds(), 1.0)

    def x(moment: datetime) -> float:
        share = (moment - detail.since).total_seconds() / span
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * min(max(share, 0.0), 1.0)

    return x


def _hatch() -> Markup:
    stripe = tag("path", d="M0 6L6 0", class_="hatching")
    return tag("pattern", stripe, id="open", width=6, height=6, patternUnits="userSpaceOnUse")


def _frame(detail: MirrorDetail, x: Callable[[datetime], float]) -> Iterator[Markup]:
    for lane, y in _LANES.items():
        yield tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="grid")
        yield tag("text", _LANE_NAMES[lane], x=_LEFT - 12, y=y + 4, class_="end lane")
    for moment, label in days_between(detail.since, detail.until):
        at = x(moment)
        yield tag("line", x1=at, x2=at, y1=14, y2=_HEIGHT - 26, class_="grid day")
        yield tag("text", label, x=at + 3, y=_HEIGHT - 10)


def _resource_lists(detail: MirrorDetail, x: Callable[[datetime], float]) -> Iterator[Markup]:
    y = _LANES["lists"]
    for ran in detail.runs:
        report = ran.report
        if report is None or report.mode != "baseline" or report.as_of is None:
            continue
        begin, end = x(report.as_of), x(ran.ended)
        listed, read = formatting.moment(report.as_of), formatting.moment(ran.ended)
        text = f"Resource List of {listed}, read {read}"
        yield tag(
            "rect",
            tag("title", text),
            x=begin,
            y=y - 9,
            width=max(end - begin, 3.0),
            height=18,
            rx=2,
            class_="list",
        )


def _change_lists(detail: MirrorDetail, x: Callable[[datetime], float]) -> Iterator[Markup]:
    y = _LANES["changes"]
    closed = max((span.until for span in detail.lists if span.until), default=detail.since)
    for span in detail.lists[:_MOST]:
        end = span.until or detail.until
        # An index covers its closed lists too: the open list begins after them.
        start = span.since if span.until else max(span.since, closed)
        if end < detail.since or span.since > detail.until:
            continue
        begin, width = x(start), max(x(end) - x(start), 2.0)
        until = "open" if span.until is None else formatting.moment(span.until)
        yield tag(
            "rect",
            tag("title", f"Change List {formatting.moment(span.since)} to {until}: {span.uri}"),
            x=begin,
            y=y - 9,
            width=width,
            height=18,
            rx=2,
            class_="list",
            fill=None if span.until else "url(#open)",
        )


def _pairs(detail: MirrorDetail) -> Iterator[tuple[datetime, datetime, str]]:
    """Yield each change's times at the Source and the mirror; undated ones have the latter."""
    for change in detail.changes:
        if change.kind in _KINDS:
            made = change.dated or change.time
            yield max(made, detail.since), change.time, change.kind


def _change_lines(detail: MirrorDetail, x: Callable[[datetime], float]) -> list[Markup]:
    counts = Counter(
        (round(x(made), 1), round(x(came), 1)) for made, came, _ in _pairs(detail) if made <= came
    )
    top, bottom = _LANES["source"], _LANES["pulls"]
    return [
        tag("line", x1=begin, y1=top, x2=end, y2=bottom, class_="join")
        for begin, end in list(counts)[:_MOST]
    ]


def _dots(detail: MirrorDetail, x: Callable[[datetime], float]) -> Iterator[Markup]:
    """Yield a dot for each change; overlapping ones become one larger dot."""
    groups: dict[tuple[int, str], list[tuple[datetime, datetime]]] = {}
    for made, came, kind in _pairs(detail):
        groups.setdefault((round(x(made) / 3), kind), []).append((made, came))
    shifts = {"created": -7, "updated": 0, "deleted": 7}
    for (place, kind), found in list(groups.items())[:_MOST]:
        made, came = found[0]
        waited = formatting.duration(max((came - made).total_seconds(), 0.0))
        text = f"{formatting.counted(len(found), 'resource')} {kind} {formatting.moment(made)};"
        yield tag(
            "circle",
            tag("title", f"{text} applied after {waited}"),
            cx=place * 3,
            cy=_LANES["source"] + shifts[kind],
            r=min(2.4 + len(found) ** 0.5 / 2, 7.0),
            class_=_KINDS[kind],
        )


def _awaited(detail: MirrorDetail, x: Callable[[datetime], float]) -> Iterator[Markup]:
    y = _LANES["source"]
    for change in detail.awaited[:_MOST]:
        begin = x(change.dated)
        title = tag("title", f"Pending, made {formatting.moment(change.dated)}: {change.uri}")
        yield tag(
            "g",
            title,
            tag("line", x1=begin, y1=y, x2=min(begin + 14, x(detail.until)), y2=y + 44),
            tag("circle", cx=begin, cy=y, r=3.2),
            class_="awaited",
        )


def _notices(detail: MirrorDetail, x: Callable[[datetime], float]) -> Iterator[Markup]:
    y = _LANES["notices"]
    for moment in detail.notices[:_MOST]:
        at = x(moment)
        title = tag("title", f"Notification {formatting.moment(moment)}")
        yield tag("path", title, d=f"M{at - 4:.1f} {y - 7}h8l-4 8z", class_="s1")


def _pulls(detail: MirrorDetail, x: Callable[[datetime], float]) -> Iterator[Markup]:
    """Yield a mark for each pull; of overlapping ones, the most important."""
    y = _LANES["pulls"]
    places: dict[int, list[EndedPull]] = {}
    for ran in detail.runs:
        if ran.ended >= detail.since:
            places.setdefault(round(x(ran.ended) / 3), []).append(ran)
    for place, runs in places.items():
        ran = max(runs, key=lambda pull: (_badness(pull), pull.changes))
        bad, tall = _badness(ran), 12 if ran.changes or _badness(ran) else 6
        more = f" (and {len(runs) - 1} more)" if len(runs) > 1 else ""
        text = f"Pull {formatting.moment(ran.ended)}: {pull_summary(ran)}{more}"
        mark = tag(
            "rect",
            tag("title", text),
            x=place * 3 - 1.2,
            y=y - tall,
            width=2.4,
            height=2 * tall,
            class_=("pull", "warn", "bad")[bad],
        )
        yield tag(
            "a", mark, href=address("run", name=detail.summary.name, run=ran.run), aria_label=text
        )


def _badness(ran: EndedPull) -> int:
    if ran.report is None:
        return 2
    return {MirrorState.IN_SYNC: 0, MirrorState.STOPPED: 2}.get(ran.report.state, 1)


def pull_summary(ran: EndedPull) -> str:
    """Return the result of a pull in a few words."""
    if ran.failed is not None:
        return f"failed: {ran.failed.message or ran.failed.code}"
    if ran.report is None:
        return ran.outcome
    parts = [
        formatting.counted(number, kind, kind)
        for kind in _KINDS
        if (number := getattr(ran.report, kind))
    ]
    if ran.report.failed:
        parts.append(f"{formatting.count(ran.report.failed)} failed")
    if ran.report.held:
        parts.append(f"{formatting.counted(ran.report.held, 'deletion')} held")
    return f"{ran.report.state.value}; {', '.join(parts) or 'nothing new'}"


def _legend(detail: MirrorDetail) -> Markup:
    keys = [
        *[(f"key k{number}", kind) for number, kind in enumerate(_KINDS)],
        ("key open", "open list"),
        ("key wait", "pending"),
        ("key fail", "failed pull"),
    ]
    legend = [tag("span", tag("i", class_=look), name) for look, name in keys]
    cut = " Older changes are not shown: there are too many." if detail.is_cut else ""
    hint = "Each line joins a change to the pull that fetched it; flatter means later."
    return tag("p", legend, tag("span", hint + cut, class_="muted"), class_="legend")


def _table(detail: MirrorDetail) -> Markup:
    heads = ("Changed (UTC)", "Applied", "Delay", "Change", "Resource")
    rows = [_row(detail, number) for number in range(min(len(detail.changes), 200))]
    shown = tag("table", _heads(heads), tag("tbody", rows))
    return tag(
        "details",
        tag("summary", "The last changes as a table"),
        tag("div", shown, class_="wide", tabindex="0"),
    )


def _heads(names: Sequence[str]) -> Markup:
    return tag("thead", tag("tr", [tag("th", name) for name in names]))


def _row(detail: MirrorDetail, number: int) -> Markup:
    change = detail.changes[number]
    waited = ""
    if change.dated is not None:
        waited = formatting.duration(max((change.time - change.dated) / timedelta(seconds=1), 0.0))
    place = address("resource", name=detail.summary.name, resource=change.uri)
    return tag(
        "tr",
        tag("td", "" if change.dated is None else time_tag(change.dated), class_="time"),
        tag("td", time_tag(change.time), class_="time"),
        tag("td", waited, class_="time"),
        tag("td", change.kind, class_="time"),
        tag("td", tag("a", change.uri, href=place)),
    )
