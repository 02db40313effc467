"""``Range`` requests: one range of bytes, or the whole (RFC 9110 §14)."""

import re
from dataclasses import dataclass
from typing import Final, Literal

_MAX_RANGES: Final = 16
_BYTES: Final = re.compile(r"[ \t]*bytes[ \t]*=", re.IGNORECASE)
_SPEC: Final = re.compile(r"([0-9]*)-([0-9]*)", re.ASCII)
_MOST_DIGITS: Final = 18
_BEYOND: Final = 10**_MOST_DIGITS
"""Past the end of any file: what a longer number is read as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The bytes from ``start`` up to, but not including, ``stop``."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        """How many bytes they are."""
        return self.stop - self.start


def select(field: str, size: int) -> Span | Literal["whole", "unsatisfiable"]:
    """Return which bytes of a representation a ``Range`` field selects.

    A field of another unit, of wrong grammar or of several ranges selects the whole, as a server
    may always answer (§14.2): a list of ranges costs more than it is worth here, and is the usual
    way to attack one.

    Args:
        field: The field's value; empty when the request has none.
        size: Bytes of the representation.

    Returns:
        One span for a 206, ``whole`` for a 200, or ``unsatisfiable`` for a 416.
    """
    unit = _BYTES.match(field)
    if unit is None:
        return "whole"
    parts = field[unit.end() :].split(",", _MAX_RANGES)
    if len(parts) > _MAX_RANGES:
        return "whole"
    specs = [part for part in (part.strip(" \t") for part in parts) if part]
    if len(specs) != 1:
        return "whole"
    return _select_one(specs[0], size)


def _select_one(text: str, size: int) -> Span | Literal["whole", "unsatisfiable"]:
    spec = _SPEC.fullmatch(text)
    if spec is None or text == "-":
        return "whole"
    first, last = spec.groups()
    if not first:
        return _select_suffix(_number(last), size)
    start = _number(first)
    end = _number(last) if last else _BEYOND
    if end < start:
        return "whole"
    if start >= size:
        return "unsatisfiable"
    return Span(start=start, stop=min(end + 1, size))


def _select_suffix(length: int, size: int) -> Span | Literal["whole", "unsatisfiable"]:
    if length == 0:
        return "unsatisfiable"
    if size == 0:
        # Satisfiable by the letter, but no Content-Range can say so.
        return "whole"
    return Span(start=max(0, size - length), stop=size)


def _number(digits: str) -> int:
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) <= _MOST_DIGITS else _BEYOND
