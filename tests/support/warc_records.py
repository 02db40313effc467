"""A reader of WARC files, written from the standard for the tests alone."""

import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Record:
    """One record."""

    fields: dict[str, str]
    block: bytes

    @property
    def kind(self) -> str:
        """Return its type."""
        return self.fields["WARC-Type"]

    @property
    def uri(self) -> str:
        """Return its resource."""
        return self.fields["WARC-Target-URI"]

    @property
    def date(self) -> str:
        """Return its time."""
        return self.fields["WARC-Date"]


def members(data: bytes) -> Iterator[bytes]:
    """Yield what each gzip member has."""
    while data:
        unpacking = zlib.decompressobj(31)
        yield unpacking.decompress(data)
        assert unpacking.eof, "the last member is cut"
        data = unpacking.unused_data


def records(data: bytes) -> list[Record]:
    """Return the records of a file; a compressed one has one in each member."""
    if not data.startswith(b"\x1f\x8b"):
        return list(_split(data))
    found = [list(_split(member)) for member in members(data)]
    assert all(len(one) == 1 for one in found)
    return [one for (one,) in found]


def captures(data: bytes) -> list[Record]:
    """Return the records of resources, all digests checked; the first record describes the file."""
    first, *others = records(data)
    assert first.kind == "warcinfo"
    assert len({record.fields["WARC-Record-ID"] for record in others}) == len(others)
    return others


def in_wacz(path: Path) -> list[Record]:
    """Return the records of resources in a WACZ."""
    with zipfile.ZipFile(path) as package:
        names = [name for name in package.namelist() if name.startswith("archive/")]
        return [record for name in names for record in captures(package.read(name))]


def _split(data: bytes) -> Iterator[Record]:
    stream = BytesIO(data)
    while line := stream.readline():
        assert line == b"WARC/1.1\r\n"
        fields = {}
        while (line := stream.readline()) != b"\r\n":
            name, _, value = line.decode().removesuffix("\r\n").partition(": ")
            assert name not in fields
            fields[name] = value
        block = stream.read(int(fields["Content-Length"]))
        assert len(block) == int(fields["Content-Length"])
        assert stream.read(4) == b"\r\n\r\n"
        for name in {"WARC-Block-Digest", "WARC-Payload-Digest"} & fields.keys():
            if fields["WARC-Type"] != "revisit":
                algorithm, _, digest = fields[name].partition(":")
                assert hashlib.new(algorithm, block).hexdigest() == digest
        yield Record(fields, block)
