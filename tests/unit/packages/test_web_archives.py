"""The records of WARC files and the index of a WACZ, held against their standards and programs."""

import json
import zlib

import pytest

from resourcesync.documents.packages.wacz import IndexBlocks, IndexLine, index_line, sort_key
from resourcesync.documents.packages.warc import (
    Capture,
    detect_type,
    gzip_member,
    info_record,
    resource_record,
    target_uri,
)
from resourcesync.model.digests import Digest
from tests.support.warc_records import records

KEYS = {
    "http://example.com/": "com,example)/",
    "http://example.com": "com,example)/",
    "https://www.example.com/A/b.HTML": "com,example)/a/b.html",
    "http://www2.example.com/a/": "com,example)/a",
    "http://example.com:80/a": "com,example)/a",
    "https://example.com:80/a": "com,example:80)/a",
    "http://127.0.0.1:8080/a": "1,0,0,127:8080)/a",
    "http://user:secret@example.com/a": "com,example)/a",
    "http://example.com/a/./b/../c//d": "com,example)/a/c/d",
    "http://example.com/../a": "com,example)/../a",
    "http://example.com/%C3%A9%20%2520%23": "com,example)/%c3%a9%20%20%23",
    "http://example.com/%7Ea%2Fb": "com,example)/~a/b",
    "http://example.com/?b=2&A=1&a&=": "com,example)/?=&a&a=1&b=2",
    "http://example.com/?": "com,example)/",
    f"http://example.com/a?x=1&sid={'a1' * 16}&y=2": "com,example)/a?x=1&y=2",
    f"http://example.com/a?JSESSIONID={'A1' * 16}": "com,example)/a",
    "http://example.com/a?cfid=1&cftoken=2&z": "com,example)/a?z",
    f"http://example.com/a?sid={'a1' * 20}": f"com,example)/a?sid={'a1' * 20}",
}


@pytest.mark.parametrize("uri", KEYS)
def test_the_key_of_a_uri_is_what_readers_of_indexes_compute(uri: str) -> None:
    assert sort_key(uri) == KEYS[uri]


@pytest.mark.parametrize("uri", KEYS)
def test_another_program_computes_the_same_key(uri: str) -> None:
    surt = pytest.importorskip("surt", reason="the package surt is not installed")

    assert surt.surt(uri) == sort_key(uri)


@pytest.mark.parametrize(
    ("start", "media_type"),
    [
        (b"<!DOCTYPE html>", "text/html"),
        (b"\n <!-- <b> -->\n<HTML lang=en>", "text/html"),
        (b"\xef\xbb\xbf<html>", "text/html"),
        (b"<!-- one\n-->\n<body>", "text/html"),
        (b"<!-- " * 200 + b"-->" * 200, "application/octet-stream"),
        (b"<htmlx>", "application/octet-stream"),
        (b"<head><title>", "text/html"),
        (b'<?xml version="1.0"?><a/>', "application/xml"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>", "application/xml"),
        (b"%PDF-2.0", "application/pdf"),
        (b"see <html>", "application/octet-stream"),
        (b"<!--" + b"-" * 2_000 + b"--><html>", "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
)
def test_content_without_a_known_name_has_the_type_of_its_first_bytes(
    start: bytes, media_type: str
) -> None:
    assert detect_type("application/octet-stream", start) == media_type
    assert detect_type("text/plain", start) == "text/plain"


def capture(uri: str = "http://a.example/", moment: int = 0) -> Capture:
    digest = Digest("sha-256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    return Capture(uri=uri, moment=moment, length=0, digest=digest)


def test_a_uri_stays_on_its_line() -> None:
    (record,) = records(b"".join(resource_record(capture("http://a.example/é \r\nX: y"), [])))

    assert record.uri == "http://a.example/%C3%A9%20%0D%0AX:%20y"
    assert target_uri("http://[::1]/%20?a=b&c#d") == "http://[::1]/%20?a=b&c#d"


def test_facts_stay_on_their_line_and_empty_ones_are_left_out() -> None:
    facts = (("operator", "The\r\nX: y"), ("isPartOf", ""))
    (record,) = records(b"".join(info_record("a.warc", "2026-01-01T00:00:00Z", facts)))

    lines = record.block.decode().splitlines()
    assert lines[-1] == "operator: The X: y"
    assert not any(line.startswith(("X:", "isPartOf")) for line in lines)


def test_records_of_different_captures_have_different_names() -> None:
    made = [capture(), capture(moment=1), capture("http://a.example/b")]
    names = [one.record_id(kind) for one in made for kind in ("resource", "revisit")]

    assert len(set(names)) == len(names)
    assert names == [one.record_id(kind) for one in made for kind in ("resource", "revisit")]


def test_a_long_record_is_one_member_made_piece_by_piece() -> None:
    made = gzip_member(b"%06d" % number for number in range(200_000))
    unpacking = zlib.decompressobj(31)

    pieces = list(made)

    assert len(pieces) > 10
    text = b"".join(unpacking.decompress(piece) for piece in pieces)
    assert text.startswith(b"000000000001")
    assert (len(text), unpacking.eof, unpacking.unused_data) == (1_200_000, True, b"")


def test_an_index_without_lines_has_an_empty_table() -> None:
    blocks = IndexBlocks([])

    assert list(blocks) == []
    assert len(blocks.table) == 1


def test_a_line_of_an_index_tells_where_its_record_is() -> None:
    line = index_line(
        capture("http://a.example/É", 1_750_000_000_123_456),
        "ü.warc.gz",
        range(10, 30),
        is_revisit=True,
    )

    assert line.key == "example,a)/%c3%89 20250615150640"
    assert json.loads(line.fields) == {
        "url": "http://a.example/%C3%89",
        "mime": "warc/revisit",
        "digest": capture().digest_text,
        "length": "20",
        "offset": "10",
        "filename": "ü.warc.gz",
    }
    assert isinstance(line, IndexLine)
