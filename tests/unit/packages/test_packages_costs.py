"""What packages cost: bombs and long members."""

import gzip
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resourcesync.documents.packages.reader import open_package
from resourcesync.documents.packages.zip_directory import (
    END,
    END64,
    END64_MARK,
    END_MARK,
    FULL32,
    LOCATOR,
    LOCATOR_MARK,
)
from resourcesync.documents.packages.zip_writer import write_package
from resourcesync.errors import PackageError
from resourcesync.model.entries import Resource
from tests.support.documents.packages import MANIFEST_OF_A, RESOURCES, A, Forged, forge, sound


@contextmanager
def at_most(kib: int) -> Iterator[None]:
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < kib * 1024


def read(path: Path) -> tuple[str, int]:
    """Return the code of the error, and the bytes of all members that were given."""
    given = 0
    with path.open("rb") as file:
        try:
            for member in open_package(file, uri="http://h/p").members():
                given += sum(map(len, member.chunks()))
        except PackageError as error:
            return error.code, given
    return "", given


def ratio() -> bytes:
    deflater = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = b"".join(deflater.compress(bytes(2**20)) for _ in range(200)) + deflater.flush()
    told = {"size": 200 * 2**20}
    return forge(MANIFEST_OF_A, Forged(b"b", b"", 8, packed, local=told, central=told))


def overlap() -> bytes:
    at = len(forge(MANIFEST_OF_A)) - END.size - 46 - len(MANIFEST_OF_A.name)
    packed = zlib.compress(bytes(2**20), 9, -15)
    told = {"offset": at, "size": 2**20}
    same = [Forged(b"%d" % i, b"", 8, packed, {}, told, is_ghost=True) for i in range(999)]
    return forge(MANIFEST_OF_A, Forged(b"b", bytes(2**20), 8), *same)


def counts() -> bytes:
    data = sound(A)[: -END.size]
    return (
        data
        + END64.pack(END64_MARK, 44, 45, 45, 0, 0, 2**62, 2**62, 2**62, 0)
        + LOCATOR.pack(LOCATOR_MARK, 0, len(data), 1)
        + END.pack(END_MARK, 0, 0, 0xFFFF, 0xFFFF, FULL32, FULL32, 0)
    )


def names() -> bytes:
    return sound(A, more=[Forged(b"b/" * 1990 + b"%05d" % i) for i in range(5000)])


def tar() -> bytes:
    header = bytearray(512)
    header[:1], header[124:135], header[156:157] = b"a", b"07777777777", b"0"
    header[148:156] = b"%06o\0 " % (sum(header) + 8 * 0x20)
    return gzip.compress(bytes(header)) + gzip.compress(bytes(2**20)) * 200


@pytest.mark.parametrize(
    ("make", "code", "kib"),
    [
        (ratio, "zip-ratio", 6_000),
        (overlap, "zip-overlap", 6_000),
        (counts, "zip-overlap", 6_000),
        (tar, "tar-ratio", 6_000),
        (names, "", 120_000),
    ],
)
def test_a_bomb_costs_little(
    make: Callable[[], bytes], code: str, kib: int, tmp_path: Path
) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(make())
    start = time.process_time()

    assert read(path)[0] == code

    assert time.process_time() - start < 1.5
    with at_most(kib):
        read(path)


@pytest.mark.parametrize("media_type", ["text/plain", "image/png"])
def test_a_long_member_is_written_and_read_in_little_memory(
    media_type: str, tmp_path: Path
) -> None:
    path = tmp_path / "long.zip"
    entry = Resource(uri="http://h/1", length=48 * 2**20, path="/1", media_type=media_type)
    block = bytes(range(256)) * 256

    with at_most(6_000), path.open("wb") as file:
        file.writelines(write_package(RESOURCES, [entry], lambda _: (block for _ in range(768))))

    with at_most(6_000):
        assert read(path) == ("", 48 * 2**20)
