"""What a hub answers, without any network: to wishes and submissions."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from urllib.parse import urlencode

import pytest

from resourcesync.errors import ConfigurationError
from resourcesync.push_state.stores import FileHub
from resourcesync.websub.hub import Hub, HubRules
from resourcesync.websub.messages import TextResponse, link_field, sign
from tests.support.in_memory import ManualClock
from tests.support.servers.hubs import KEY, TOPIC, payload

ADDRESS = "https://museum.example/hub"
CALLBACK = "https://aggregator.example/push/token"


class Desk:
    def __init__(self, folder: Path, **rules: object) -> None:
        usual: dict[str, object] = {"address": ADDRESS, "topics": frozenset({TOPIC}), "key": KEY}
        made = HubRules(**(usual | rules))  # type: ignore[arg-type]
        self.store = FileHub(folder / "hub.db")
        self.clock = ManualClock()
        self.woken = 0
        self.hub = Hub(self.store, self.clock, lambda: made, wake=self._wake)

    def close(self) -> None:
        self.store.close()

    def _wake(self) -> None:
        self.woken += 1

    def wish(self, peer: str = "192.0.2.1", **said: str) -> TextResponse:
        usual = {"mode": "subscribe", "topic": TOPIC, "callback": CALLBACK}
        fields = {f"hub.{name}": value for name, value in (usual | said).items()}
        return self.hub.handle_form(urlencode(fields).encode(), peer)

    def submit(self, body: bytes, **changes: object) -> int:
        usual: dict[str, object] = {
            "media_type": "application/xml",
            "link": link_field(TOPIC, [ADDRESS]),
            "signatures": [sign(KEY, body)],
        }
        return self.hub.submit(body, **(usual | changes)).status  # type: ignore[arg-type]

    def told(self) -> list[bytes]:
        found, number = list[bytes](), 0
        with suppress(IndexError):  # there is no other one
            while True:
                payload = self.store.next_payload(TOPIC, number)
                found.append(payload.body)
                number = payload.number
        return found


@pytest.fixture
def open_desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    with ExitStack() as desks:
        yield lambda **rules: desks.enter_context(closing(Desk(tmp_path, **rules)))


@pytest.fixture
def desk(open_desk: Callable[..., Desk]) -> Desk:
    return open_desk()


NO_CALLBACKS = [
    *("", "file:///etc/passwd", "//example.org/x", "http://", "http://user:secret@example.org/"),
    *("http://example.org:22/", "http://example.org:99999/", "http://example.org/#part"),
    *("http://example.org/a b", "http://[::1/", "http://exämple.org/"),
    "http://example.org/" + "x" * 2048,
]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        *(({"callback": callback}, 400) for callback in NO_CALLBACKS),
        ({"topic": "https://other.example/"}, 404),
        ({"topic": ""}, 400),
        ({"mode": "denied"}, 400),
        ({"secret": ""}, 400),
        ({"secret": "x" * 200}, 400),
        ({"secret": "a\x00b"}, 400),
        ({"lease_seconds": "0"}, 400),
        ({"lease_seconds": "9" * 13}, 400),
        ({"lease_seconds": "\u0663"}, 400),
    ],
)
def test_a_wish_that_nobody_can_grant_is_refused_at_once(
    desk: Desk, said: dict[str, str], status: int
) -> None:
    assert desk.wish(**said).status == status
    assert desk.store.count_intents() == 0
    assert desk.woken == 0


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"secret": "x" * 199},
        {"lease_seconds": "1"},
        {"mode": "unsubscribe"},
        {"callback": "http://example.org:1024/?a=b&c"},
        {"unknown": "field"},
    ],
)
def test_a_sound_wish_is_stored_before_it_is_answered(desk: Desk, said: dict[str, str]) -> None:
    assert desk.wish(**said).status == 202
    assert desk.store.count_intents() == 1
    assert desk.woken == 1


@pytest.mark.parametrize(
    "body",
    [
        b"\xff",
        b"hub.secret=%ff&hub.mode=subscribe",
        b"a=b&" * 40,
        b"hub.mode=subscribe&x=" + b"y" * 16_384,
        b"",
    ],
)
def test_what_is_no_form_is_refused(desk: Desk, body: bytes) -> None:
    assert desk.hub.handle_form(body, "192.0.2.1").status == 400


def test_a_secret_is_not_taken_over_a_plain_network(open_desk: Callable[..., Desk]) -> None:
    plain = open_desk(address="http://hub.example/")
    assert plain.wish(secret="it").status == 400
    assert plain.wish().status == 202
    topics = frozenset({TOPIC})
    assert HubRules(address="http://127.0.0.1:80/hub", topics=topics).accepts_secrets
    assert HubRules(address="http://h.example/", topics=topics, plain_secrets=True).accepts_secrets


@pytest.mark.parametrize("rules", [{"address": "hub"}, {"topics": frozenset({"x"})}])
def test_rules_that_cannot_work_are_refused(
    open_desk: Callable[..., Desk], rules: dict[str, object]
) -> None:
    with pytest.raises(ConfigurationError):
        open_desk(**rules)


def test_there_are_only_so_many_wishes_of_a_peer_and_for_an_origin_in_a_minute(
    open_desk: Callable[..., Desk],
) -> None:
    desk = open_desk(per_peer=5)
    assert [desk.wish().status for _ in range(8)] == [202] * 5 + [429] * 3
    assert desk.wish(peer="192.0.2.2").status == 202
    desk.clock.sleep(12)
    assert [desk.wish().status for _ in range(2)] == [202, 429]

    desk = open_desk(per_origin=3)
    found = [
        desk.wish(peer=f"192.0.2.{number}", callback=f"{CALLBACK}{number}") for number in range(5)
    ]
    assert [response.status for response in found] == [202] * 3 + [429] * 2
    assert found[-1].retry_after == 60
    assert desk.wish(callback="https://other.example/").status == 202


def test_there_are_only_so_many_wishes_in_all_and_twice_as_many_to_leave(
    open_desk: Callable[..., Desk],
) -> None:
    full = open_desk(most_subscriptions=0)
    assert full.wish().status == 503
    assert full.wish(mode="unsubscribe").status == 202
    desk = open_desk(most_intents=2)
    assert [desk.wish().status for _ in range(2)] == [202, 503]
    found = [desk.wish(mode="unsubscribe").status for _ in range(3)]
    assert found == [202, 202, 503]


def test_only_the_publisher_may_submit(desk: Desk) -> None:
    body = payload()
    for signatures in (
        [],
        [sign(b"another", body)],
        [sign(KEY, b"other")],
        [sign(KEY, body, "sha1")],
        [sign(KEY, body)] * 2,
    ):
        assert desk.submit(body, signatures=signatures) == 403
    assert desk.submit(body, link=link_field("https://other.example/", [ADDRESS])) == 403
    assert desk.told() == []
    assert desk.submit(body) == 204
    assert desk.told() == [body]
    assert desk.woken == 1


def test_a_submission_that_is_none_is_refused(desk: Desk) -> None:
    body = payload()
    assert desk.submit(body, link=f'<{TOPIC}>; rel="self"') == 400
    assert desk.submit(body, link=f'<{ADDRESS}>; rel="hub"') == 400
    assert desk.submit(body, link="") == 400
    assert desk.submit(body, link=f'{link_field(TOPIC, [ADDRESS])}, <x>; rel="self"') == 400
    assert desk.submit(body, media_type="application/json") == 406
    assert desk.submit(body, media_type="") == 406
    for other in (b"", b"<urlset/>", body[:-20].replace(b"change-notification", b"resourcelist")):
        assert desk.submit(other) == 400
    assert desk.told() == []
    assert desk.submit(body, media_type="Text/XML; charset=utf-8") == 204


def test_submissions_that_never_end_are_slowed_down(open_desk: Callable[..., Desk]) -> None:
    desk = open_desk(submissions=1)
    found = [desk.submit(payload()) for _ in range(62)]
    assert found == [204] * 60 + [429] * 2


def test_wishes_of_one_receiver_are_asked_about_in_their_order(desk: Desk) -> None:
    for secret in ("first", "second"):
        desk.wish(secret=secret)
    desk.wish(callback=f"{CALLBACK}/other")
    found = desk.store.due_intents(0, 10, [])
    assert [(intent.secret, intent.callback) for intent in found] == [
        (b"first", CALLBACK),
        (b"", f"{CALLBACK}/other"),
    ]
    desk.store.confirm(found[0], 10**18)
    [again] = desk.store.due_intents(0, 10, [found[1].number])
    assert again.secret == b"second"
