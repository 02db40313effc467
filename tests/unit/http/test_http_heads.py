"""Heads, gzip, robots and settings; no network."""

import gzip
import zlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.adapters.http import FetchSettings
from resourcesync.adapters.http.response_head import (
    LARGEST,
    ResponseHead,
    parse_head,
    parse_retry_after,
)
from resourcesync.adapters.http.settings import ProxyRules
from resourcesync.errors import BadResponseError, ConfigurationError
from resourcesync.model.content_codings import new_decoder

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


def head(*lines: str) -> ResponseHead | None:
    return parse_head(
        "".join(f"{line}\r\n" for line in ("HTTP/1.1 200 OK", *lines, "")), "http://h/"
    )


def test_a_head_gives_its_status_and_fields() -> None:
    read = head(
        "Content-Length: 3", 'ETag:"x"', "X-Empty:", "Link: <a>", "Link: <b>", "ETag: later"
    )

    assert read is not None
    assert (read.status, read.status_line, read.length, read.codings) == (200, "200 OK", 3, ())
    assert dict(read) == {"content-length": "3", "etag": '"x"', "x-empty": "", "link": "<a>, <b>"}


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 3", "Content-Length: 4"),
        ("Content-Length: -3",),
        ("Content-Length: +3",),
        ("Content-Length: 3, 3",),
        ("Content-Length : 3",),
        ("content-length\t: 3",),
        ("Content-Length",),
        ("Content-Length:",),
        ("Content-Length: 3", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: gzip, chunked",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("X: a\0b",),
        ("X: a\rb",),
        ("X: a\nb",),
    ],
)
def test_a_head_that_leaves_the_bodys_end_in_doubt_is_refused(lines: tuple[str, ...]) -> None:
    with pytest.raises(BadResponseError) as caught:
        head(*lines)

    assert caught.value.code == "framing"


def test_a_field_whose_name_only_begins_like_another_is_another() -> None:
    read = head("Content-Length-Hint: 9", "Content-Length: 3", "Content-Encoding-X: br")

    assert read is not None
    assert (read.length, read.codings) == (3, ())


FINAL = "HTTP/1.1 200 OK\r\n"
INTERIM = "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"
LONGEST = "y" * (LARGEST - len(f"{FINAL}X: \r\n\r\n"))


@pytest.mark.parametrize(
    ("most", "more", "code"),
    [
        (FINAL + "X: y\r\n" * 100, FINAL + "X: y\r\n" * 101, "headers"),
        (f"{FINAL}X: {LONGEST}\r\n", f"{FINAL}X: {LONGEST}y\r\n", "headers"),
        (INTERIM * 10 + FINAL, INTERIM * 11 + FINAL, "interim"),
    ],
    ids=["a hundred fields", "64 KiB", "ten interim responses"],
)
def test_the_most_of_a_head_passes_and_one_more_does_not(most: str, more: str, code: str) -> None:
    passed = parse_head(f"{most}\r\n", "http://h/")

    with pytest.raises(BadResponseError) as caught:
        parse_head(f"{more}\r\n", "http://h/")

    assert passed is not None
    assert passed.status == 200
    assert caught.value.code == code


@pytest.mark.parametrize(
    "line", ["HTTP/1.1 099 X", "HTTP/1.1 20 X", "HTTP/1.1  200", "ICY 200 OK", ""]
)
def test_a_status_line_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(BadResponseError) as caught:
        parse_head(f"{line}\r\nX: y\r\n\r\n", "http://h/")

    assert caught.value.code == "framing"


@given(st.text(alphabet=st.characters(max_codepoint=255), max_size=300))
def test_any_bytes_as_a_head_are_read_or_refused(text: str) -> None:
    try:
        read = parse_head(f"HTTP/1.1 200 OK\r\n{text}\r\n\r\n", "http://h/")
    except BadResponseError:
        return

    assert read is not None
    assert read.length is None or read.length >= 0
    assert len(dict(read)) <= 101


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("1000000000", 86_400.0),
        ("99999999999999999999999", 86_400.0),
        ("Sat, 21 Nov 2026 12:02:00 GMT", 120.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0),
        ("Sat, 21 Nov 2065 11:00:00 GMT", 86_400.0),
        ("Sat, 21 Nov 2026 13:02:00 +0100", 120.0),
        ("-1", None),
        ("soon", None),
        ("", None),
        ("1.5", None),
        ("²", None),
        ("Sat, 99 Nov 2026 12:02:00 GMT", None),
    ],
)
def test_retry_after_is_understood_or_left_alone(value: str, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds


@given(st.text(max_size=60))
def test_any_text_as_retry_after_is_within_a_day(value: str) -> None:
    seconds = parse_retry_after(value, NOW)

    assert seconds is None or 0.0 <= seconds <= 86_400.0


@given(st.lists(st.binary(max_size=3000), min_size=1, max_size=5), st.integers(1, 500))
def test_members_of_gzip_in_any_pieces_are_decoded(bodies: list[bytes], size: int) -> None:
    stream = b"".join(gzip.compress(body) for body in bodies)
    decoder = new_decoder(("gzip",))
    pieces: list[bytes] = []

    for start in range(0, len(stream), size):
        pieces.extend(decoder.feed(stream[start : start + size]))

    assert b"".join(pieces) == b"".join(bodies)
    assert decoder.complete


@given(st.binary(min_size=1, max_size=2000), st.data())
def test_gzip_that_is_cut_anywhere_is_not_complete(body: bytes, data: st.DataObject) -> None:
    stream = gzip.compress(body)
    cut = data.draw(st.integers(1, len(stream) - 1))
    decoder = new_decoder(("gzip",))

    list(decoder.feed(stream[:cut]))

    assert not decoder.complete


def test_a_gzip_bomb_is_given_out_in_small_steps() -> None:
    bomb = gzip.compress(b"\0" * (16 << 20))
    decoder = new_decoder(("gzip",))

    sizes = [len(piece) for piece in decoder.feed(bomb)]

    assert max(sizes) <= 65_536
    assert sum(sizes) == 16 << 20


@pytest.mark.parametrize("size", [65_536, 65_537, 65_538, 131_074])
def test_raw_deflate_is_whole_whatever_fits_into_its_last_step(size: int) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = packer.compress(bytes(size)) + packer.flush()
    decoder = new_decoder(("deflate",))

    assert b"".join(decoder.feed(body)) == bytes(size)
    assert decoder.complete


@pytest.mark.parametrize(
    "changes",
    [
        {"jobs": 0},
        {"timeout": 0.0},
        {"rate": -1.0},
        {"bandwidth": 0},
        {"retries": -1},
        {"max_wait": -1.0},
        {"headers": {"https://h": (("X", "a\r\nB: c"),)}},
        {"headers": {"https://h": (("X:", "a"),)}},
        {"headers": {"https://h": (("", "a"),)}},
        {"headers": {"https://h/path": (("X", "a"),)}},
        {"headers": {"h": (("X", "a"),)}},
        {"contact": "a\nb"},
        {"trusted_origins": frozenset({"example.org"})},
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        FetchSettings(**changes)  # type: ignore[arg-type]  # the point of the test


def test_settings_do_not_show_their_secrets() -> None:
    settings = FetchSettings(
        headers={"https://h": (("Authorization", "hunter2"),)},
        proxies=ProxyRules(http="http://u:hunter2@p"),
    )

    assert "hunter2" not in repr(settings)
