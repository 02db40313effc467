"""Pictures as SVG: boxes, arrows and text, readable on light and dark pages."""

from html import escape
from itertools import pairwise
from math import atan2, degrees

_SVG = "http://www.w3.org/2000/svg"
_STYLE = """
svg { --page: #ffffff; --box: #f3f5f8; --edge: #8a94a3; --ink: #1c2430; --quiet: #5a6575;
  --mark: #1f6feb; font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --page: #14181e; --box: #232a33; --edge: #7b8796;
  --ink: #e8ecf1; --quiet: #a4afbd; --mark: #6cb0ff; } }
.page { fill: var(--page); }
.box { fill: var(--box); stroke: var(--edge); }
.line { fill: none; stroke: var(--edge); stroke-width: 1.3; }
.lane { stroke: var(--edge); stroke-dasharray: 2 5; }
.path { fill: none; stroke: var(--mark); stroke-width: 2; }
.dot, .tip { fill: var(--mark); }
.head { fill: var(--edge); }
text { fill: var(--ink); font-size: 14px; }
.name { font-weight: 600; }
.small { fill: var(--quiet); font-size: 12px; }
.over { fill: var(--quiet); font-size: 12px; paint-order: stroke; stroke: var(--page);
  stroke-width: 5; }
.code { fill: var(--quiet); font-size: 12px;
  font-family: ui-monospace, Menlo, Consolas, monospace; }
.count { fill: var(--page); font-size: 11px; font-weight: 600; }
"""

Point = tuple[float, float]


class Picture:
    """An SVG picture.

    Args:
        width: Its width in pixels.
        height: Its height in pixels.
        title: Its text for readers who do not see it.
    """

    def __init__(self, width: int, height: int, title: str) -> None:
        size = f'width="{width}" height="{height}"'
        self._parts = [
            f'<svg xmlns="{_SVG}" viewBox="0 0 {width} {height}" {size} role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="page" {size} rx="8"/>',
        ]

    def add(self, element: str) -> None:
        """Draw an element on top of the others."""
        self._parts.append(element)

    def box(self, left: float, top: float, width: float, height: float) -> None:
        """Draw a box."""
        self.add(
            f'<rect class="box" x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" '
            'rx="6"/>'
        )

    def text(self, at: Point, text: str, style: str = "", anchor: str = "start") -> None:
        """Write text; the point is on its base line."""
        css = f'class="{style}" ' if style else ""
        align = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.add(f'<text {css}x="{at[0]:g}" y="{at[1]:g}"{align}>{escape(text)}</text>')

    def line(self, start: Point, end: Point, style: str = "line") -> None:
        """Draw a straight line."""
        self.add(f'<path class="{style}" d="M{_point(start)}L{_point(end)}"/>')

    def descent(self, points: list[Point], style: str = "line") -> None:
        """Draw a line down through points: straight, or a curve with vertical ends."""
        path = f"M{_point(points[0])}"
        for before, after in pairwise(points):
            middle = (before[1] + after[1]) / 2
            path += f"C{_point((before[0], middle))} {_point((after[0], middle))} {_point(after)}"
        self.add(f'<path class="{style}" d="{path}"/>')

    def arrow_down(self, at: Point) -> None:
        """Draw the head of an arrow that ends here."""
        x, y = at
        self.add(f'<path class="head" d="M{x:g} {y:g}l-4.5 -8h9z"/>')

    def arrow(self, start: Point, end: Point) -> None:
        """Draw a straight arrow."""
        turn = degrees(atan2(end[1] - start[1], end[0] - start[0]))
        self.line(start, end)
        self.add(
            f'<path class="head" d="M0 0l-8 -4.5v9z" '
            f'transform="translate({_point(end)}) rotate({turn:g})"/>'
        )

    def dot(self, at: Point, number: int) -> None:
        """Draw a numbered dot."""
        x, y = at
        self.add(f'<circle class="dot" cx="{x:g}" cy="{y:g}" r="10"/>')
        self.text((x, y + 4), str(number), "count", "middle")

    def svg(self) -> str:
        """Return the whole picture."""
        return "\n".join([*self._parts, "</svg>", ""])


def _point(at: Point) -> str:
    return f"{at[0]:g} {at[1]:g}"
