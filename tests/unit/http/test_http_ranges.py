"""Bodies that break off and are continued, never joined from two (N15, N19, N20; F12-F14)."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.adapters.http.response_head import parse_head
from resourcesync.adapters.http.resuming import MIN_RESUMED_BYTES, is_remainder
from resourcesync.ports import FetchRequest, PartialBody, Proof
from tests.support.servers.fetching import (
    KeepingSink,
    failure,
    fetch_one,
    kept,
    quick_fetcher,
    response,
)
from tests.support.servers.hostile_server import CLOSE, RESET, Asked, HostileServer, Step, answer

BODY = random.Random(1).randbytes(8 * MIN_RESUMED_BYTES)
OTHER = random.Random(2).randbytes(8 * MIN_RESUMED_BYTES)
HALF = 4 * MIN_RESUMED_BYTES
OLD = "Mon, 01 Jan 2024 00:00:00 GMT"
TODAY = "Sat, 21 Nov 2026 00:00:00 GMT"
TAG: dict[str, Any] = {"ETag": '"v1"'}


def cut(at: int, body: bytes = BODY, how: str = CLOSE, **fields: str) -> list[Step]:
    (whole,) = answer(body=body, **fields)
    assert isinstance(whole, bytes)
    return [whole[: len(whole) - len(body) + at], 0.02, how]


def rest(at: int, body: bytes = BODY, *, said: str | None = None, **fields: str) -> list[Step]:
    said = said or f"bytes {at}-{len(body) - 1}/{len(body)}"
    return answer("206 Partial Content", body[at:], Content_Range=said, **fields)


def asked_ranges(server: HostileServer) -> list[tuple[str | None, str | None]]:
    return [(a.fields.get("range"), a.fields.get("if-range")) for a in server.asked]


@pytest.mark.parametrize("how", [CLOSE, RESET])
def test_a_body_that_breaks_off_is_continued_where_it_stopped(
    server: HostileServer, how: str
) -> None:
    uri = server.on("/x", cut(HALF, how=how, **TAG), rest_as_asked)

    outcome = response(fetch_one(quick_fetcher(server.origin), uri))

    assert kept(outcome) == BODY
    assert (outcome.status, outcome.received, outcome.tries) == (200, len(BODY), 2)
    sink = outcome.request.sink
    assert isinstance(sink, KeepingSink)
    if how == CLOSE:  # a reset may take bytes with it that were on the way
        assert asked_ranges(server) == [(None, None), (f"bytes={HALF}-", '"v1"')]
        assert sink.restarts == 0


def rest_as_asked(asked: Asked) -> list[Step]:
    asked_for = asked.fields.get("range")
    if asked_for is None:
        return answer(body=BODY, **TAG)
    return rest(int(asked_for.removeprefix("bytes=").removesuffix("-")), **TAG)


def test_a_body_that_breaks_off_again_and_again_is_put_together(server: HostileServer) -> None:
    def three_more(asked: Asked) -> list[Step]:
        at = int(asked.fields.get("range", "bytes=0-")[6:-1])
        (whole,) = rest(at, **TAG) if at else answer(body=BODY, **TAG)
        assert isinstance(whole, bytes)
        head, end, tail = whole.partition(b"\r\n\r\n")
        last = at + 3 * MIN_RESUMED_BYTES >= len(BODY)
        begun: list[Step] = [head + end + tail[: 3 * MIN_RESUMED_BYTES]]
        return begun if last else [*begun, 0.02, CLOSE]

    outcome = response(fetch_one(quick_fetcher(server.origin), server.on("/x", three_more)))

    assert kept(outcome) == BODY
    assert outcome.tries == 3


def test_an_old_last_modified_will_do_and_a_young_one_will_not(server: HostileServer) -> None:
    dates: dict[str, Any] = {"Last-Modified": OLD, "Date": TODAY}
    old = server.on("/old", cut(HALF, **dates), rest(HALF))
    young = server.on(
        "/young", cut(HALF, **(dates | {"Last-Modified": TODAY})), answer(body=BODY, **dates)
    )
    fetcher = quick_fetcher(server.origin)

    assert kept(response(fetch_one(fetcher, old))) == BODY
    assert kept(response(fetch_one(fetcher, young))) == BODY
    found = asked_ranges(server)
    assert found == [(None, None), (f"bytes={HALF}-", OLD), (None, None), (None, None)]


@pytest.mark.parametrize(
    "fields",
    [
        {"ETag": 'W/"v1"'},
        {"ETag": 'W/"v1"', "Last-Modified": OLD, "Date": TODAY},
        {"ETag": "v1"},
        {"ETag": '"' + "v" * 2000 + '"'},
        {"Last-Modified": OLD},
        {"Last-Modified": "yesterday", "Date": TODAY},
        {"Last-Modified": OLD, "Date": "-"},
        {},
    ],
)
def test_without_a_strong_validator_a_body_begins_anew(
    server: HostileServer, fields: dict[str, Any]
) -> None:
    uri = server.on("/x", cut(HALF, **fields), answer(body=BODY))

    outcome = response(fetch_one(quick_fetcher(server.origin), uri))

    assert kept(outcome) == BODY
    assert asked_ranges(server) == [(None, None)] * 2


def test_a_resource_that_changed_meanwhile_is_taken_whole(server: HostileServer) -> None:
    uri = server.on("/x", cut(HALF, **TAG), answer(body=OTHER, ETag='"v2"'))

    outcome = response(fetch_one(quick_fetcher(server.origin), uri))

    assert kept(outcome) == OTHER
    assert outcome.received == len(OTHER)


N = len(BODY)
SHORTER = OTHER[: N - MIN_RESUMED_BYTES]
DATES: dict[str, Any] = {"Last-Modified": OLD, "Date": TODAY}


@pytest.mark.parametrize(
    ("first", "wrong"),
    [
        *(
            (TAG, wrong)
            for wrong in (
                rest(HALF, OTHER, ETag='"v2"'),
                rest(HALF, OTHER),
                rest(HALF + 1, OTHER, **TAG),
                rest(0, OTHER, **TAG),
                rest(HALF, OTHER, said=f"bytes {HALF}-{N - 2}/{N}", **TAG),
                rest(HALF, OTHER, said=f"bytes {HALF}-{N - 1}/{N + 5}", **TAG),
                rest(HALF, OTHER, said=f"bytes {HALF}-{N - 1}/*", **TAG),
                rest(HALF, OTHER, said=f"items {HALF}-{N - 1}/{N}", **TAG),
                rest(HALF, OTHER, said="bytes */1", **TAG),
                rest(HALF, OTHER, said=f"bytes {HALF}-{N}/{N + 1}", **TAG),
                rest(HALF, OTHER, Content_Encoding="gzip", **TAG),
                answer(
                    "206 Partial Content", OTHER, Content_Type="multipart/byteranges; boundary=x"
                ),
                answer("206 Partial Content", OTHER, **TAG),
                answer("416 Range Not Satisfiable", Content_Range=f"bytes */{HALF}", **TAG),
                answer("416 Range Not Satisfiable", b"x" * 100_000),
                rest(HALF, SHORTER, **TAG),
                answer(body=BODY[HALF:], Content_Range=f"bytes {HALF}-{N - 1}/{N}", **TAG),
            )
        ),
        (DATES, rest(HALF, OTHER, ETag='"v2"', **DATES)),  # a tag beside the date
        (DATES, rest(HALF, OTHER, ETag='W/"v2"')),  # a tag for the date
    ],
)
def test_a_range_that_cannot_be_joined_is_thrown_away_and_all_is_fetched(
    server: HostileServer, first: dict[str, Any], wrong: list[Step]
) -> None:
    uri = server.on("/x", cut(HALF, **first), wrong, answer(body=BODY, **first))

    assert kept(response(fetch_one(quick_fetcher(server.origin), uri))) == BODY
    assert [a for a, _ in asked_ranges(server)] == [None, f"bytes={HALF}-", None]


@pytest.mark.parametrize("said", [f"bytes 5-{N - 1}/{N}", f"bytes 0-{N - 2}/{N}", "bytes 0-1/*"])
def test_a_part_is_never_taken_for_a_whole_that_was_requested(
    server: HostileServer, said: str
) -> None:
    uri = server.on("/x", answer(body=BODY, Content_Range=said, **TAG))

    assert failure(fetch_one(quick_fetcher(server.origin), uri)).error.code == "range"


def test_parts_of_two_addresses_are_not_joined(server: HostileServer) -> None:
    uri = server.on("/x", *(answer("302 Found", Location=f"/{to}") for to in "abc"))
    server.on("/a", cut(HALF, **TAG))
    server.on("/b", rest(HALF, OTHER, **TAG))
    server.on("/c", answer(body=BODY, **TAG))

    assert kept(response(fetch_one(quick_fetcher(server.origin), uri))) == BODY


def test_without_a_total_the_parts_of_a_body_are_not_joined(server: HostileServer) -> None:
    chunk = b"%x\r\n" % HALF + BODY[:HALF] + b"\r\n"
    begun = b'HTTP/1.1 200 OK\r\nETag: "v1"\r\nTransfer-Encoding: chunked\r\n\r\n' + chunk
    uri = server.on("/x", [begun, 0.02, CLOSE], answer(body=BODY, **TAG))

    assert kept(response(fetch_one(quick_fetcher(server.origin), uri))) == BODY
    assert [a for a, _ in asked_ranges(server)] == [None, None]


def test_a_rest_that_stops_before_its_own_end_is_no_rest(server: HostileServer) -> None:
    said = f"bytes {HALF}-{N - 1}/{N}"
    short = answer("206 Partial Content", BODY[HALF:-9], length=None, Content_Range=said, **TAG)
    uri = server.on("/x", cut(HALF, **TAG), [*short, CLOSE], rest_as_asked)

    assert kept(response(fetch_one(quick_fetcher(server.origin), uri))) == BODY


def test_a_206_that_nobody_asked_for_is_still_refused(server: HostileServer) -> None:
    outcome = fetch_one(quick_fetcher(server.origin), server.on("/x", rest(0, **TAG)))

    assert failure(outcome).error.code == "bad-response"


def part_request(uri: str, at: int, told: Callable[[str], None] | None = None) -> FetchRequest:
    sink = KeepingSink()
    sink.write(BODY[:at])
    return FetchRequest(
        uri=uri,
        sink=sink,
        part=PartialBody(length=at, validator='"v1"'),
        on_start=told,
        proof=Proof.BYTES,
    )


def test_a_part_of_something_else_is_forgotten_and_the_sink_told(server: HostileServer) -> None:
    told: list[str] = []
    uri = server.on("/x", answer(body=OTHER, ETag='"v2"'))

    outcome = response(
        fetch_one(quick_fetcher(server.origin), part_request(uri, HALF, told.append))
    )

    assert kept(outcome) == OTHER
    assert told == ['"v2"']


@given(st.text(max_size=40), st.integers(0, 50))
def test_nothing_but_the_exact_rest_is_ever_joined(said: str, at: int) -> None:
    safe = "".join(c for c in said if c.isascii() and c.isprintable())
    text = f'HTTP/1.1 206 X\r\nETag: "v1"\r\nContent-Range: bytes {safe}'
    head = parse_head(f"{text}\r\n\r\n", "http://h/x")
    assert head is not None

    part = PartialBody(length=at, validator='"v1"', uri="http://h/x", total=at + 7)
    if is_remainder(head, part, "http://h/x"):
        first, _, total = safe.strip().partition("/")
        start, _, last = first.partition("-")
        assert (int(start), int(last), int(total)) == (at, at + 6, at + 7)
