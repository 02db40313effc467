"""The charts of the dashboard, as hand-written SVG: each mark shows its value.

A plot over time has a table below it.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10
from typing import Final

import msgspec

from resourcesync.model import formatting
from resourcesync.server.dashboard.markup import Markup, Piece, join_markup, tag

WIDTH: Final = 520
HEIGHT: Final = 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 10, 12, 26
_DAY: Final = timedelta(days=1)
_MINUTE: Final = timedelta(minutes=1)
_CLOCK: Final = (
    *(timedelta(seconds=number) for number in (1, 2, 5, 10, 15, 30)),
    *(timedelta(minutes=number) for number in (1, 2, 5, 10, 15, 30, 60, 120, 240)),
)
"""Possible distances between the marks of a time axis of at most two days."""
_MOST_LABELS: Final = 9
_LETTER: Final = 9.0
"""Greatest width of a letter of a label, on average."""
_YEAR: Final = 365
_STEPS: Final = (1, 2, 2.5, 5, 10)

Form = Callable[[float], str]
"""Function that formats a value."""


def rounded_marks(most: float, parts: int = 4) -> list[float]:
    """Return the marks of an axis from 0 to ``most`` or a little more, at round numbers."""
    if most <= 0:
        return [0.0, 1.0]
    rough = most / parts
    power = 10.0 ** floor(log10(rough))
    step = next(step * power for step in _STEPS if step * power >= rough * 0.999)
    return [number * step for number in range(ceil(most / step - 1e-9) + 1)]


def integer_marks(most: float) -> list[float]:
    """Return the marks of an axis of counts."""
    marks = rounded_marks(most)
    if marks[1] == int(marks[1]):
        return marks
    step = ceil(marks[1])
    return [float(step * number) for number in range(ceil(most / step) + 1)]


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Values over time.

    Attributes:
        name: The name of the series.
        values: One for each interval; ``None`` where nothing is known.
    """

    name: str
    values: tuple[float | None, ...]


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """A plot.

    Attributes:
        title: Its title.
        since: The start of the first interval, UTC.
        step: The length of each interval.
        series: The series to show.
        form: Formats values.
        limit: A value not to be exceeded; ``None`` for none.
        marks: Returns the marks of the axis for the greatest value.
        axis: Formats the marks; by default as the values.
    """

    title: str
    since: datetime
    step: timedelta
    series: tuple[Series, ...]
    form: Form
    limit: float | None = None
    marks: Callable[[float], list[float]] = rounded_marks
    axis: Form | None = None

    @property
    def length(self) -> int:
        """Return the number of intervals."""
        return max((len(series_item.values) for series_item in self.series), default=0)

    def moment(self, index: int) -> datetime:
        """Return the start of an interval."""
        return self.since + self.step * index


def picture(
    title: str,
    *drawn: Piece,
    size: tuple[float, float],
    label: str = "",
    look: str = "plot",
    role: str = "img",
) -> Markup:
    """Return a picture."""
    return tag(
        "svg",
        tag("title", title) if title else None,
        *drawn,
        viewBox=f"0 0 {size[0]} {size[1]}",
        role=role,
        aria_label=label or title,
        class_=look,
    )


def bars(plot: Plot) -> Markup:
    """Return values as stacked bars."""
    sums = [
        sum(
            series_item.values[index] or 0
            for series_item in plot.series
            if index < len(series_item.values)
        )
        for index in range(plot.length)
    ]
    marks = plot.marks(max(sums, default=0))
    scale = _Scale(0.0, marks[-1])
    width = (WIDTH - _LEFT - _RIGHT) / max(plot.length, 1)

    def stack(index: int) -> Iterator[Markup]:
        below = 0.0
        for number, series in enumerate(plot.series):
            value = series.values[index] or 0
            if not value:
                continue
            top, bottom = scale.y(below + value), scale.y(below)
            below += value
            yield tag(
                "rect",
                tag("title", f"{_when(plot, index)}  {series.name}: {plot.form(value)}"),
                x=_LEFT + width * index + width * 0.12,
                y=top,
                width=max(width * 0.76, 1.0),
                height=max(bottom - top, 0.8),
                class_=f"s{number}",
            )

    drawn = [stack(index) for index in range(plot.length)]
    return _figure(plot, join_markup(_grid(plot, scale, marks), _days(plot), drawn), bool)


def lines(plot: Plot, *, floor_: float | None = None, ceiling: float | None = None) -> Markup:
    """Return values as lines."""
    known = [
        value for series_item in plot.series for value in series_item.values if value is not None
    ]
    most = max([*known, plot.limit or 0], default=1)
    least = floor_ or 0.0
    if ceiling is None:
        marks = plot.marks(most)
        top = marks[-1]
    else:
        top = ceiling
        marks = [least, (least + top) / 2, top]
    scale = _Scale(least, max(top, least + 1e-9))
    drawn = [_line(plot, scale, number) for number in range(len(plot.series))]
    limit = None
    if plot.limit is not None and least <= plot.limit <= top:
        y = scale.y(plot.limit)
        title = tag("title", f"limit: {plot.form(plot.limit)}")
        limit = tag("line", title, x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y, class_="limit")
    return _figure(
        plot, join_markup(_grid(plot, scale, marks), _days(plot), limit, drawn), _is_known
    )


def _is_known(value: float | None) -> bool:
    return value is not None


def _day(ago: int) -> str:
    return ("today", "yesterday")[ago] if ago < 2 else f"{ago} days ago"  # noqa: PLR2004 - words


def spark(values: Sequence[int], what: str) -> Markup:
    """Return a few numbers as small bars."""
    most = max([*values, 1])
    drawn = [
        tag(
            "rect",
            tag("title", f"{_day(len(values) - index - 1)}: {formatting.count(value)}"),
            x=index * 12 + 1,
            y=24 - max(22 * value / most, 1.0),
            width=9,
            height=max(22 * value / most, 1.0),
            class_="s0" if value else "none",
        )
        for index, value in enumerate(values)
    ]
    label = f"{what}: {', '.join(map(formatting.count, values))}"
    return picture("", drawn, size=(12 * len(values), 24), label=label, look="spark")


class _Scale(msgspec.Struct, frozen=True):
    least: float
    most: float

    def y(self, value: float) -> float:
        share = (value - self.least) / (self.most - self.least)
        return HEIGHT - _BOTTOM - min(max(share, 0.0), 1.0) * (HEIGHT - _TOP - _BOTTOM)


def _x(plot: Plot, index: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * index / max(plot.length, 1)


def _line(plot: Plot, scale: _Scale, number: int) -> Markup:
    series = plot.series[number]
    points = [
        None if value is None else (_x(plot, index + 0.5), scale.y(value))
        for index, value in enumerate(series.values)
    ]
    path, pen = "", "M"
    for point in points:
        if point is None:
            pen = "M"
            continue
        path += f"{pen}{point[0]:.1f} {point[1]:.1f}"
        pen = "L"
    dots = [
        tag(
            "circle",
            tag("title", f"{_when(plot, index)}  {series.name}: {plot.form(value)}"),
            cx=point[0],
            cy=point[1],
            r=2.2 if plot.length <= 60 else 1.2,  # noqa: PLR2004 - as many as have room
            class_=f"s{number}",
        )
        for index, (point, value) in enumerate(zip(points, series.values, strict=True))
        if point is not None and value is not None
    ]
    return tag("g", tag("path", d=path, class_=f"line l{number}") if path else None, dots)


def _grid(plot: Plot, scale: _Scale, marks: Sequence[float]) -> Markup:
    return join_markup(
        [
            (
                tag(
                    "line",
                    x1=_LEFT,
                    x2=WIDTH - _RIGHT,
                    y1=scale.y(mark),
                    y2=scale.y(mark),
                    class_="grid",
                ),
                tag(
                    "text",
                    (plot.axis or plot.form)(mark),
                    x=_LEFT - 6,
                    y=scale.y(mark) + 4,
                    class_="end",
                ),
            )
            for mark in marks
        ]
    )


def _midnight(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def days_between(since: datetime, until: datetime) -> list[tuple[datetime, str]]:
    """Return moments to mark on an axis of time, with their labels."""
    first = _midnight(since)
    if until - since <= 2 * _DAY:
        step = next(
            (timedelta for timedelta in _CLOCK if (until - since) / timedelta < _MOST_LABELS),
            _CLOCK[-1],
        )
        form = "%H:%M" if step >= _MINUTE else "%H:%M:%S"
        begin, end = (since - first) // step + 1, ceil((until - first) / step)
        times = [first + step * number for number in range(begin, end)]
        return [
            (time, time.strftime("%a %d" if time == _midnight(time) else form)) for time in times
        ]
    count = (until - since).days + 2
    every = max(1, ceil(count / _MOST_LABELS))
    form = "%a %d" if count <= _MOST_LABELS else "%d %b" if count <= _YEAR else "%b %Y"
    days = [first + _DAY * number for number in range(1, (until - first).days + 1)]
    return [(day, day.strftime(form)) for day in days[::every] if since <= day < until]


def _days(plot: Plot) -> Markup:
    until = plot.moment(plot.length)
    span = (until - plot.since) / timedelta(seconds=1) or 1.0
    room = WIDTH - _LEFT - _RIGHT
    marks = []
    labels = days_between(plot.since, until)
    for moment, label in labels[:: ceil(len(labels) / _MOST_LABELS) or 1]:
        x = _LEFT + room * ((moment - plot.since) / timedelta(seconds=1)) / span
        marks.append(tag("line", x1=x, x2=x, y1=_TOP, y2=HEIGHT - _BOTTOM, class_="grid day"))
        if x + _LETTER * len(label) < WIDTH:
            marks.append(tag("text", label, x=x + 2, y=HEIGHT - 8))
    return tag("g", marks, class_="days")


def _figure(plot: Plot, drawn: Markup, is_shown: Callable[[float | None], bool]) -> Markup:
    drawing = picture(plot.title, drawn, size=(WIDTH, HEIGHT))
    return tag(
        "figure", tag("figcaption", plot.title, _legend(plot)), drawing, _table(plot, is_shown)
    )


def _legend(plot: Plot) -> Markup | None:
    if len(plot.series) == 1:
        return None
    keys = [
        tag("span", tag("i", class_=f"key k{number}"), series.name)
        for number, series in enumerate(plot.series)
    ]
    return tag("span", keys, class_="legend")


def _table(plot: Plot, is_shown: Callable[[float | None], bool]) -> Markup:
    head = tag(
        "tr", tag("th", "From (UTC)"), [tag("th", series_item.name) for series_item in plot.series]
    )
    rows = []
    for index in range(plot.length - 1, -1, -1):
        values = [series_item.values[index] for series_item in plot.series]
        if any(map(is_shown, values)):
            cells = [tag("td", "-" if value is None else plot.form(value)) for value in values]
            rows.append(tag("tr", tag("td", _when(plot, index)), cells))
    body = tag("table", tag("thead", head), tag("tbody", rows))
    return tag("details", tag("summary", "Values"), tag("div", body, class_="wide", tabindex="0"))


def _when(plot: Plot, index: int) -> str:
    form = "%Y-%m-%d" if plot.step >= _DAY else "%Y-%m-%d %H:%M"
    if plot.step < _MINUTE:
        form = "%Y-%m-%d %H:%M:%S"
    return plot.moment(index).strftime(form)
