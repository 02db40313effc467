"""Retries, pauses, robots, redirects, secrets, egress and TLS of the fetcher, on loopback."""

import socket
import ssl
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from resourcesync.adapters.clock import SystemClock
from resourcesync.errors import (
    BadResponseError,
    ResourceMissingError,
    SourceRefusedError,
    SourceUnavailableError,
)
from resourcesync.ports import Purpose, Request
from tests.support.fetching import (
    SkippingClock,
    failure,
    fetch_all,
    fetch_one,
    kept,
    quick_fetcher,
    request,
    response,
)
from tests.support.hostile_server import CLOSE, HostileServer, answer, unused_port

SECRETS = (("Authorization", "Bearer hunter2"), ("X-Api-Key", "hunter2"))


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        yield running


@pytest.fixture
def other() -> Iterator[HostileServer]:
    with HostileServer("127.0.0.2") as running:
        yield running


# --- retries, pauses, circuit ------------------------------------------------------------------


def test_requests_are_taken_only_a_few_ahead(server: HostileServer) -> None:
    server.on("*", answer(body=b"x"))
    taken = 0

    def endless() -> Iterator[Request]:
        nonlocal taken
        while True:
            taken += 1
            yield request(f"{server.origin}/{taken}")

    outcomes = quick_fetcher(server.origin, jobs=8).fetch(endless())
    for done in range(1, 200):
        response(next(outcomes))
        assert taken <= done + 8 + 16 + 64
    outcomes.close()  # type: ignore[attr-defined]  # it is a generator

    assert len(server.asked) <= 199 + 8 + 64


def test_nothing_is_taken_before_the_first_outcome_is_asked_for() -> None:
    def too_early(uri: str) -> Request:
        raise AssertionError(f"{uri} was taken too early")

    outcomes = quick_fetcher().fetch(map(too_early, ["http://h/"]))

    with pytest.raises(AssertionError, match="too early"):
        next(outcomes)


def test_giving_up_half_way_leaves_a_fetcher_that_works(server: HostileServer) -> None:
    server.on("*", answer(body=b"x" * 100_000))
    fetcher = quick_fetcher(server.origin)
    outcomes = fetcher.fetch(request(f"{server.origin}/{number}") for number in range(100))

    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]  # it is a generator
    again = fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(20)])

    assert all(len(kept(response(outcome))) == 100_000 for outcome in again)


def test_one_fetch_may_begin_within_another(server: HostileServer) -> None:
    server.on("*", answer(body=b"x"))
    fetcher = quick_fetcher(server.origin, jobs=2, per_host=2)
    uris = [f"{server.origin}/{number}" for number in range(20)]

    inner = [
        fetch_one(fetcher, server.origin + "/inner")
        for _ in fetcher.fetch(request(uri) for uri in uris)
    ]

    assert all(kept(response(outcome)) == b"x" for outcome in inner)
    assert len(inner) == 20


def test_many_requests_reach_their_own_sinks(server: HostileServer) -> None:
    server.on("*", lambda asked: answer(body=asked.target.encode() * 50))

    outcomes = fetch_all(
        quick_fetcher(server.origin), [f"{server.origin}/{number}" for number in range(300)]
    )

    assert len({outcome.request.uri for outcome in outcomes}) == 300
    for outcome in outcomes:
        target = outcome.request.uri.removeprefix(server.origin)
        assert kept(response(outcome)) == target.encode() * 50


def test_no_more_connections_than_allowed_are_opened(server: HostileServer) -> None:
    server.on("*", [0.005, *answer(body=b"x")])

    fetch_all(quick_fetcher(server.origin, per_host=3), [f"{server.origin}/{n}" for n in range(60)])

    assert server.connections == 3


def test_a_dead_host_ends_soon_for_thousands_of_requests() -> None:
    origin = f"http://127.0.0.1:{unused_port()}"
    fetcher = quick_fetcher(origin, retries=5, backoff=0.05)
    clock = SystemClock()

    started = clock.monotonic()
    outcomes = fetch_all(fetcher, [f"{origin}/{number}" for number in range(3000)])
    seconds = clock.monotonic() - started

    assert len(outcomes) == 3000
    assert {failure(outcome).error.code for outcome in outcomes} == {"connect"}
    assert fetcher.stats.requests <= 10
    assert seconds < 5


def test_a_dead_host_does_not_hold_up_another(server: HostileServer) -> None:
    dead = f"http://127.0.0.1:{unused_port()}"
    server.on("*", answer(body=b"x"))
    uris = [f"{(dead, server.origin)[number % 2]}/{number}" for number in range(200)]

    outcomes = fetch_all(quick_fetcher(dead, server.origin, backoff=0.05), uris)

    good = [outcome for outcome in outcomes if outcome.request.uri.startswith(server.origin)]
    assert len(good) == 100
    assert all(kept(response(outcome)) == b"x" for outcome in good)


def test_an_origin_that_comes_back_is_asked_again(server: HostileServer) -> None:
    port = unused_port()
    origin = f"http://127.0.0.1:{port}"
    fetcher = quick_fetcher(origin, backoff=0.01)
    before = fetch_one(fetcher, f"{origin}/x")

    with HostileServer(port=port) as back:
        back.on("/x", answer(body=b"back"))
        SystemClock().sleep(0.1)
        after = fetch_one(fetcher, f"{origin}/x")

    assert failure(before).error.code == "connect"
    assert kept(response(after)) == b"back"


def test_an_origin_that_fails_everything_is_left_alone_after_a_while(server: HostileServer) -> None:
    server.on("*", answer("503 Down"))
    fetcher = quick_fetcher(server.origin, clock=SkippingClock(), timeout=30.0)

    outcomes = fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(500)])

    assert {failure(outcome).error.evidence[0] for outcome in outcomes} == {("got", "503 Down")}
    assert len(server.asked) < 100


def test_a_broken_resource_does_not_stop_its_neighbours(server: HostileServer) -> None:
    server.on("*", answer(body=b"x"))
    for number in range(0, 60, 3):
        server.on(f"/{number}", answer("500 Broken"))

    outcomes = fetch_all(
        quick_fetcher(server.origin, retries=1), [f"{server.origin}/{n}" for n in range(60)]
    )

    assert sum(hasattr(outcome, "error") for outcome in outcomes) == 20


@pytest.mark.parametrize("status", ["429 Too Many", "503 Later"])
def test_retry_after_is_waited_for(server: HostileServer, status: str) -> None:
    server.on("/x", answer(status, Retry_After="40"), answer(body=b"x"))
    clock = SkippingClock()
    fetcher = quick_fetcher(server.origin, clock=clock, max_wait=60.0, timeout=30.0)

    outcome = response(fetch_one(fetcher, server.origin + "/x"))

    assert kept(outcome) == b"x"
    assert 39.9 < clock.slept < 45


@pytest.mark.parametrize("value", ["1e9", "-1", "soon", "", "Sat, 21 Nov 2020 00:00:00 GMT", "0"])
def test_retry_after_that_says_nothing_leaves_our_own_back_off(
    server: HostileServer, value: str
) -> None:
    server.on("/x", answer("503 Later", Retry_After=value), answer(body=b"x"))
    clock = SkippingClock()
    fetcher = quick_fetcher(server.origin, clock=clock, backoff=1.0, timeout=30.0)

    response(fetch_one(fetcher, server.origin + "/x"))

    assert 0.99 < clock.slept < 6.0


def test_a_wait_too_long_fails_at_once_for_all_of_the_origin(server: HostileServer) -> None:
    server.on("*", answer("503 Later", Retry_After="7200"))
    clock = SkippingClock()
    fetcher = quick_fetcher(server.origin, clock=clock, max_wait=60.0, timeout=30.0)

    outcomes = fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(200)])

    for outcome in outcomes:
        error = failure(outcome).error
        assert isinstance(error, SourceUnavailableError)
        assert error.retry_after is not None
        assert 7000 < error.retry_after <= 7200
    assert clock.slept < 60
    assert len(server.asked) <= 8


def test_a_paused_origin_does_not_hold_up_another(
    server: HostileServer, other: HostileServer
) -> None:
    server.on("/x", answer("503 Later", Retry_After="1"), answer(body=b"x"))
    other.on("*", answer(body=b"y"))
    fetcher = quick_fetcher(server.origin, other.origin, max_wait=5.0)
    uris = [server.origin + "/x", *(f"{other.origin}/{number}" for number in range(50))]

    outcomes = fetch_all(fetcher, uris)

    assert [outcome.request.uri for outcome in outcomes].index(uris[0]) == 50


def test_a_rate_is_kept(server: HostileServer) -> None:
    server.on("*", answer(body=b"x"))
    clock = SystemClock()

    started = clock.monotonic()
    fetch_all(quick_fetcher(server.origin, rate=50.0), [f"{server.origin}/{n}" for n in range(26)])

    assert clock.monotonic() - started >= 0.5


def test_a_bandwidth_is_kept(server: HostileServer) -> None:
    server.on("*", answer(body=b"x" * 100_000))
    clock = SystemClock()
    fetcher = quick_fetcher(server.origin, bandwidth=2_000_000)

    started = clock.monotonic()
    fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(24)])

    assert 0.8 <= clock.monotonic() - started < 3


# --- robots ------------------------------------------------------------------------------------


def test_robots_are_asked_once_and_obeyed(server: HostileServer) -> None:
    server.on("/robots.txt", answer(body=b"User-agent: *\nDisallow: /private/\n"))
    server.on("*", answer(body=b"x"))
    fetcher = quick_fetcher(server.origin, robots="obey")
    uris = [f"{server.origin}/{('private', 'open')[n % 2]}/{n}" for n in range(40)]

    outcomes = fetch_all(fetcher, uris)

    refused = [failure(outcome).error for outcome in outcomes if hasattr(outcome, "error")]
    assert len(refused) == 20
    assert {(type(error), error.code) for error in refused} == {(SourceRefusedError, "robots")}
    assert [asked.target for asked in server.asked].count("/robots.txt") == 1
    assert not any(target.startswith("/private") for target in server.targets())


def test_robots_are_not_asked_when_ignored(server: HostileServer) -> None:
    server.on("/robots.txt", answer(body=b"User-agent: *\nDisallow: /\n"))
    server.on("/x", answer(body=b"x"))

    response(fetch_one(quick_fetcher(server.origin), server.origin + "/x"))

    assert [asked.target for asked in server.asked] == ["/x"]


@pytest.mark.parametrize("status", ["404 Not Found", "403 Forbidden", "401 No", "400 Bad"])
def test_robots_that_do_not_exist_allow_everything(server: HostileServer, status: str) -> None:
    server.on("/robots.txt", answer(status))
    server.on("/x", answer(body=b"x"))
    fetcher = quick_fetcher(server.origin, robots="obey")

    response(fetch_one(fetcher, request(server.origin + "/x", Purpose.DISCOVERY)))

    assert server.targets() == ["/x"]


def test_robots_that_cannot_be_had_stop_discovery_only(server: HostileServer) -> None:
    server.on("/robots.txt", answer("503 Down"))
    server.on("/x", answer(body=b"x"))
    fetcher = quick_fetcher(server.origin, robots="obey")

    found = failure(fetch_one(fetcher, request(server.origin + "/x", Purpose.DISCOVERY)))
    listed = fetch_one(fetcher, server.origin + "/x")

    assert isinstance(found.error, SourceUnavailableError)
    assert kept(response(listed)) == b"x"


def test_robots_that_are_endless_count_as_far_as_they_are_read(server: HostileServer) -> None:
    body = b"User-agent: *\nDisallow: /private\n" + b"# x\n" * 1_000_000
    server.on("/robots.txt", answer(body=body))
    server.on("*", answer(body=b"x"))
    fetcher = quick_fetcher(server.origin, robots="obey")

    private, public = fetch_all(fetcher, [server.origin + "/private", server.origin + "/x"])

    assert {type(o.error) for o in (private, public) if hasattr(o, "error")} == {SourceRefusedError}
    assert server.targets() == ["/x"]


def test_robots_that_redirect_in_a_circle_forbid_nothing(
    server: HostileServer, other: HostileServer
) -> None:
    server.on("/robots.txt", answer("302 F", Location=other.origin + "/robots.txt"))
    other.on("/robots.txt", answer("302 F", Location=server.origin + "/robots.txt"))
    server.on("/x", answer(body=b"x"))
    other.on("/x", answer(body=b"y"))
    fetcher = quick_fetcher(server.origin, other.origin, robots="obey")

    outcomes = fetch_all(fetcher, [server.origin + "/x", other.origin + "/x"])

    assert {kept(response(outcome)) for outcome in outcomes} == {b"x", b"y"}


def test_a_crawl_delay_is_kept(server: HostileServer) -> None:
    server.on("/robots.txt", answer(body=b"User-agent: *\nCrawl-delay: 0.1\n"))
    server.on("*", answer(body=b"x"))
    fetcher = quick_fetcher(server.origin, robots="obey")
    clock = SystemClock()

    started = clock.monotonic()
    fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(6)])

    assert clock.monotonic() - started >= 0.5
    assert server.connections == 1


# --- redirects and secrets ---------------------------------------------------------------------


def test_a_redirect_is_followed_and_told(server: HostileServer) -> None:
    server.on("/a", answer("301 Moved", b"moved", Location="b"))
    server.on("/b", answer(body=b"x"))

    outcome = response(fetch_one(quick_fetcher(server.origin), server.origin + "/a"))

    assert (kept(outcome), outcome.uri, outcome.tries) == (b"x", server.origin + "/b", 1)


@pytest.mark.parametrize("hops", [5, 6])
def test_five_redirects_are_followed_and_no_more(server: HostileServer, hops: int) -> None:
    for number in range(hops):
        server.on(f"/{number}", answer("302 Found", Location=f"/{number + 1}"))
    server.on(f"/{hops}", answer(body=b"x"))

    outcome = fetch_one(quick_fetcher(server.origin), server.origin + "/0")

    assert len(server.asked) == 6
    if hops == 5:
        assert kept(response(outcome)) == b"x"
    else:
        assert failure(outcome).error.code == "redirect"


def test_a_try_after_a_redirect_starts_at_the_first_address(server: HostileServer) -> None:
    server.on("/a", answer("302 Found", Location="/b"))
    server.on("/b", answer("503 Later"), answer(body=b"x"))

    outcome = response(fetch_one(quick_fetcher(server.origin), server.origin + "/a"))

    assert server.targets() == ["/a", "/b", "/a", "/b"]
    assert outcome.tries == 2


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "data:,x"]
)
def test_a_redirect_out_of_http_is_not_followed(server: HostileServer, location: str) -> None:
    uri = server.on("/x", answer("302 Found", Location=location))

    outcome = failure(fetch_one(quick_fetcher(server.origin), uri))

    assert isinstance(outcome.error, SourceRefusedError)
    assert (outcome.error.code, outcome.tries) == ("redirect", 1)


@pytest.mark.parametrize("location", ["", "/" + "a" * 20_000, "/\u00fc", "/a b"])
def test_a_location_that_is_none_ends_the_fetch(server: HostileServer, location: str) -> None:
    uri = server.on("/x", answer("302 Found", Location=location))

    outcome = failure(fetch_one(quick_fetcher(server.origin), uri))

    assert isinstance(outcome.error, BadResponseError)
    assert outcome.error.code == "redirect"


def test_a_redirects_long_body_is_not_read(server: HostileServer) -> None:
    server.on("/a", answer("302 Found", b"x" * (8 << 20), Location="/b", Content_Encoding="gzip"))
    server.on("/b", answer(body=b"x"))
    fetcher = quick_fetcher(server.origin)

    outcome = response(fetch_one(fetcher, server.origin + "/a"))

    assert kept(outcome) == b"x"
    assert fetcher.stats.received < 1 << 20


def test_secrets_go_to_their_own_origin_only(server: HostileServer, other: HostileServer) -> None:
    server.on("/here", answer("302 Found", Location="/there"))
    server.on("/there", answer("302 Found", Location=other.origin + "/away"))
    other.on("/away", answer("302 Found", Location=server.origin + "/back"))
    server.on("/back", answer(body=b"x"))
    fetcher = quick_fetcher(server.origin, other.origin, headers={server.origin: SECRETS})

    response(fetch_one(fetcher, server.origin + "/here"))

    told = {asked.target: "hunter2" in asked.text for asked in (*server.asked, *other.asked)}
    assert told == {"/here": True, "/there": True, "/away": False, "/back": False}
    assert "referer" not in other.asked[0].fields


def test_secrets_do_not_show_in_errors(server: HostileServer) -> None:
    uri = server.on("/x?key=hunter2", answer("500 Broken"))
    fetcher = quick_fetcher(server.origin, headers={server.origin: SECRETS}, retries=0)

    error = failure(fetch_one(fetcher, uri)).error

    assert "hunter2" not in f"{error.message} {error.evidence} {error.hint}"


# --- egress ------------------------------------------------------------------------------------


def test_a_redirect_to_a_private_address_is_not_connected(
    server: HostileServer, other: HostileServer
) -> None:
    uri = server.on("/x", answer("302 Found", Location=other.origin + "/x"))

    outcome = failure(fetch_one(quick_fetcher(server.origin), uri))

    assert isinstance(outcome.error, SourceRefusedError)
    assert outcome.error.code == "egress"
    assert other.connections == 0


@pytest.mark.parametrize(
    "host",
    ["127.0.0.2", "[::1]", "169.254.169.254", "[::ffff:127.0.0.2]", "[64:ff9b::7f00:2]", "0.0.0.0",
     "127.2", "0x7f000002", "2130706434", "10.0.0.1", "[fe80::1]", "127.0.0.2."],
)  # fmt: skip
def test_a_listed_uri_at_a_private_address_is_refused(host: str) -> None:
    fetcher = quick_fetcher()

    outcome = failure(fetch_one(fetcher, f"http://{host}/x"))

    assert (outcome.error.code, outcome.tries) == ("egress", 0)
    assert fetcher.stats.requests == 0


def test_a_name_that_resolves_to_a_private_address_is_not_connected(server: HostileServer) -> None:
    outcome = failure(fetch_one(quick_fetcher(), f"http://localhost:{server.port}/x"))

    assert isinstance(outcome.error, SourceRefusedError)
    assert outcome.error.code == "egress"
    assert server.connections == 0


def test_a_name_that_the_operator_gave_may_be_private(server: HostileServer) -> None:
    origin = f"http://localhost:{server.port}"
    server.on("/x", answer(body=b"x"))

    outcome = fetch_one(quick_fetcher(origin), origin + "/x")

    assert kept(response(outcome)) == b"x"


def test_private_addresses_may_be_allowed_or_forbidden_altogether(server: HostileServer) -> None:
    uri = server.on("/x", answer(body=b"x"))

    always = fetch_one(quick_fetcher(allow_private="always"), uri)
    never = fetch_one(quick_fetcher(server.origin, allow_private="never"), uri)

    assert kept(response(always)) == b"x"
    assert failure(never).error.code == "egress"


@pytest.mark.parametrize("uri", ["http://u:p@127.0.0.1/", "file:///etc/passwd", "http://h/\n", "x"])
def test_a_uri_that_cannot_be_sent_is_refused_and_others_go_on(
    server: HostileServer, uri: str
) -> None:
    good = server.on("/x", answer(body=b"x"))

    first, second = fetch_all(quick_fetcher(server.origin), [uri, good])

    assert failure(first).error.code == "uri"
    assert kept(response(second)) == b"x"


def test_a_name_that_does_not_exist_is_told() -> None:
    outcome = failure(fetch_one(quick_fetcher(retries=1), "http://no-such-host.invalid/"))

    assert isinstance(outcome.error, SourceUnavailableError)
    assert outcome.error.code in {"dns", "connect", "timeout"}


def test_a_host_that_accepts_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        held = [socket.socket() for _ in range(4)]
        for one in held:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        origin = f"http://127.0.0.1:{port}"
        fetcher = quick_fetcher(origin, connect_timeout=0.2, retries=0, timeout=5.0)

        outcome = failure(fetch_one(fetcher, origin + "/x"))

        for one in held:
            one.close()
    assert isinstance(outcome.error, SourceUnavailableError)
    assert outcome.error.code == "timeout"


def test_a_proxy_is_used_when_configured(server: HostileServer) -> None:
    server.on("*", answer(body=b"by proxy"))
    fetcher = quick_fetcher(proxy=server.origin)

    outcome = response(fetch_one(fetcher, "http://example.org/x"))

    assert kept(outcome) == b"by proxy"
    assert server.asked[0].target == "http://example.org/x"


# --- TLS ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)


def tls_context(
    authority: trustme.CA, name: str, not_after: datetime | None = None
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, not_after=not_after).configure_cert(context)
    return context


def test_a_trusted_server_is_fetched_over_tls(authority: trustme.CA, ca_file: str) -> None:
    with HostileServer(tls=tls_context(authority, "127.0.0.1")) as server:
        server.on("*", answer(body=b"x"))
        fetcher = quick_fetcher(server.origin, ca_file=ca_file)

        outcomes = fetch_all(fetcher, [f"{server.origin}/{number}" for number in range(10)])

    assert all(kept(response(outcome)) == b"x" for outcome in outcomes)


def test_an_https_resource_is_not_followed_to_http(
    authority: trustme.CA, ca_file: str, server: HostileServer
) -> None:
    with HostileServer(tls=tls_context(authority, "127.0.0.1")) as secure:
        uri = secure.on("/x", answer("302 Found", Location=server.origin + "/x"))
        fetcher = quick_fetcher(secure.origin, server.origin, ca_file=ca_file)

        outcome = failure(fetch_one(fetcher, uri))

    assert outcome.error.code == "redirect"
    assert server.connections == 0


@pytest.mark.parametrize("fault", ["wrong host", "expired", "unknown authority", "old version"])
def test_a_server_that_cannot_be_trusted_is_refused(
    authority: trustme.CA, ca_file: str, fault: str
) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    name = "example.org" if fault == "wrong host" else "127.0.0.1"
    issuer = trustme.CA() if fault == "unknown authority" else authority
    context = tls_context(issuer, name, past if fault == "expired" else None)
    if fault == "old version":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.maximum_version = ssl.TLSVersion.TLSv1_1

    with HostileServer(tls=context) as server:
        server.on("/x", answer(body=b"x"))
        fetcher = quick_fetcher(server.origin, ca_file=ca_file)
        outcome = failure(fetch_one(fetcher, server.origin + "/x"))

    assert isinstance(outcome.error, SourceRefusedError)
    assert (outcome.error.code, outcome.tries) == ("tls", 1)
    assert not server.asked


def test_a_tls_handshake_that_does_not_come_is_given_up() -> None:
    with HostileServer() as mute:
        origin = mute.origin.replace("http:", "https:")
        fetcher = quick_fetcher(origin, connect_timeout=0.2, retries=0, timeout=5.0)

        outcome = failure(fetch_one(fetcher, origin + "/x"))

    assert isinstance(outcome.error, SourceUnavailableError)
    assert outcome.error.code == "timeout"


def test_a_missing_resource_is_told_apart_from_a_missing_host(server: HostileServer) -> None:
    outcome = failure(fetch_one(quick_fetcher(server.origin), server.on("/x", [b"", CLOSE])))
    missing = failure(fetch_one(quick_fetcher(server.origin), server.origin + "/none"))

    assert outcome.error.code == "reset"
    assert isinstance(missing.error, ResourceMissingError)
