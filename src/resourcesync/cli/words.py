"""Lines of text output, and the forms of numbers, times and names in them. All of it is pure."""

from typing import Final, NamedTuple

from resourcesync.model.formatting import (
    age,
    count,
    counted,
    duration,
    escape,
    moment,
    share,
    size,
    stamp,
)

__all__ = [
    "DETAIL",
    "LABEL_WIDTH",
    "NORMAL",
    "QUIET",
    "TextLine",
    "age",
    "count",
    "counted",
    "duration",
    "escape",
    "labelled",
    "moment",
    "not_given",
    "share",
    "size",
    "stamp",
]

QUIET, NORMAL, DETAIL = 0, 1, 2
"""Levels of a line: shown even with ``-q``, shown by default, shown with ``-v``."""

LABEL_WIDTH: Final = 10


class TextLine(NamedTuple):
    """One line of text output.

    Attributes:
        text: What it says; escaped when shown, so it may hold what a Source wrote.
        label: The word or symbol in front; a word is padded to a column, and what says how
            something ended is coloured.
        level: ``QUIET``, ``NORMAL`` or ``DETAIL``.
    """

    text: str
    label: str = ""
    level: int = NORMAL


def labelled(line: TextLine) -> tuple[str, str]:
    """Return a line's label with its padding, and its text."""
    if not line.label:
        return "", line.text
    if len(line.label) == 1:
        return f"{line.label} ", line.text
    gap = LABEL_WIDTH if len(line.label) < LABEL_WIDTH else len(line.label) + 3
    return line.label.ljust(gap), line.text


def not_given(absent: int, skipped: int) -> str:
    """Return how much the Source lists and does not give, where it may; empty for none.

    Whether an older copy of it is right, nobody knows.
    """
    parts = []
    if absent:
        parts.append(f"{count(absent)} listed and absent at the Source (404)")
    if skipped:
        parts.append(f"{count(skipped)} skipped (its robots.txt, or a redirect elsewhere)")
    return ", ".join(parts)
