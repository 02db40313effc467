"""``Range`` requests: selected ranges of bytes, or the whole (RFC 9110 §14)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

_MAX_RANGES: Final = 16
_BYTES: Final = re.compile(r"[ \t]*bytes[ \t]*=", re.IGNORECASE)
_SPEC: Final = re.compile(r"([0-9]*)-([0-9]*)", re.ASCII)
_MOST_DIGITS: Final = 18
_MERGE_GAP: Final = 80
"""Approximate size of the head of a part, in bytes."""
_LARGEST_NUMBER: Final = 10**_MOST_DIGITS
"""Past the end of any file: longer numbers are read as this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteRange:
    """The bytes from ``start`` up to, but not including, ``stop``."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        """Return the number of bytes."""
        return self.stop - self.start


SelectedRanges = tuple[ByteRange, ...] | Literal["whole", "unsatisfiable"]
"""Result of a ``Range`` field: spans in their order with gaps between them, or a word."""


def select_ranges(field: str, size: int) -> SelectedRanges:
    """Return which bytes of a representation a ``Range`` field selects.

    Spans that overlap, or lie so near each other that a part of its own would cost more than the
    gap, are merged (§15.3.7.2). So no byte is sent twice, whatever is requested. A field of another
    unit, of wrong grammar or of more than 16 ranges selects the whole, as a server may always
    answer (§14.2).

    Args:
        field: The field's value; empty when the request has none.
        size: Bytes of the representation.

    Returns:
        Spans for a 206, ``whole`` for a 200, or ``unsatisfiable`` for a 416.
    """
    unit = _BYTES.match(field)
    if unit is None:
        return "whole"
    parts = field[unit.end() :].split(",", _MAX_RANGES)
    if len(parts) > _MAX_RANGES:
        return "whole"
    found = [_select_range(spec, size) for part in parts if (spec := part.strip(" \t"))]
    if not found or "whole" in found:
        return "whole"
    spans = sorted(
        (item for item in found if isinstance(item, ByteRange)),
        key=lambda byte_range: byte_range.start,
    )
    return _merged(spans) if spans else "unsatisfiable"


def _merged(spans: Sequence[ByteRange]) -> tuple[ByteRange, ...]:
    """Return spans, sorted by their starts, merged so that gaps remain between them."""
    merged = [spans[0]]
    for span in spans[1:]:
        last = merged[-1]
        if span.start - last.stop > _MERGE_GAP:
            merged.append(span)
        elif span.stop > last.stop:
            merged[-1] = ByteRange(start=last.start, stop=span.stop)
    return tuple(merged)


def chunk_ranges(pieces: Iterable[ByteRange | bytes], most: int) -> Iterator[ByteRange | bytes]:
    """Yield the pieces to send in order, each span in steps of at most so many bytes."""
    for piece in pieces:
        if isinstance(piece, bytes) or piece.length <= most:
            yield piece
            continue
        for start in range(piece.start, piece.stop, most):
            yield ByteRange(start=start, stop=min(start + most, piece.stop))


def is_complete(step: ByteRange | bytes, taken: bytes) -> bool:
    """True if all bytes of a step were read."""
    return isinstance(step, bytes) or len(taken) == step.length


def _select_range(text: str, size: int) -> ByteRange | Literal["whole", "unsatisfiable"]:
    spec = _SPEC.fullmatch(text)
    if spec is None or text == "-":
        return "whole"
    first, last = spec.groups()
    if not first:
        length = _number(last)
        if length == 0:
            return "unsatisfiable"
        if size == 0:
            # Satisfiable by the letter, but no Content-Range can say so.
            return "whole"
        return ByteRange(start=max(0, size - length), stop=size)
    start = _number(first)
    end = _number(last) if last else _LARGEST_NUMBER
    if end < start:
        return "whole"
    if start >= size:
        return "unsatisfiable"
    return ByteRange(start=start, stop=min(end + 1, size))


def _number(digits: str) -> int:
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) <= _MOST_DIGITS else _LARGEST_NUMBER
