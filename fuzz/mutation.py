"""Inputs changed at random: bytes flipped, pieces cut, moved, repeated, or taken from others."""

from collections.abc import Sequence
from random import Random
from typing import Final

INTERESTING: Final = (
    b"\0",
    b"\xff",
    b"\xfe\xff",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\x1f\x8b",
    b"PK\x03\x04",
    b"PK\x01\x02",
    b"PK\x05\x06",
    b"PK\x06\x06",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\0\0\0\x80",
    b"<!DOCTYPE urlset>",
    b"<![CDATA[",
    b"]]>",
    b"<!--",
    b"-->",
    b"<?",
    b"?>",
    b"&#0;",
    b"&#xD800;",
    b"&x;",
    b"&amp;",
    b"</",
    b"/>",
    b"<",
    b">",
    b'"',
    b"'",
    b"=",
    b":",
    b"-",
    b"\\",
    b"/../",
    b" ",
    b"\n",
    b"9" * 30,
    b"xmlns=''",
    b"\xe2\x80\xae",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
)

MAX_SIZE: Final = 65_536
"""Bytes of one input: more finds nothing and takes long."""


def mutate(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Return the input changed in one to eight places."""
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        data = _CHANGES[random.randrange(len(_CHANGES))](random, data, others)
    return data[:MAX_SIZE]


def _span(random: Random, data: bytes, most: int = 64) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.randrange(1, most))


def _flip(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    if not data:
        return b"\0"
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]


def _byte(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    start, _ = _span(random, data)
    return data[:start] + bytes([random.randrange(256)]) + data[start + 1 :]


def _insert(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    start, _ = _span(random, data)
    return data[:start] + random.choice(INTERESTING) + data[start:]


def _overwrite(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    start, _ = _span(random, data)
    piece = random.choice(INTERESTING)
    return data[:start] + piece + data[start + len(piece) :]


def _cut(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    start, end = _span(random, data)
    return data[:start] + data[end:]


def _truncate(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _repeat(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    start, end = _span(random, data)
    return data[:start] + data[start:end] * random.choice((2, 3, 40)) + data[end:]


def _move(random: Random, data: bytes, _others: Sequence[bytes]) -> bytes:
    start, end = _span(random, data)
    rest = data[:start] + data[end:]
    at = random.randrange(len(rest) + 1)
    return rest[:at] + data[start:end] + rest[at:]


def _splice(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = random.choice(others)
    start, end = _span(random, other, 200)
    at, _ = _span(random, data)
    return data[:at] + other[start:end] + data[at:]


def _cross(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = random.choice(others)
    return data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :]


_CHANGES: Final = (
    _flip,
    _byte,
    _insert,
    _overwrite,
    _cut,
    _truncate,
    _repeat,
    _move,
    _splice,
    _cross,
)
