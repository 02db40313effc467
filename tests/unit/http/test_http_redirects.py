"""Where the fetcher goes, and what it takes along: redirects, secrets, egress (N01-N08)."""

import socket
from random import Random

import pytest

from resourcesync.adapters.http import FetchSettings
from resourcesync.adapters.http.origins import Origins
from resourcesync.adapters.http.politeness import KnownOrigins
from resourcesync.adapters.system import SystemClock
from resourcesync.errors import BadResponseError, SourceRefusedError, SourceUnavailableError
from tests.support.servers.fetching import (
    failure,
    fetch_all,
    fetch_one,
    kept,
    quick_fetcher,
    response,
)
from tests.support.servers.hostile_server import HostileServer, answer

SECRETS = (("Authorization", "Bearer hunter2"), ("X-Api-Key", "hunter2"))


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
        assert failure(outcome).error.code == "location"


@pytest.mark.parametrize("location", ["", "/" + "a" * 20_000, "/a\tb"])
def test_a_location_that_is_none_ends_the_fetch(server: HostileServer, location: str) -> None:
    uri = server.on("/x", answer("302 Found", Location=location))

    outcome = failure(fetch_one(quick_fetcher(server.origin), uri))

    assert isinstance(outcome.error, BadResponseError)
    assert outcome.error.code == "location"


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


def test_what_leads_to_a_private_address_is_not_connected(
    server: HostileServer, other: HostileServer
) -> None:
    uri = server.on("/x", answer("302 Found", Location=other.origin + "/x"))

    redirected = failure(fetch_one(quick_fetcher(server.origin), uri))
    resolved = failure(fetch_one(quick_fetcher(), f"http://localhost:{other.port}/x"))

    for outcome in (redirected, resolved):
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


def test_private_addresses_may_be_allowed_or_forbidden_altogether(server: HostileServer) -> None:
    uri = server.on("/x", answer(body=b"x"))

    always = fetch_one(quick_fetcher(allow_private="always"), uri)
    never = fetch_one(quick_fetcher(server.origin, allow_private="never"), uri)
    name = f"http://localhost:{server.port}"
    given = fetch_one(quick_fetcher(name), f"{name}/x")

    assert kept(response(always)) == kept(response(given)) == b"x"
    assert failure(never).error.code == "egress"


class Reached(KnownOrigins):
    """Where names led first."""

    def __init__(self, **places: bool) -> None:
        self.places = places

    def recall_reach(self, host: str) -> bool | None:
        return self.places.get(host)

    def remember_reach(self, host: str, *, is_public: bool) -> None:
        self.places.setdefault(host, is_public)


def test_a_name_that_led_to_a_public_address_may_not_turn_private_in_the_same_run() -> None:
    known, names = Reached(), ("http://museum.example", "https://museum.example")
    settings = FetchSettings(trusted_origins=frozenset(names[:1]), source_host="museum.example")
    origins = Origins(settings, Random(1), SystemClock(), known)
    plain, secure = (origins.find(name, name) for name in names)
    assert [origin.private for origin in (plain, secure)] == [True, True]

    origins.learn_reach(plain, "93.184.215.14")

    assert [origin.private for origin in (plain, secure)] == [False, False]
    assert known.places == {"museum.example": True}
    later = Origins(settings, Random(1), SystemClock(), known)
    assert not later.find(names[1], names[1]).private


@pytest.mark.parametrize(
    ("name", "private"),
    [
        ("http://10.0.0.1", True),
        ("https://10.0.0.1", True),
        ("https://[fd00::1]", True),
        ("http://10.0.0.1:8080", False),
        ("https://10.0.0.1:8443", False),
        ("http://10.0.0.2", False),
    ],
)
def test_an_origin_named_over_http_is_trusted_over_https_too(name: str, private: bool) -> None:
    settings = FetchSettings(trusted_origins=frozenset({"http://10.0.0.1:80", "http://[fd00::1]"}))
    origins = Origins(settings, Random(1), SystemClock(), KnownOrigins())

    try:
        found = origins.find(name, name).private
    except SourceRefusedError:
        found = False

    assert found is private


@pytest.mark.parametrize("uri", ["x", "http://[1:2]/", "http://h:0/"])
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
        for item in held:
            item.setblocking(False)
            item.connect_ex(("127.0.0.1", port))
        origin = f"http://127.0.0.1:{port}"
        fetcher = quick_fetcher(origin, connect_timeout=0.2, retries=0, timeout=5.0)

        outcome = failure(fetch_one(fetcher, origin + "/x"))

        for item in held:
            item.close()
    assert isinstance(outcome.error, SourceUnavailableError)
    assert outcome.error.code == "timeout"
