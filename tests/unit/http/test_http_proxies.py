"""Fetching by a proxy, and with authorities of one's own; real sockets on loopback (N29, N30)."""

import ssl
from base64 import b64encode

import pytest
import trustme

from resourcesync.adapters.http.settings import ProxyRules
from resourcesync.errors import SourceError, SourceRefusedError, SourceUnavailableError
from resourcesync.ports import Purpose
from tests.support.commands.run import free_port
from tests.support.servers.fetching import (
    failure,
    fetch_all,
    fetch_one,
    kept,
    quick_fetcher,
    request,
    response,
)
from tests.support.servers.hostile_server import HostileServer, answer
from tests.support.servers.proxying import Proxy

SECRET = ("üser", "p4ss:w@rdé")


def tls(authority: trustme.CA, name: str = "127.0.0.1") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def evidence(error: SourceError) -> dict[str, str]:
    return dict(error.evidence)


def test_https_goes_through_a_tunnel_in_which_the_proxy_sees_no_secret(
    authority: trustme.CA, ca_file: str
) -> None:
    name = "museum.example"
    with HostileServer(tls=tls(authority, name)) as secure:
        secure.on("*", answer(body=b"x"))
        with Proxy(places={f"{name}:443": (secure.host, secure.port)}) as proxy:
            fetcher = quick_fetcher(
                proxy=proxy.origin,
                ca_file=ca_file,
                contact="mailto:ops@example.org",
                headers={f"https://{name}": (("Authorization", "Bearer own-s3cret"),)},
            )
            outcomes = fetch_all(fetcher, [f"https://{name}/{number}" for number in range(3)])
            fetcher.close()

    assert [kept(response(outcome)) for outcome in outcomes] == [b"x"] * 3
    assert {asked.fields["authorization"] for asked in secure.asked} == {"Bearer own-s3cret"}
    assert set(proxy.targets()) == {f"CONNECT {name}:443"}
    for asked in proxy.asked:
        assert not {"authorization", "from"} & asked.fields.keys()
        assert "s3cret" not in asked.text


def test_the_proxys_secret_goes_to_the_proxy_only(authority: trustme.CA, ca_file: str) -> None:
    with HostileServer(tls=tls(authority)) as secure, HostileServer() as plain:
        for server in (secure, plain):
            server.on("*", answer(body=b"x"))
        with Proxy() as proxy:
            fetcher = quick_fetcher(
                secure.origin,
                plain.origin,
                proxy=proxy.origin,
                proxy_secret=SECRET,
                ca_file=ca_file,
            )
            for server in (secure, plain):
                response(fetch_one(fetcher, server.origin + "/x"))
            fetcher.close()

    sent = {asked.fields.get("proxy-authorization") for asked in proxy.asked}
    assert sent == {"Basic " + b64encode(":".join(SECRET).encode()).decode()}
    assert len(proxy.asked) == 2
    for server in (secure, plain):
        assert "proxy-authorization" not in server.asked[0].fields


def test_the_environment_keeps_no_host_from_the_proxy(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("/x", answer(body=b"x"))
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("no_proxy", "*")
    with Proxy() as proxy:
        response(fetch_one(quick_fetcher(server.origin, proxy=proxy.origin), server.origin + "/x"))

    assert proxy.targets() == [f"GET {server.origin}/x"]


def test_a_literal_private_address_is_refused_before_the_proxy_is_asked(
    server: HostileServer,
) -> None:
    with Proxy() as proxy:
        for uri in (server.origin + "/x", "http://127.1/x", "http://[::1]/x"):
            outcome = failure(fetch_one(quick_fetcher(proxy=proxy.origin), uri))
            assert outcome.error.code == "egress"

    assert not proxy.asked


@pytest.mark.parametrize("refusal", ["403 Forbidden", "407 Proxy Authentication Required"])
def test_a_proxy_that_refuses_robots_txt_is_no_source_without_rules(
    authority: trustme.CA, ca_file: str, refusal: str
) -> None:
    with HostileServer(tls=tls(authority)) as secure, Proxy(refusal=refusal) as proxy:
        fetcher = quick_fetcher(secure.origin, proxy=proxy.origin, ca_file=ca_file, robots="obey")
        asked = request(secure.origin + "/x", Purpose.DISCOVERY)
        outcome = failure(fetch_one(fetcher, asked))

    assert outcome.error.code == "proxy"
    assert len(proxy.asked) == 1


@pytest.mark.parametrize(
    ("refusal", "kind", "tries", "option"),
    [
        ("403 Forbidden", SourceRefusedError, 1, "-o proxy=URL"),
        ("407 Proxy Authentication Required", SourceRefusedError, 1, "-o proxy_auth=NAME"),
        ("407 asked for http", SourceRefusedError, 1, "-o proxy_auth=NAME"),
        ("405 Method Not Allowed", SourceRefusedError, 1, "-o proxy=URL"),
        ("502 Bad Gateway", SourceUnavailableError, 2, "-o proxy=URL"),
        ("504 Gateway Timeout", SourceUnavailableError, 2, "-o proxy=URL"),
    ],
)
def test_a_proxy_that_refuses_is_named_with_what_to_do(
    refusal: str, kind: type[SourceError], tries: int, option: str
) -> None:
    is_tunnel = "http" not in refusal
    with Proxy(refusal=refusal) as proxy:
        fetcher = quick_fetcher(proxy=proxy.origin, proxy_secret=SECRET)
        uri = "https://museum.example/x" if is_tunnel else "http://museum.example/x"
        outcome = failure(fetch_one(fetcher, uri))

    error = outcome.error
    assert type(error) is kind
    assert (error.code, outcome.tries) == ("proxy", tries)
    assert proxy.origin in error.message
    assert option in error.hint
    if is_tunnel:
        assert error.status == 0
        assert evidence(error) == {"got": f"CONNECT: {refusal[:3]}", "proxy": proxy.origin}
    assert SECRET[1] not in repr(error) + str(error) + repr(error.evidence)


@pytest.mark.parametrize("uri", ["http://museum.example/x", "https://museum.example/x"])
@pytest.mark.parametrize("scheme", ["http", "https", "socks5h"])
def test_a_proxy_that_is_dead_is_named(scheme: str, uri: str) -> None:
    proxy = f"{scheme}://127.0.0.1:{free_port()}"

    outcome = failure(fetch_one(quick_fetcher(proxy=proxy, retries=1), uri))

    assert isinstance(outcome.error, SourceUnavailableError)
    assert (outcome.error.code, outcome.tries) == ("proxy", 2)
    assert proxy in outcome.error.message
    assert "-o proxy=URL" in outcome.error.hint


def test_a_proxy_that_never_answers_is_given_up_and_named() -> None:
    for uri in ("http://museum.example/x", "https://museum.example/x"):
        with Proxy(is_mute=True) as proxy:
            fetcher = quick_fetcher(proxy=proxy.origin, retries=0, timeout=0.3, connect_timeout=0.3)
            outcome = failure(fetch_one(fetcher, uri))

        assert isinstance(outcome.error, SourceUnavailableError)
        assert evidence(outcome.error)["proxy"] == proxy.origin


def test_a_proxy_without_a_trusted_certificate_is_told_apart_from_such_a_source(
    authority: trustme.CA, ca_file: str
) -> None:
    with Proxy(tls=tls(trustme.CA())) as proxy:
        fetcher = quick_fetcher(proxy=proxy.origin, ca_file=ca_file)
        outcome = failure(fetch_one(fetcher, "https://museum.example/x"))
    assert (outcome.error.code, outcome.tries) == ("tls", 1)
    assert proxy.origin in outcome.error.message
    assert "-o ca_file=FILE" in outcome.error.hint

    with HostileServer(tls=tls(trustme.CA())) as secure, Proxy(tls=tls(authority)) as proxy:
        fetcher = quick_fetcher(secure.origin, proxy=proxy.origin, ca_file=ca_file)
        outcome = failure(fetch_one(fetcher, secure.origin + "/x"))
    assert (outcome.error.code, outcome.tries) == ("tls", 1)
    assert proxy.origin not in outcome.error.message
    assert "-o ca_file=FILE" in outcome.error.hint


@pytest.mark.parametrize(
    ("uri", "bypass", "is_direct"),
    [
        ("http://museum.example/x", "museum.example", True),
        ("http://MUSEUM.example./x", "museum.example", True),
        ("http://a.museum.example/x", "museum.example", True),
        ("http://a.museum.example/x", ".museum.example", True),
        ("http://a.museum.example/x", "*.museum.example", True),
        ("http://amuseum.example/x", "museum.example", False),
        ("http://museum.example/x", "a.museum.example", False),
        ("http://museum.example/x", "*", True),
        ("http://museum.example/x", "example.org,*", True),
        ("http://museum.example/x", "museum.example:80", True),
        ("http://museum.example:8080/x", "museum.example:80", False),
        ("https://museum.example/x", "museum.example:443", True),
        ("http://10.1.2.3/x", "10.0.0.0/8", True),
        ("http://11.1.2.3/x", "10.0.0.0/8", False),
        ("http://10.1.2.3/x", "10.1.2.3", True),
        ("http://10.1.2.3:8080/x", "10.1.2.3:8080", True),
        ("http://[fd00::1]/x", "fd00::/8", True),
        ("http://[fd00::1]/x", "[fd00::1]", True),
        ("http://museum.example/x", "10.0.0.0/8", False),
        ("http://museum.example/x", ".", False),
        ("http://museum.example/x", "museum.example:²", False),
        ("http://museum.example/x", "", False),
    ],
)
def test_a_host_that_is_named_is_reached_without_a_proxy(
    uri: str, bypass: str, is_direct: bool
) -> None:
    rules = ProxyRules(
        http="http://p:1", https="http://s:1", bypass=tuple(bypass.replace(",", " ").split())
    )
    proxy = "http://s:1" if uri.startswith("https") else "http://p:1"

    assert rules.choose(uri) == ("" if is_direct else proxy)


def test_each_request_takes_the_proxy_of_its_scheme_and_host_with_its_own_secret(
    authority: trustme.CA, ca_file: str
) -> None:
    with (
        HostileServer() as plain,
        HostileServer() as direct,
        HostileServer(tls=tls(authority)) as secure,
        Proxy() as one,
        Proxy() as other,
    ):
        servers = (plain, direct, secure)
        for server in servers:
            server.on("/x", answer(body=b"here"))
        rules = ProxyRules(
            http=one.origin,
            https=other.origin,
            bypass=(direct.origin.removeprefix("http://"),),
            secrets={other.origin: SECRET},
        )
        fetcher = quick_fetcher(
            *(server.origin for server in servers), proxies=rules, ca_file=ca_file, jobs=1
        )
        for server in (*servers, *reversed(servers)):
            assert kept(response(fetch_one(fetcher, server.origin + "/x"))) == b"here"

    assert one.targets() == [f"GET {plain.origin}/x"] * 2
    assert {target.split()[0] for target in other.targets()} == {"CONNECT"}
    assert {asked.fields.get("proxy-authorization", "") for asked in one.asked} == {""}
    assert all(asked.fields["proxy-authorization"] for asked in other.asked)
    assert len(direct.asked) == 2


def test_a_host_that_takes_no_proxy_may_not_lead_to_a_private_address() -> None:
    with HostileServer() as server, Proxy() as proxy:
        rules = ProxyRules(http=proxy.origin, bypass=("localhost",))
        fetcher = quick_fetcher(proxies=rules, retries=0)
        port = server.origin.rpartition(":")[2]
        error = failure(fetch_one(fetcher, f"http://localhost:{port}/x")).error

    assert error.code == "egress"
    assert not proxy.asked
    assert not server.asked
