"""Numbers, times and names formatted for people. All functions are pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

_KILO: Final = 1000
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400
_LONG_DURATION: Final = 36 * _HOUR
_TENS: Final = 10
_LEAST: Final = 0.00001


def escape(text: str) -> str:
    r"""Return ``text`` with every character that could fool a terminal or a reader made visible.

    Control characters, line ends, bidirectional overrides, invisible characters and lone
    surrogates become ``\x1b``, ``\n``, ``\u202e`` and the like.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def count(number: int) -> str:
    """Return ``2,412,906``."""
    return f"{number:,}"


def counted(number: int, noun: str, several: str = "") -> str:
    """Return ``1 file`` or ``48 files``; ``several`` is for nouns that take no ``s``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {several or f'{noun}s'}"


def size(number: int) -> str:
    """Return bytes as ``814 B``, ``8.2 kB``, ``3.1 MB``, ``3.61 TB``."""
    value, unit = float(number), "B"
    for bigger in ("kB", "MB", "GB", "TB", "PB"):
        # A value that rounds to 1,000 of a unit is 1 of the next.
        if round(value, 0 if unit == "B" else 1) < _KILO:
            break
        value, unit = value / _KILO, bigger
    if unit == "B":
        return f"{number} B"
    return f"{value:.2f} {unit}" if unit in {"TB", "PB"} else f"{value:.1f} {unit}"


def duration(seconds: float) -> str:
    """Return ``0.2 s``, ``41 s``, ``8 min 12 s``, ``5 h 12 min``."""
    if round(seconds, 1) < _TENS:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def age(seconds: float) -> str:
    """Return a rough time span for a table: ``9 min``, ``26 h``, ``3 d``."""
    whole = max(int(seconds), 0)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < _LONG_DURATION:
        return f"{whole // _HOUR} h"
    return f"{whole // _DAY} d"


def span(seconds: float) -> str:
    """Return a time span to compare with others: ``57.7 s``, ``97 min``, ``38 h``, ``4.5 d``."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.1f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.0f} h" if seconds < 4 * _DAY else f"{seconds / _DAY:.1f} d"


def moment(value: datetime) -> str:
    """Return ``2026-11-20 11:04:09Z``."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def stamp(value: datetime) -> str:
    """Return ``2026-11-21T06:00:00.120Z``, as events carry it."""
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def share(part: int, whole: int) -> str:
    """Return ``99.99988 %``; ``100 %`` and ``0 %`` mean exactly all and none."""
    if whole in {0, part}:
        return "100 %"
    if part == 0:
        return "0 %"
    text = f"{100 * part / whole:.1f}"
    if float(text) in {0.0, 100.0}:
        text = f"{min(max(100 * part / whole, _LEAST), 100 - _LEAST):.5f}"
    return f"{text.rstrip('0').rstrip('.')} %"


def part_of(number: int, whole: int) -> str:
    """Return a part of a whole as ``90.9 % (10 of 11)``."""
    return f"{share(number, whole)} ({count(number)} of {count(whole)})"


def counts(numbers: Mapping[str, int]) -> str:
    """Return the numbers that are not 0 as ``3 created, 1 deleted``."""
    return ", ".join(f"{count(number)} {name}" for name, number in numbers.items() if number)


_MOST_NAMES: Final = 10


def some(names: Sequence[str]) -> str:
    """Return names with commas between them; of many, the first and the number of the others."""
    more = len(names) - _MOST_NAMES
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {count(more)} more" if more > 0 else shown
