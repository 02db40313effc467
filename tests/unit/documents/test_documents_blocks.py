"""Packed bytes and encodings: X12, X13 and X16 of the threat model."""

import gzip
import io
import tracemalloc
import zlib

import pytest

from resourcesync.documents.reader import Limits, read_stream
from resourcesync.errors import (
    DocumentError,
    DocumentLimitError,
    MalformedDocumentError,
    TruncatedDocumentError,
)
from tests.support.documents.text import (
    URI,
    CountingStream,
    document,
    tell,
    uris,
    url,
)

HEAD = document().removesuffix(b"</urlset>\n")
KIB, MIB = 2**10, 2**20


def refused(data: bytes) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        tell(data)
    return caught.value


# --- X12, X13: gzip ----------------------------------------------------------------------------

LIST = document(*(url(f"http://a/{i}") for i in range(3)))


def test_gzip_is_told_by_its_first_bytes() -> None:
    assert tell(gzip.compress(LIST)) == tell(LIST)


def test_gzip_members_one_after_the_other_are_one_document() -> None:
    data = b"".join(gzip.compress(LIST[at : at + 7]) for at in range(0, len(LIST), 7))

    assert tell(data) == tell(LIST)


@pytest.mark.parametrize("size", [1, 7, 70_000])
def test_nuls_after_gzip_fill_up_a_block_and_mean_nothing(size: int) -> None:
    data = gzip.compress(LIST[:90]) + bytes(size) + gzip.compress(LIST[90:]) + bytes(size)

    assert tell(data) == tell(LIST)


def test_gzip_in_gzip_is_not_unpacked_twice() -> None:
    assert isinstance(refused(gzip.compress(gzip.compress(LIST))), MalformedDocumentError)


@pytest.mark.parametrize("garbage", [b"garbage", b"\0garbage", b"\x1f\x8b\x08nothing", b"<"])
def test_what_follows_gzip_and_is_no_gzip_is_refused(garbage: bytes) -> None:
    refused(gzip.compress(LIST) + garbage)


def test_damaged_gzip_is_malformed() -> None:
    packed = bytearray(gzip.compress(LIST))
    packed[-6] ^= 0xFF  # in the checksum

    error = refused(bytes(packed))

    assert isinstance(error, MalformedDocumentError)
    assert error.code == "gzip"


def test_gzip_cut_at_any_byte_is_truncated() -> None:
    packed = gzip.compress(LIST)
    for size in range(2, len(packed)):
        assert isinstance(refused(packed[:size]), TruncatedDocumentError), size


def test_a_bomb_is_stopped_at_the_limit_in_little_memory() -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = packer.compress(HEAD)
    for _ in range(24):
        bomb += packer.compress(b" " * MIB)
    bomb += packer.flush()
    assert len(bomb) < 30 * KIB

    tracemalloc.start()
    with pytest.raises(DocumentLimitError) as caught:
        list(read_stream(io.BytesIO(bomb), uri=URI, limits=Limits(bytes=4 * MIB)).entries())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert dict(caught.value.evidence)["limit"] == "4,194,304 bytes"
    assert peak < 2 * MIB


def test_endless_empty_members_are_stopped() -> None:
    empty = gzip.compress(b"")
    stream = CountingStream([gzip.compress(HEAD), *([empty * 1000] * 1000)])

    with pytest.raises(DocumentLimitError):
        list(read_stream(stream, uri=URI).entries())

    assert stream.given < MIB


# --- X16: encodings ----------------------------------------------------------------------------

ACCENTED = document(url("http://a/\u00e9\u6c34\U0001f600")).decode()


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-8"])
def test_utf_8_and_utf_16_are_read(codec: str) -> None:
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(codec, b"")
    name = codec.split("-le", maxsplit=1)[0].split("-be", maxsplit=1)[0]
    data = mark + ACCENTED.replace("UTF-8", name).encode(codec)

    assert uris(tell(data).entries) == ["http://a/\u00e9\u6c34\U0001f600"]


@pytest.mark.parametrize(
    "name", ["ISO-8859-1", "us-ascii", "UTF-7", "UTF-32", "windows-1252", "EBCDIC-CP-US", "x"]
)
def test_other_encodings_are_refused_by_their_name(name: str) -> None:
    error = refused(LIST.replace(b"UTF-8", name.encode()))

    assert isinstance(error, MalformedDocumentError)
    assert error.code == "xml-encoding"
    assert name in error.message
    assert (error.line, error.column) == (1, 1)


@pytest.mark.parametrize(
    "data",
    [
        LIST.decode().encode("utf-32"),
        b"\0\0\xfe\xff" + LIST.decode().encode("utf-32-be"),
        LIST.decode().encode("utf-16-le"),
        LIST.decode().encode("utf-16-be"),
        b"\xef\xbb\xbf" + LIST.decode().encode("utf-16"),
        b"\xef\xbb\xbf" + LIST.decode().encode("utf-16-le"),
        LIST.decode().encode("cp500"),
        LIST.replace(b"<", b"+ADw-"),
    ],
)
def test_bytes_in_other_encodings_are_malformed(data: bytes) -> None:
    error = refused(data)

    assert isinstance(error, MalformedDocumentError)
    assert error.line == 1


@pytest.mark.parametrize(
    "bad", [b"\xc0\xaf", b"\xff", b"\xed\xa0\x80", b"\xe9", b"\xf8\x88\x80\x80"]
)
def test_bytes_that_are_no_utf_8_are_malformed(bad: bytes) -> None:
    assert isinstance(refused(document(url("@")).replace(b"@", bad)), MalformedDocumentError)


def test_a_lone_surrogate_in_utf_16_is_malformed() -> None:
    data = b"\xff\xfe" + LIST.decode().replace("a/1", "a/\ud800").encode(
        "utf-16-le", "surrogatepass"
    )

    assert isinstance(refused(data), MalformedDocumentError)
