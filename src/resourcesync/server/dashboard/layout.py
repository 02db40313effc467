"""Common parts of all pages: their style, frame, states, tables, and windows of time."""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib import resources
from types import MappingProxyType
from typing import Final

import msgspec

from resourcesync import __version__
from resourcesync.destination.reports import MirrorState
from resourcesync.model import formatting
from resourcesync.server.dashboard.markup import Markup, Piece, address, join_markup, tag

_MOST_INTERVALS: Final = 32
_STEPS: Final = (
    (timedelta(minutes=1), "minute"),
    (timedelta(minutes=2), "2 minutes"),
    (timedelta(minutes=5), "5 minutes"),
    (timedelta(minutes=15), "15 minutes"),
    (timedelta(hours=1), "hour"),
    (timedelta(hours=2), "2 hours"),
    (timedelta(hours=6), "6 hours"),
    (timedelta(days=1), "day"),
    (timedelta(days=7), "week"),
    (timedelta(days=30), "30 days"),
    (timedelta(days=365), "365 days"),
)


class TimeRange(msgspec.Struct, frozen=True):
    """A range of time up to now.

    Attributes:
        key: Its name in addresses.
        name: Its name on the page.
        length: Its length; ``None`` for all that is recorded.
    """

    key: str
    name: str
    length: timedelta | None


RANGES: Final = (
    TimeRange("1h", "1 hour", timedelta(hours=1)),
    TimeRange("24h", "24 hours", timedelta(days=1)),
    TimeRange("7d", "7 days", timedelta(days=7)),
    TimeRange("30d", "30 days", timedelta(days=30)),
    TimeRange("all", "all", None),
)
DEFAULT_RANGE: Final = RANGES[2]


def parse_range(fields: Mapping[str, str]) -> TimeRange:
    """Return the range of a query; the default one if none is named."""
    key = fields.get("range")
    return next((found for found in RANGES if found.key == key), DEFAULT_RANGE)


def range_links(page: str, chosen: TimeRange, **query: str) -> Markup:
    """Return the links to a page for each range."""
    links = [
        tag(
            "a",
            found.name,
            href=address(page, **query, range=found.key),
            aria_current="true" if found == chosen else None,
        )
        for found in RANGES
    ]
    return tag("nav", links, class_="choice", aria_label="Range of time")


def interval_of(span: timedelta) -> timedelta:
    """Return the length of the intervals of a chart of this span."""
    return next((step for step, _ in _STEPS if span / step <= _MOST_INTERVALS), _STEPS[-1][0])


def interval_text(step: timedelta) -> str:
    """Return the length of an interval, in words."""
    return dict(_STEPS)[step]


STYLE: Final = resources.files(__package__).joinpath("style.css").read_text("utf-8")
"""The style of the pages, light and dark."""
SCRIPT: Final = resources.files(__package__).joinpath("live.js").read_text("utf-8")
"""What no page needs: it renews the live parts of a page, and shows local times."""
LIVE: Final = {"data_live": ""}
"""The attribute of the parts of a page that the script renews; each has an id."""
_REFRESH_SECONDS: Final = 30
PAGES: Final = (
    ("Mirrors", "./"),
    ("Audits", "audits"),
    ("Events", "events"),
    ("Explore", "explore"),
)
"""The pages of the menu, and their addresses."""
ICON: Final = tag("link", rel="icon", href="data:,")
"""No icon: without it a browser requests one."""
_REPORT_POLICY: Final = (
    "default-src 'none'; style-src '{}'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
)
_STATE_CLASSES: Final = {
    MirrorState.IN_SYNC: "good",
    MirrorState.BEHIND: "warn",
    MirrorState.SYNCING: "calm",
    MirrorState.NEW: "calm",
    MirrorState.FAILING: "bad",
    MirrorState.STOPPED: "bad",
}


def page(
    title: str,
    *body: Piece,
    now: datetime,
    here: str = "",
    script: bool = False,
    menu: Sequence[tuple[str, str]] = PAGES,
) -> str:
    """Return a whole page."""
    head = (
        ICON,
        tag("link", rel="stylesheet", href="style.css"),
        tag("script", src="live.js", defer=""),
        tag("noscript", _refresh()) if script else None,
    )
    top = _header(now, here, menu, is_live=script)
    foot = tag("footer", f"resourcesync {__version__}. All times are UTC.")
    return _document(title, head, (top, tag("main", *body, id="content"), foot))


def _header(
    now: datetime | None, here: str, menu: Sequence[tuple[str, str]], *, is_live: bool = False
) -> Markup:
    """Return the link to the content, and the header with the menu."""
    links = [
        tag("a", name, href=place, aria_current="page" if name == here else None)
        for name, place in menu
    ]
    moment = None if now is None else time_tag(now)
    pages = tag("nav", links, aria_label="Pages")
    live = tag("span", id="live", role="status") if is_live else None
    return join_markup(
        tag("a", "To the content", href="#content", class_="skip"),
        tag("header", tag("div", tag("strong", "resourcesync"), pages, live, moment)),
    )


def _refresh() -> Markup:
    return tag("meta", http_equiv="refresh", content=_REFRESH_SECONDS)


def time_tag(moment: datetime, text: str = "") -> Markup:
    """Return a time; a pointer over it shows it in full, and with the script as local time."""
    full = formatting.moment(moment)
    return tag("time", text or full, datetime=formatting.stamp(moment), title=full)


def ago(moment: datetime, now: datetime) -> Markup:
    """Return how long ago something was; a pointer over it shows the time."""
    return time_tag(moment, f"{formatting.age((now - moment).total_seconds())} ago")


def report_page(
    title: str,
    *body: Piece,
    style: str = "",
    head: Piece = None,
    foot: str = f"resourcesync {__version__}. All times are UTC.",
) -> str:
    """Return a self-contained page, which loads nothing."""
    heads = (head, tag("style", Markup(STYLE + style)))
    return _document(title, heads, (tag("main", *body, id="content"), tag("footer", foot)))


def with_menu(
    report: str,
    now: datetime | None = None,
    *,
    here: str,
    menu: Sequence[tuple[str, str]] = PAGES,
) -> str:
    """Return a report with the header of the pages, which leads back to them."""
    head, body, content = report.partition("</head><body>")
    return f"{head}{ICON}{body}{_header(now, here, menu)}{content}"


def report_policy(report: str) -> str:
    """Return the content policy of a report: its own style, and nothing else."""
    style = report.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _REPORT_POLICY.format(f"sha256-{digest}")


def _document(title: str, head: Piece, body: Piece) -> str:
    heads = (
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} | resourcesync"),
        head,
    )
    return f"<!doctype html>\n{tag('html', tag('head', heads), tag('body', body), lang='en')}\n"


def pill(state: MirrorState) -> Markup:
    """Return the word for a state, in its colour."""
    return tag("span", state.value, class_=f"state {_STATE_CLASSES[state]}")


def outcome(*, is_good: bool, word: str) -> Markup:
    """Return a word for how something ended, in its colour."""
    return tag("span", word, class_=f"state {'good' if is_good else 'bad'}")


def table(
    heads: Sequence[str],
    rows: Iterable[Piece],
    *,
    titles: Mapping[str, Piece] = MappingProxyType({}),
) -> Markup:
    """Return a table; on a small screen each row becomes a block."""
    cells = [
        tag(
            "th",
            titles.get(head, head.lstrip("#")),
            class_="number" if head.startswith("#") else None,
        )
        for head in heads
    ]
    return tag("table", tag("thead", tag("tr", cells)), tag("tbody", list(rows)), class_="stack")


def row(heads: Sequence[str], cells: Sequence[Piece]) -> Markup:
    """Return a row of a ``table``; the first cell is its heading."""
    drawn = [
        tag(
            "td",
            cell,
            class_="whole" if not number else "number" if head.startswith("#") else None,
            data_label=head.lstrip("#") if number else None,
        )
        for number, (head, cell) in enumerate(zip(heads, cells, strict=True))
    ]
    return tag("tr", drawn)


def fact_table(pairs: Iterable[tuple[str, Piece]]) -> Markup:
    """Return labelled values, one below the other."""
    rows = [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in pairs]
    return tag("table", tag("tbody", rows))


def card(*pieces: Piece, title: str = "", look: str = "") -> Markup:
    """Return a part of a page."""
    head = tag("h2", title) if title else None
    return tag("section", head, *pieces, class_=f"card {look}".strip())


def advice(notes: Sequence[str], *, first: Piece = None, is_bad: bool) -> Markup | None:
    """Return notes of problems and remedies, and what stands before them."""
    if not notes and first is None:
        return None
    drawn = [tag("p", first) if first is not None else None]
    drawn += [tag("p", sentence(note)) for note in notes]
    return card(drawn, look="advice bad" if is_bad else "advice")


def command(note: str) -> Piece:
    """Return a note, with its command, if any, marked up as one."""
    before, mark, after = note.partition("resourcesync ")
    return note if not mark else (before, tag("code", mark + after))


def sentence(note: str) -> Piece:
    """Return a note as a sentence of its own."""
    if note.startswith("next   "):
        return "Next: ", command(note.removeprefix("next").lstrip())
    return command(note[:1].upper() + note[1:])


WINDOWS: Final = (1, 7, 30)
"""The windows of time that can be chosen, in days."""
DEFAULT_DAYS: Final = 7

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
INTERVALS: Final = {1: HOUR, 7: 6 * HOUR, 30: DAY}
"""The length of a window's intervals."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def interval_start(moment: datetime, step: timedelta) -> datetime:
    """Return the start of the interval that contains a moment."""
    return moment - (moment - _EPOCH) % step


def interval_name(days: int) -> str:
    """Return the length of an interval of a window, in words."""
    return {1: "hour", 7: "6 hours", 30: "day"}[days]


def window_links(page: str, days: int, **query: str) -> Markup:
    """Return the links to a page for each window."""
    links = [
        tag(
            "a",
            "24 hours" if number == 1 else f"{number} days",
            href=address(page, **query, days=number),
            aria_current="true" if number == days else None,
        )
        for number in WINDOWS
    ]
    return tag("nav", links, class_="choice", aria_label="Window of time")
