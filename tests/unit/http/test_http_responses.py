"""What hostile servers answer, and what becomes of it; raw sockets on loopback (N07-N28)."""

import gzip
from typing import Any

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.errors import (
    BadResponseError,
    DiskFullError,
    ResourceMissingError,
    SourceRefusedError,
    SourceUnavailableError,
    StorageError,
)
from resourcesync.ports import FetchRequest, Proof, Purpose
from tests.support.servers import hostile_server
from tests.support.servers.fetching import (
    KeepingSink,
    failure,
    fetch_all,
    fetch_one,
    kept,
    quick_fetcher,
    request,
    response,
)
from tests.support.servers.hostile_server import (
    CLOSE,
    RESET,
    Answer,
    HostileServer,
    Step,
    answer,
    endless,
)

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def test_head_tells_the_fields_and_leaves_the_sink_empty(server: HostileServer) -> None:
    fetcher = quick_fetcher(server.origin)
    uri = server.on("/x", [OK + b"Content-Length: 5000000000\r\n\r\n", CLOSE])
    other = server.on("/y", answer(body=b"abc"))

    asked = response(fetch_one(fetcher, request(uri, is_head=True)))
    after = response(fetch_one(fetcher, other))

    assert (asked.status, asked.headers["content-length"], kept(asked)) == (200, "5000000000", b"")
    assert kept(after) == b"abc", "the next request is a GET again"
    assert [asked.text.partition(" ")[0] for asked in server.asked] == ["HEAD", "GET"]


@pytest.mark.parametrize(
    ("status", "kind"), [(403, SourceRefusedError), (404, ResourceMissingError)]
)
def test_head_is_refused_as_get_is(
    server: HostileServer, status: int, kind: type[Exception]
) -> None:
    uri = server.on("/x", [f"HTTP/1.1 {status} No\r\nContent-Length: 9\r\n\r\n".encode(), CLOSE])

    outcome = failure(fetch_one(quick_fetcher(server.origin), request(uri, is_head=True)))

    assert isinstance(outcome.error, kind)


def test_cookies_are_not_kept(server: HostileServer) -> None:
    uri = server.on("/x", answer(Set_Cookie="a=b"))

    fetch_all(quick_fetcher(server.origin, jobs=1), [uri, uri])

    assert all("cookie" not in asked.fields for asked in server.asked)


def test_proxies_of_the_environment_are_not_used(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    outcome = fetch_one(quick_fetcher(server.origin), server.on("/x", answer(body=b"x")))

    assert kept(response(outcome)) == b"x"


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        ("404 Not Found", ResourceMissingError, "missing"),
        ("410 Gone", ResourceMissingError, "missing"),
        ("401 Unauthorized", SourceRefusedError, "refused"),
        ("403 Forbidden", SourceRefusedError, "refused"),
        ("407 Proxy Authentication Required", SourceRefusedError, "refused"),
        ("451 Unavailable For Legal Reasons", SourceRefusedError, "refused"),
        ("400 Bad Request", BadResponseError, "bad-response"),
        ("501 Not Implemented", BadResponseError, "bad-response"),
        ("505 HTTP Version Not Supported", BadResponseError, "bad-response"),
        ("206 Partial Content", BadResponseError, "bad-response"),
        ("203 Non-Authoritative Information", BadResponseError, "bad-response"),
        ("300 Multiple Choices", BadResponseError, "bad-response"),
        ("304 Not Modified", BadResponseError, "bad-response"),
        ("999 What", BadResponseError, "bad-response"),
    ],
)
def test_a_status_that_stays_is_asked_for_once(
    server: HostileServer, status: str, kind: type[Exception], code: str
) -> None:
    uri = server.on("/x?token=secret", answer(status, b"abc"))

    outcome = failure(fetch_one(quick_fetcher(server.origin), uri))

    assert type(outcome.error) is kind
    assert (outcome.error.code, outcome.tries, kept(outcome)) == (code, 1, b"")
    assert ("got", status) in outcome.error.evidence
    assert "secret" not in str(outcome.error.evidence)
    assert len(server.asked) == 1


def test_what_a_server_says_cannot_steer_a_terminal(server: HostileServer) -> None:
    uri = server.on("/x", answer("404 \x1b[2Jgone" + "!" * 200))

    error = failure(fetch_one(quick_fetcher(server.origin), uri)).error

    assert all(text.isprintable() and len(text) < 200 for _, text in error.evidence)


@pytest.mark.parametrize(
    "script",
    [
        [OK + b"Content-Length: 10\r\n\r\nabc", CLOSE],
        [CHUNKED + b"5\r\nab", CLOSE],
        [CHUNKED + b"3\r\nabc\r\n", CLOSE],
        [OK + b"Content-Length: 10\r\n\r\nabc", 0.05, RESET],
        [CLOSE],
        [RESET],
        [b"HTTP/1.1 200 OK\r\nContent-Le", CLOSE],
    ],
)
def test_what_is_cut_short_is_fetched_again_from_the_start(
    server: HostileServer, script: list[Step]
) -> None:
    uri = server.on("/x", script, answer(body=b"whole"))

    outcome = response(fetch_one(quick_fetcher(server.origin), uri))

    assert kept(outcome) == b"whole"
    assert outcome.tries == 2
    assert outcome.received == 5
    sink = outcome.request.sink
    assert isinstance(sink, KeepingSink)
    assert sink.restarts == 1


def test_a_body_always_cut_short_says_so(server: HostileServer) -> None:
    uri = server.on("/x", [OK + b"Content-Length: 10\r\n\r\nabc", CLOSE])

    outcome = failure(fetch_one(quick_fetcher(server.origin, retries=1), uri))

    assert (outcome.error.code, outcome.tries) == ("truncated", 2)
    assert outcome.error.transient


BAD_HEADS: dict[str, list[Step]] = {
    "two lengths": [OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"],
    "length beyond numbers": [OK + b"Content-Length: 99999999999999999999999\r\n\r\nabc"],
    "chunk size overflow": [CHUNKED + b"FFFFFFFFFFFFFFFFFF\r\nab"],
    "chunk size nonsense": [CHUNKED + b"zz\r\nab"],
    "bare LF": [b"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc"],
    "no head": [b"hello world", CLOSE],
    "switching": [b"HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc", CLOSE],
    "one long line": [OK + b"X: " + b"a" * 1_000_000 + b"\r\n\r\nabc", CLOSE],
    "101 fields": [OK + b"X: a\r\n" * 101 + b"\r\nabc", CLOSE],
    "11 interim": [b"HTTP/1.1 103 E\r\n\r\n" * 11 + answer(body=b"abc")[0]],  # type: ignore[operator]  # bytes
    "coding unasked": answer(body=b"abc", Content_Encoding="br"),
}


@pytest.mark.parametrize("name", BAD_HEADS)
def test_an_answer_in_doubt_is_refused_at_once(server: HostileServer, name: str) -> None:
    uri = server.on("/x", BAD_HEADS[name])

    outcome = failure(fetch_one(quick_fetcher(server.origin), uri))

    assert isinstance(outcome.error, BadResponseError), outcome.error.evidence
    assert outcome.error.code in {"framing", "protocol", "headers", "interim", "encoding"}
    assert (outcome.tries, kept(outcome)) == (1, b"")


TOO_MUCH = {"headers", "interim"}
ENDLESS: dict[str, tuple[Answer, float, set[str]]] = {
    "headers": (hostile_server.endless(OK, b"X: a\r\n" * 1000), 30.0, TOO_MUCH),
    "interim responses": (
        hostile_server.endless(b"", b"HTTP/1.1 103 E\r\nLink: <x>\r\n\r\n" * 100),
        *(30.0, TOO_MUCH),
    ),
    "trailers": (
        hostile_server.endless(CHUNKED + b"1\r\na\r\n0\r\n", b"X: a\r\n" * 1000),
        *(30.0, TOO_MUCH),
    ),
    **{
        f"a trickle of {what}": (hostile_server.endless(begun, more, pause), 0.3, {"too-slow"})
        for what, begun, more, pause in (
            ("silence", b"", b"", 0.05),
            ("a head", OK, b"X", 0.05),
            ("a body", OK + b"Content-Length: 100000\r\n\r\n", b"a", 0.05),
            ("chunks", CHUNKED, b"1\r\na\r\n", 0.05),
            ("the size of a chunk", CHUNKED, b"0", 0.05),
            ("a trailer", CHUNKED + b"1\r\na\r\n0\r\nX:", b"a", 0.05),
            ("interim responses", b"", b"HTTP/1.1 103 E\r\n\r\n", 0.3),
        )
    },
}


@pytest.mark.parametrize(("script", "timeout", "codes"), ENDLESS.values(), ids=ENDLESS)
def test_what_never_ends_or_only_trickles_is_given_up(
    server: HostileServer, script: Answer, timeout: float, codes: set[str]
) -> None:
    uri = server.on("/x", script)

    outcome = failure(fetch_one(quick_fetcher(server.origin, timeout=timeout, retries=0), uri))

    kind = BadResponseError if codes is TOO_MUCH else SourceUnavailableError
    assert isinstance(outcome.error, kind)
    assert outcome.error.code in codes


@pytest.mark.parametrize("purpose", [Purpose.DOCUMENT, Purpose.RESOURCE])
@pytest.mark.parametrize("framing", [b"Content-Length: 1000\r\n", b"Connection: close\r\n"])
def test_a_body_has_a_deadline_however_steady_it_comes(
    server: HostileServer, purpose: Purpose, framing: bytes
) -> None:
    uri = server.on("/x", hostile_server.endless(OK + framing + b"\r\n", b"a" * 20, 0.05))
    fetcher = quick_fetcher(server.origin, minimum_rate=1, deadline=0.4, retries=0)

    outcome = failure(fetch_one(fetcher, request(uri, purpose)))

    assert outcome.error.code == "too-slow"


STEADY: tuple[Step, ...] = (b"a" * 200, 0.05) * 10
LATE: tuple[Step, ...] = (b"a", 0.7, b"a" * 1999)


@pytest.mark.parametrize(
    ("framing", "body", "limit", "rates"),
    [
        (b"Content-Length: 2000\r\n", LATE, None, {"deadline_rate": 1000}),
        (b"Connection: close\r\n", LATE, 2000, {"deadline_rate": 1000}),
        (b"Connection: close\r\n", STEADY, None, {"deadline_rate": 3000}),
        (b"Content-Length: 2000\r\n", STEADY, None, {"bandwidth": 4000}),
    ],
    ids=["announced", "listed", "what came", "share of the bandwidth"],
)
def test_a_bodys_deadline_grows_with_its_size(
    server: HostileServer,
    framing: bytes,
    body: tuple[Step, ...],
    limit: int | None,
    rates: dict[str, Any],
) -> None:
    uri = server.on("/x", [OK + framing + b"\r\n", *body, CLOSE])
    fetcher = quick_fetcher(server.origin, minimum_rate=1, deadline=0.2, **rates)

    outcome = response(fetch_one(fetcher, request(uri, limit=limit, proof=Proof.BYTES)))

    assert (kept(outcome), outcome.tries) == (b"a" * 2000, 1)


def test_the_time_the_caller_takes_is_not_the_servers(server: HostileServer) -> None:
    slow = server.on("/slow", [0.3, *answer(body=b"slow")])
    quick = server.on("/quick", answer(body=b"quick"))
    fetcher = quick_fetcher(server.origin, timeout=0.6, retries=0)
    bodies = []

    for outcome in fetcher.fetch([request(quick), request(slow)]):
        bodies.append(kept(response(outcome)))
        if len(bodies) == 1:
            SystemClock().sleep(1.0)

    assert sorted(bodies) == [b"quick", b"slow"]


def test_a_condition_is_sent_and_304_is_an_answer(server: HostileServer) -> None:
    server.on("/x", answer("304 Not Modified", length=None, ETag='"1"'))
    uri, date = server.on("/m", answer("301 Moved", Location="x")), "Sat, 21 Nov 2026 00:00:00 GMT"
    asked = request(uri, etag='"1"', last_modified=date, uncached=True)

    outcome = response(fetch_one(quick_fetcher(server.origin), asked))

    assert (outcome.status, outcome.received, kept(outcome)) == (304, 0, b"")
    sent, behind = server.asked[0].fields, server.asked[1].fields
    assert (sent["if-none-match"], sent["if-modified-since"]) == (behind["if-none-match"], date)
    assert "if-modified-since" not in behind, "another page may be older"
    assert sent["cache-control"] == "no-cache"


def test_bytes_after_a_body_do_not_poison_the_next_answer(server: HostileServer) -> None:
    poison = answer(body=b"good")[0]
    assert isinstance(poison, bytes)
    server.on("/a", [poison + answer(body=b"evil")[0]])  # type: ignore[operator]  # bytes
    server.on("/b", answer(body=b"sound"))
    fetcher = quick_fetcher(server.origin, jobs=1)

    outcomes = fetch_all(fetcher, [server.origin + "/a", server.origin + "/b"])

    assert [kept(response(outcome)) for outcome in outcomes] == [b"good", b"sound"]
    assert server.connections == 2


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
