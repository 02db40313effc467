"""ZIP files that two readers can read in two ways, in 14 classes.

The classes are those of the study "My ZIP isn't your ZIP" (USENIX Security 2025): redundant fields
that disagree (A), names that systems take for one (B), and structures that can be found at two
places (C).
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from tests.support.documents.packages import Forged, forge, listed, manifest

BODY: Final = b"one " * 50
OTHER: Final = b"two " * 50
_PACKED: Final = Forged(b"a", BODY, method=8).stored()


def _renamed(name: bytes, *, version: int = 1, crc: int | None = None) -> bytes:
    body = struct.pack("<BL", version, zlib.crc32(b"a") if crc is None else crc) + name
    return struct.pack("<2H", 0x7075, len(body)) + body


def _with(*members: Forged, **end: int) -> bytes:
    """Return a ZIP of members with a manifest that lists ``a``, without a hash."""
    first = Forged(b"manifest.xml", manifest(listed("/a")))
    return forge(first, *members, comment=b"", before=b"", **end)


def _member(where: str = "", /, **fields: int | bytes) -> bytes:
    """Return a ZIP whose member ``a`` has other fields in its header or in the directory."""
    return _with(_forged(where, fields))


def _forged(where: str, fields: Mapping[str, int | bytes], method: int = 0) -> Forged:
    member = Forged(b"a", BODY, method=method)
    return replace(member, local=fields) if where == "local" else replace(member, central=fields)


def _pair(name: bytes, other: bytes) -> bytes:
    return _with(Forged(b"a", BODY), Forged(name, b"x"), Forged(other, b"y"))


def _methods() -> Iterator[bytes]:
    """A1: header and directory name two methods."""
    for stored, where in ((0, "local"), (0, "central"), (8, "local"), (8, "central")):
        size = len(BODY) if stored == 0 else len(_PACKED)
        told: Mapping[str, int | bytes] = {"method": stored, "packed": size}
        yield _with(_forged(where, told, 8 - stored))


def _sizes() -> Iterator[bytes]:
    """A2: sizes disagree, by themselves, by a descriptor, or by a ZIP64 field."""
    for where in ("local", "central"):
        for key in ("packed", "size", "crc"):
            for value in (0, 1, len(BODY) - 1, len(BODY) + 1):
                yield _member(where, **{key: value})
        wide = struct.pack("<2HQQ", 1, 16, 1, 1)
        yield _member(where, packed=0xFFFFFFFF, size=0xFFFFFFFF, tail=wide)
    flags: Mapping[str, int | bytes] = {"flags": 8, "crc": 0, "packed": 0, "size": 0}
    after = b"PK\7\x08" + struct.pack("<3L", zlib.crc32(BODY), 1, 1)
    yield _with(Forged(b"a", BODY, local=flags, central={"flags": 8}, after=after))


def _names() -> Iterator[bytes]:
    """A3: names disagree, by themselves or by a field with a name in Unicode."""
    yield _member("local", raw=b"b")
    names = {"local": {"tail": _renamed(b"l")}, "central": {"tail": _renamed(b"c")}}
    yield _with(Forged(b"a", BODY, local=names["local"], central=names["central"]))
    for tail in (_renamed(b"b"), _renamed(b"b", crc=0), _renamed(b"b", version=0),
                 _renamed(b"b", version=2), _renamed(b"b") + _renamed(b"c"),
                 struct.pack("<2H", 0x7075, 0)):  # fmt: skip
        for where in ("local", "central"):
            yield _member(where, tail=tail)


def _folders() -> Iterator[bytes]:
    """A4: a folder by its name, with bytes."""
    yield _with(Forged(b"a", BODY), Forged(b"a/", b"test"))
    yield _with(Forged(b"a/", BODY))
    yield _with(Forged(b"a\\", BODY))


def _encrypted() -> Iterator[bytes]:
    """A5: only the header or only the directory says that a member is encrypted."""
    for where in ("local", "central"):
        yield _member(where, flags=1)


def _twice() -> Iterator[bytes]:
    """B1: one name twice."""
    yield _with(Forged(b"a", BODY), Forged(b"a", OTHER))
    yield _with(Forged(b"a", OTHER), Forged(b"a", BODY))
    yield _pair(b"x", b"x")


def _special() -> Iterator[bytes]:
    """B2: names that end for some readers at a special byte."""
    yield _with(Forged(b"a\0b", BODY))
    yield _with(Forged(b"a", BODY), Forged(b"a\0", OTHER))


def _paths() -> Iterator[bytes]:
    """B3: names that mean one path."""
    for other in (b"/a", b"./a", b"a/.", b"//a", b"c/../a"):
        yield _with(Forged(b"a", BODY), Forged(other, OTHER))


def _cases() -> Iterator[bytes]:
    """B4: names that differ by case."""
    yield _pair(b"test.txt", b"test.TXT")
    yield _with(Forged(b"a", BODY), Forged(b"A", OTHER))


def _streamed() -> Iterator[bytes]:
    """C1: what is read in order is not what the directory says."""
    whole = _with(Forged(b"a", BODY), Forged(b"b", OTHER))
    yield _without_last(whole)
    inner = forge(Forged(b"a", BODY))
    yield _with(Forged(b"a", BODY, after=inner))
    yield _with(Forged(b"a", BODY), Forged(b"b", inner, central={"offset": 0}))


def _without_last(whole: bytes) -> bytes:
    """Return a ZIP whose directory lacks its last member, whose bytes are there."""
    start = whole.rindex(b"PK\1\2")
    fields = list(struct.unpack("<4s4H2LH", whole[-22:]))
    length = len(whole) - 22 - start
    fields[3] -= 1
    fields[4] -= 1
    fields[5] -= length
    return whole[:start] + struct.pack("<4s4H2LH", *fields)


def _ends() -> Iterator[bytes]:
    """C2: several ends; which counts depends on where it is looked for."""
    first, second = _member(), _with(Forged(b"a", OTHER))
    yield first + second
    yield forge(Forged(b"manifest.xml", manifest(listed("/a"))), Forged(b"a", BODY),
                comment=second)  # fmt: skip
    yield first + b"\1"
    yield first[:-2] + b"\1\0"


def _counts() -> Iterator[bytes]:
    """C3: the counts or the size of the directory are wrong."""
    for end in ({"here": 1}, {"count": 1}, {"here": 1, "count": 1}, {"size": 46}, {"count": 3}):
        yield _with(Forged(b"a", BODY), **end)


def _places() -> Iterator[bytes]:
    """C4: the directory is not where the end says."""
    sound = _member()
    yield b"junk" + sound
    yield sound[:-22] + b"junk" + sound[-22:]
    yield _with(Forged(b"a", BODY), offset=0)


def _wide() -> Iterator[bytes]:
    """C5: the end has the marks of a ZIP64 end that is not there, or is another."""
    for end in ({"here": 0xFFFF, "count": 0xFFFF}, {"size": 0xFFFFFFFF}, {"offset": 0xFFFFFFFF},
                {"disk": 0xFFFF, "start": 0xFFFF}):  # fmt: skip
        yield _with(Forged(b"a", BODY), **end)
    sound = _member()
    locator = b"PK\6\7" + struct.pack("<LQL", 0, 0, 1)
    yield sound[:-22] + locator + sound[-22:]


CLASSES: Final = {
    "A1 methods": _methods,
    "A2 sizes": _sizes,
    "A3 names": _names,
    "A4 folders": _folders,
    "A5 encryption": _encrypted,
    "B1 one name twice": _twice,
    "B2 special bytes": _special,
    "B3 paths": _paths,
    "B4 case": _cases,
    "C1 read in order": _streamed,
    "C2 ends": _ends,
    "C3 counts": _counts,
    "C4 places": _places,
    "C5 ZIP64": _wide,
}
CASES: Final = {
    f"{name}, {number}": data
    for name, made in CLASSES.items()
    for number, data in enumerate(made(), 1)
}
"""Every case; its name begins with that of its class."""
