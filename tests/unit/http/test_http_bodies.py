"""Bodies: limits, gzip, and sinks that fail; raw sockets on loopback (N14, N17, N18)."""

import gzip

import pytest

from resourcesync.errors import BadResponseError, DiskFullError, StorageError
from resourcesync.ports import FetchRequest, Purpose
from tests.support.servers.fetching import (
    KeepingSink,
    failure,
    fetch_one,
    kept,
    quick_fetcher,
    request,
    response,
)
from tests.support.servers.hostile_server import CLOSE, Answer, HostileServer, answer, endless

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def packed(size: int) -> Answer:
    return answer(body=gzip.compress(b"\0" * size), Content_Encoding="gzip")


REFUSED: dict[str, tuple[Answer, Purpose, int | None, str]] = {
    "announced": (answer(body=b"a" * 11), Purpose.RESOURCE, 10, "too-big"),
    "to the end": ([OK + b"\r\n" + b"a" * 11, CLOSE], Purpose.RESOURCE, 10, "too-big"),
    "chunked": (
        [CHUNKED + b"b\r\n" + b"a" * 11 + b"\r\n0\r\n\r\n"],
        *(Purpose.RESOURCE, 10, "too-big"),
    ),
    "endless": (endless(OK + b"\r\n", b"a" * 65536), Purpose.RESOURCE, 10, "too-big"),
    "10^18": (
        [OK + b"Content-Length: 1000000000000000000\r\n\r\n"],
        *(Purpose.RESOURCE, 10, "too-big"),
    ),
    "a bomb as document": (packed(16 << 20), Purpose.DOCUMENT, 1 << 20, "too-big"),
    "a bomb as resource": (packed(32 << 20), Purpose.RESOURCE, None, "too-big"),
    **{
        coding: (answer(body=b"abc", Content_Encoding=coding), Purpose.DOCUMENT, None, "encoding")
        for coding in ("br", "gzip, gzip", "zstd", "gzip")
    },
}


@pytest.mark.parametrize(("script", "purpose", "limit", "code"), REFUSED.values(), ids=REFUSED)
def test_a_body_over_its_limit_or_in_another_coding_is_refused(
    server: HostileServer, script: Answer, purpose: Purpose, limit: int | None, code: str
) -> None:
    asked = request(server.on("/x", script), purpose, limit=limit)

    outcome = failure(fetch_one(quick_fetcher(server.origin), asked))

    assert isinstance(outcome.error, BadResponseError)
    assert (outcome.error.code, outcome.tries) == (code, 1)
    assert len(kept(outcome)) <= (limit or 25 << 20)


def test_a_document_in_gzip_without_its_end_is_fetched_again(server: HostileServer) -> None:
    body = gzip.compress(b"<urlset/>" * 1000)
    uri = server.on(
        "/x",
        answer(body=body[:-4], Content_Encoding="gzip"),
        answer(body=body, Content_Encoding="gzip"),
    )

    outcome = response(fetch_one(quick_fetcher(server.origin), request(uri, Purpose.DOCUMENT)))

    assert kept(outcome) == b"<urlset/>" * 1000
    assert outcome.tries == 2


class FullDisk:
    def write(self, chunk: bytes) -> None:
        raise DiskFullError("no space left")

    def restart(self) -> None:
        raise AssertionError("nothing is to be tried again")


class NoRestart(KeepingSink):
    def restart(self) -> None:
        raise StorageError("cannot truncate")


class Broken:
    def write(self, chunk: bytes) -> None:
        raise ZeroDivisionError

    def restart(self) -> None: ...


def test_a_sink_that_fails_ends_its_own_fetch_only(server: HostileServer) -> None:
    uri = server.on("/x", answer(body=b"abc"))
    cut = server.on("/cut", [OK + b"Content-Length: 10\r\n\r\nabc", CLOSE])
    sinks = [FetchRequest(uri=uri, sink=FullDisk()), FetchRequest(uri=cut, sink=NoRestart())]

    outcomes = list(quick_fetcher(server.origin).fetch([request(uri), *sinks, request(uri)]))

    failed = [failure(outcome) for outcome in outcomes if hasattr(outcome, "error")]
    assert {type(outcome.error) for outcome in failed} == {DiskFullError, StorageError}
    assert (len(failed), len(outcomes)) == (2, 4)


def test_a_fault_in_a_sink_is_not_swallowed(server: HostileServer) -> None:
    uri = server.on("/x", answer(body=b"abc"))
    fetcher = quick_fetcher(server.origin)

    with pytest.raises(ZeroDivisionError):
        fetch_one(fetcher, FetchRequest(uri=uri, sink=Broken()))

    assert kept(response(fetch_one(fetcher, uri))) == b"abc"
