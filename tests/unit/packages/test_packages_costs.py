"""What packages cost: bombs and long members, measured in a process of their own."""

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resourcesync.documents.packages.zip_directory import (
    END,
    END64,
    END64_MARK,
    END_MARK,
    FULL32,
    LOCATOR,
    LOCATOR_MARK,
)
from tests.support.commands.started import python
from tests.support.documents.packages import MANIFEST_OF_A, A, Forged, forge, sound

READ = """
import json, resource, sys, time
from resourcesync.documents.packages.reader import open_package
from resourcesync.errors import PackageError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
code, given = "", 0
with open(sys.argv[1], "rb") as file:
    try:
        for member in open_package(file, uri="http://h/p").members():
            given += sum(map(len, member.chunks()))
    except PackageError as error:
        code = error.code
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps({"code": code, "given": given, "kib": peak, "cpu": time.process_time() - start}))
"""
WRITE = """
import json, resource, sys
from tests.support.documents.packages import RESOURCES
from resourcesync.documents.packages.zip_writer import write_package
from resourcesync.model.entries import Resource
entry = Resource(uri="http://h/1", length=48 * 2**20, path="/1", media_type=sys.argv[2])
block = bytes(range(256)) * 256
with open(sys.argv[1], "wb") as file:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for piece in write_package(RESOURCES, [entry], lambda _: (block for _ in range(48 * 16))):
        file.write(piece)
print(json.dumps({"kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before}))
"""
ROOT = str(Path(__file__).parents[3])


def run(code: str, *arguments: str, home: Path) -> dict[str, Any]:
    done = python(code, *arguments, home=home, PYTHONPATH=ROOT, measured=False)
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def ratio() -> bytes:
    """200 MiB of zeros, deflated to some 200 kB."""
    deflater = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = b"".join(deflater.compress(bytes(2**20)) for _ in range(200)) + deflater.flush()
    told = {"size": 200 * 2**20}
    return forge(MANIFEST_OF_A, Forged(b"b", b"", 8, packed, local=told, central=told))


def overlap() -> bytes:
    """1,000 records of one member of 1 MiB."""
    at = len(forge(MANIFEST_OF_A)) - END.size - 46 - len(MANIFEST_OF_A.name)
    packed = zlib.compress(bytes(2**20), 9, -15)
    told = {"offset": at, "size": 2**20}
    same = [Forged(b"%d" % i, b"", 8, packed, {}, told, is_ghost=True) for i in range(999)]
    return forge(MANIFEST_OF_A, Forged(b"b", bytes(2**20), 8), *same)


def counts() -> bytes:
    """A directory of 2^62 records."""
    data = sound(A)[: -END.size]
    return (
        data
        + END64.pack(END64_MARK, 44, 45, 45, 0, 0, 2**62, 2**62, 2**62, 0)
        + LOCATOR.pack(LOCATOR_MARK, 0, len(data), 1)
        + END.pack(END_MARK, 0, 0, 0xFFFF, 0xFFFF, FULL32, FULL32, 0)
    )


def names() -> bytes:
    """Thousands of long names of many folders each."""
    return sound(A, more=[Forged(b"b/" * 1990 + b"%05d" % i) for i in range(5000)])


def tar() -> bytes:
    """A compressed tar whose first member says that it is huge, and is."""
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

    found = run(READ, str(path), home=tmp_path)

    assert found["code"] == code
    assert found["kib"] < kib
    assert found["cpu"] < 1.5


@pytest.mark.parametrize("media_type", ["text/plain", "image/png"])
def test_a_long_member_is_written_and_read_in_little_memory(
    media_type: str, tmp_path: Path
) -> None:
    path = tmp_path / "long.zip"

    written = run(WRITE, str(path), media_type, home=tmp_path)
    found = run(READ, str(path), home=tmp_path)

    assert written["kib"] < 6_000
    assert (found["code"], found["given"]) == ("", 48 * 2**20)
    assert found["kib"] < 6_000
