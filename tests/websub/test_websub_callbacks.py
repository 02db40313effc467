"""The callbacks over HTTP, and how a Source's channels are found."""

import asyncio
import io
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from resourcesync.discovery.document_fetcher import DocumentFetcher
from resourcesync.model.vocabulary import Capability
from resourcesync.server import websub
from resourcesync.server.asgi import read_body
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.server.websub import CallbackApplication
from resourcesync.websub.channels import Channel, FoundChannels, find_channels
from resourcesync.websub.messages import sign
from resourcesync.websub.subscription_status import DeliveryFault
from tests.support.servers.fetching import quick_fetcher
from tests.support.servers.hostile_server import HostileServer, answer
from tests.support.servers.hubs import payload, post, said
from tests.support.servers.subscribing import HUB, TOPIC, SubscriberAndHubs

BODY = payload()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SubscriberAndHubs]:
    with closing(SubscriberAndHubs(tmp_path)) as world:
        yield world


@pytest.fixture
def uri(world: SubscriberAndHubs) -> Iterator[str]:
    with ServerThread(CallbackApplication(world.subscriber)) as server:
        yield server.uri


def ask(uri: str, **fields: str) -> str:
    usual = {"mode": "subscribe", "topic": TOPIC, "challenge": "c0ffee", "lease_seconds": "7200"}
    return f"{uri}?{urlencode({f'hub.{name}': text for name, text in (usual | fields).items()})}"


def test_a_challenge_is_repeated_as_plain_text_that_no_browser_takes_for_more(
    world: SubscriberAndHubs, uri: str
) -> None:
    world.begin()
    page = "<script>alert(1)</script>"

    assert said(ask(f"{uri}other")).status == 404
    assert said(ask(f"{uri}token-1", topic="https://x.example/")).status == 404
    assert said(ask(f"{uri}token-1/x")).status == 404
    found = said(ask(f"{uri}token-1", challenge=page))

    assert (found.status, found.text) == (200, page)
    assert found.fields["content-type"] == "text/plain; charset=utf-8"
    assert found.fields["x-content-type-options"] == "nosniff"
    assert found.fields["content-length"] == str(len(page))
    assert said(ask(f"{uri}token-1", challenge=page)).status == 404


def test_a_delivery_is_known_by_its_callback_and_not_by_its_links(
    world: SubscriberAndHubs, uri: str
) -> None:
    active = world.subscribed()
    world.clock.sleep(60)
    link = '<https://other.example/>; rel="self", <https://evil.example/>; rel="hub"'

    found = post(f"{uri}{active.token}", BODY, x_hub_signature=sign(active.secret, BODY), link=link)
    assert found.status == 202
    assert world.hints == ["arxiv", "arxiv"]
    assert post(f"{uri}unknown", BODY).status == 410
    assert post(uri, BODY).status == 404
    assert post(f"{uri}{'x' * 129}", BODY).status == 404
    assert world.hints == ["arxiv", "arxiv"]


def test_a_signature_that_is_sent_twice_is_none(world: SubscriberAndHubs, uri: str) -> None:
    active = world.subscribed()
    world.clock.sleep(60)
    field = f"X-Hub-Signature: {sign(active.secret, BODY)}\r\n".encode()

    reply = raw(f"{uri}{active.token}", field * 2 + b"Content-Length: %d" % len(BODY), BODY)
    assert b" 202 " in reply.splitlines()[0]
    assert world.subscriber.counts["discarded"] == 1
    assert world.hints == ["arxiv"]


def raw(uri: str, fields: bytes, body: bytes) -> bytes:
    parts = urlsplit(uri)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        head = f"POST {parts.path} HTTP/1.1\r\nHost: x\r\n".encode() + fields + b"\r\n\r\n"
        connection.sendall(head + body)
        return connection.recv(65_536)


def test_a_delivery_that_is_too_long_is_refused_whether_it_says_so_or_not(
    world: SubscriberAndHubs, uri: str
) -> None:
    callback = f"{uri}{world.subscribed().token}"
    assert b" 413 " in raw(callback, b"Content-Length: 1048577", b"")
    [found] = world.subscriber.reports()
    assert found.refusals == ((DeliveryFault.SIZE, 1),)
    assert b" 400 " in raw(callback, b"Content-Length: x", b"")

    assert world.hints == ["arxiv"]


def test_an_endless_body_is_read_no_further_than_its_limit() -> None:
    asked = 0

    async def receive() -> dict[str, object]:
        nonlocal asked
        asked += 1
        return {"type": "http.request", "body": b"x" * 1000, "more_body": True}

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(HTTPException) as refused:
        asyncio.run(read_body(request, most=10_000, seconds=5.0))
    assert refused.value.status_code == 413
    assert asked == 11


def test_a_delivery_that_is_too_slow_is_refused(
    world: SubscriberAndHubs, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websub, "BODY_SECONDS", 0.1)
    active = world.subscribed()
    assert b" 408 " in raw(f"{uri}{active.token}", b"Content-Length: 10", b"x")
    assert world.hints == ["arxiv"]


def test_no_body_is_read_for_a_callback_that_is_nobodys(world: SubscriberAndHubs, uri: str) -> None:
    active = world.subscribed()
    world.clock.sleep(0.65 * 864_000)
    world.subscriber.tick()
    assert world.ask(world.follower().next_token).status == 200

    assert b" 410 " in raw(f"{uri}{active.token}", b"Content-Length: 1000", b"")
    assert b" 410 " in raw(f"{uri}nobody", b"Content-Length: 1000", b"")


LIST = (
    '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:rs="http://www.openarchives.org/rs/terms/">{root}'
    '<rs:md capability="{capability}"/>{entries}</urlset>'
)
ENTRY = '<url><loc>{loc}</loc><rs:md capability="{capability}"/>{links}</url>'
HUB_LINK = '<rs:ln rel="hub" href="{}"/>'


def channel_entry(loc: str, *hubs: str, capability: str = "change-notification") -> str:
    links = "".join(map(HUB_LINK.format, hubs))
    return ENTRY.format(loc=loc, capability=capability, links=links)


def document(*, root: str = "", entries: str = "", capability: str = "capabilitylist") -> bytes:
    return LIST.format(root=root, entries=entries, capability=capability).encode()


def found(server: HostileServer, *targets: str) -> list[Channel]:
    return all_found(server, *targets).channels


def all_found(server: HostileServer, *targets: str) -> FoundChannels:
    fetcher = quick_fetcher(server.origin)
    try:
        documents = DocumentFetcher(fetcher, io.BytesIO)
        return find_channels(
            documents, [server.origin + target for target in targets or ("/list",)]
        )
    finally:
        fetcher.close()


@pytest.mark.parametrize("capability", ["change-notification", "changenotification"])
def test_an_entry_of_the_capability_list_tells_a_channel_and_its_hubs(capability: str) -> None:
    entry = channel_entry(TOPIC, "https://hub.example/", "/second", capability=capability)
    with HostileServer() as server:
        server.on("/list", answer(body=document(entries=entry)))
        [channel] = found(server)

    assert channel.topic == TOPIC
    assert channel.hubs == ("https://hub.example/", f"{server.origin}/second")
    assert channel.capability is Capability.CHANGE_NOTIFICATION
    assert server.targets() == ["/list"]


def test_links_at_the_root_and_in_the_answer_tell_a_channel_too() -> None:
    root = f'<rs:ln rel="self" href="{TOPIC}"/>' + HUB_LINK.format(HUB)
    with HostileServer() as server:
        server.on("/list", answer(body=document(root=root)))
        server.on("/field", answer(body=document(), Link=f'<{HUB}>; rel="hub", </t>; rel=self'))
        server.on("/bare", answer(body=document(), Link=f"<{HUB}>; rel=hub"))
        channels = found(server, "/list", "/field", "/bare")

    here = server.origin
    assert [(channel.topic, channel.hubs) for channel in channels] == [
        (TOPIC, (HUB,)),
        (f"{here}/t", (HUB,)),
        (f"{here}/bare", (HUB,)),
    ]


def test_a_channel_without_a_hub_is_asked_for_one() -> None:
    with HostileServer() as server:
        for number, reply in enumerate(
            (
                answer(Link=f'<{HUB}>;rel="hub", <{TOPIC}>;rel="self"'),
                answer(body=payload().replace(b'rel="up"', b'rel="hub"')),
                answer("404 Not Found"),
                answer(body=b"no document"),
                answer("302 Found", Location="/moved"),
            )
        ):
            server.on(f"/{number}", reply)
            entry = channel_entry(f"{server.origin}/{number}")
            server.on(f"/list{number}", answer(body=document(entries=entry)))
        server.on("/moved", answer(Link=f'<{HUB}>;rel="hub"'))
        channels = found(server, *(f"/list{number}" for number in range(5)))

    assert sorted(channel.topic for channel in channels) == [f"{server.origin}/moved", TOPIC]
    assert {channel.hubs for channel in channels} == {(HUB,)}


@pytest.mark.parametrize(
    ("status", "is_all"), [("404 Not Found", True), ("503 Busy", False), ("429 Slow", False)]
)
def test_what_does_not_answer_now_may_tell_of_more(status: str, is_all: bool) -> None:
    with HostileServer() as server:
        server.on("/list", answer(body=document(entries=channel_entry(TOPIC, HUB))))
        asked = channel_entry(f"{server.origin}/topic")
        server.on("/hubless", answer(body=document(entries=asked)))
        for target in ("/well", "/topic"):
            server.on(target, answer(status))
        by_document = all_found(server, "/list", "/well")
        by_topic = all_found(server, "/list", "/hubless")

    for told in (by_document, by_topic):
        assert [channel.topic for channel in told.channels] == [TOPIC]
        assert told.is_complete is is_all
