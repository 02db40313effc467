"""Rows of a simulation side by side, drawn by hand as SVG: bars, or dots on a scale of powers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log10
from typing import Final

from resourcesync.server.dashboard.markup import Markup, tag

_WIDTH: Final = 520
_LEFT: Final = 148
_RIGHT: Final = 112
_ROW: Final = 26
_AXIS: Final = 24
_LETTERS: Final = 17
_MOST_MARKS: Final = 5
"""Of more, every second one or so is shown."""
_TIMES: Final = (
    *((0.1, "0.1 s"), (1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min")),
    *((3_600.0, "1 h"), (86_400.0, "1 d"), (864_000.0, "10 d")),
)
_SHARES: Final = (
    *((1e-9, "0.0000001 %"), (1e-8, "0.000001 %"), (1e-7, "0.00001 %"), (1e-6, "0.0001 %")),
    *((1e-5, "0.001 %"), (1e-4, "0.01 %"), (1e-3, "0.1 %"), (1e-2, "1 %")),
    *((0.1, "10 %"), (1.0, "100 %")),
)
Marks = Sequence[tuple[float, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One row.

    Attributes:
        name: Of the row.
        value: What is drawn; ``None`` for nothing but the text.
        more: Up to where a line goes on; ``None`` for no line.
        text: What is written beside it.
    """

    name: str
    value: float | None
    more: float | None = None
    text: str


def bar_plot(title: str, rows: Sequence[Bar], *, most: float = 0.0) -> Markup:
    """Return values as bars from 0 on.

    Args:
        title: What they are.
        rows: The values.
        most: The end of the scale; the greatest value where it is not said.
    """
    end = most or max((it.value or 0.0 for it in rows), default=0.0) or 1.0
    room = _WIDTH - _LEFT - _RIGHT

    def bar(it: Bar, y: int) -> Iterator[Markup]:
        if it.value is None:
            yield _no_value_text(it, y)
            return
        width = max(room * it.value / end, 1.0)
        yield tag(
            "rect", _bar_title(it), x=_LEFT, y=y - 8, width=width, height=16, rx=2, class_="s0"
        )
        yield tag("text", it.text, x=_LEFT + width + 6, y=y + 4)

    return _plot_figure(title, rows, bar, ())


def time_plot(title: str, rows: Sequence[Bar]) -> Markup:
    """Return spans of time as dots on a scale of powers, each with a line to where ``more`` is."""
    return _dot_plot(title, rows, _TIMES)


def share_plot(title: str, rows: Sequence[Bar]) -> Markup:
    """Return shares of 1 as dots on a scale of powers."""
    return _dot_plot(title, rows, _SHARES)


def _dot_plot(title: str, rows: Sequence[Bar], known: Marks) -> Markup:
    values = [value for it in rows for value in (it.value, it.more) if value]
    least = min(values, default=known[0][0])
    most = max(values, default=known[-1][0])
    begin = max((at for at, _ in known if at <= least), default=known[0][0])
    end = max(min((at for at, _ in known if at >= most), default=most), begin * 10)
    room = _WIDTH - _LEFT - _RIGHT

    def x(value: float) -> float:
        return _LEFT + room * log10(max(value, begin) / begin) / log10(end / begin)

    def dot(it: Bar, y: int) -> Iterator[Markup]:
        if it.value is None:
            yield _no_value_text(it, y)
            return
        if it.more is not None:
            yield tag("line", x1=x(it.value), x2=x(it.more), y1=y, y2=y, class_="line l0")
            yield tag("line", x1=x(it.more), x2=x(it.more), y1=y - 5, y2=y + 5, class_="line l0")
        yield tag("circle", _bar_title(it), cx=x(it.value), cy=y, r=5, class_="s0")
        yield tag("text", it.text, x=x(it.more or it.value) + 10, y=y + 4)

    marks = [(x(at), text) for at, text in known if begin <= at <= end]
    marks = marks[:: 1 + (len(marks) - 1) // _MOST_MARKS]
    return _plot_figure(title, rows, dot, marks)


def _plot_figure(
    title: str,
    rows: Sequence[Bar],
    draw: Callable[[Bar, int], Iterator[Markup]],
    marks: Marks,
) -> Markup:
    bottom = _ROW * len(rows) + 4
    grid = [
        (
            tag("line", x1=at, x2=at, y1=0, y2=bottom, class_="grid"),
            tag("text", text, x=at, y=bottom + 16, text_anchor="middle"),
        )
        for at, text in marks
    ]
    drawn = []
    for number, it in enumerate(rows):
        y = _ROW * number + _ROW // 2 + 2
        short = it.name if len(it.name) <= _LETTERS else f"{it.name[: _LETTERS - 1]}…"
        label = tag("text", tag("title", it.name), short, x=_LEFT - 8, y=y + 4, class_="end lane")
        drawn.append((label, list(draw(it, y))))
    picture = tag(
        "svg",
        tag("title", title),
        grid,
        drawn,
        viewBox=f"0 0 {_WIDTH} {bottom + (_AXIS if marks else 4)}",
        role="img",
        aria_label=f"{title}: " + "; ".join(f"{it.name} {it.text}" for it in rows),
        class_="plot",
    )
    return tag("figure", tag("figcaption", title), picture)


def _no_value_text(it: Bar, y: int) -> Markup:
    return tag("text", it.text, x=_LEFT + 6, y=y + 4)


def _bar_title(it: Bar) -> Markup:
    return tag("title", f"{it.name}: {it.text}")
