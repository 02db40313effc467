"""A hub over loopback: wishes are verified, notifications are delivered, and nobody holds it up."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from resourcesync.websub.messages import FORM, XML, is_signed
from tests.support.servers.hubs import TOPIC, RunningHub, payload, running_hub, said
from tests.support.servers.listening import Heard, Listener, Reply, agreeing


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as found:
        yield found


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[RunningHub]:
    with running_hub(tmp_path / "hub.db") as found:
        yield found


def joined(hub: RunningHub, listener: Listener, path: str = "/me", **said: str) -> None:
    before = hub.subscribed()
    assert hub.subscribe(f"{listener.origin}{path}", **said).status == 202
    assert listener.wait(lambda: hub.subscribed() == before + 1)


def settled(hub: RunningHub, listener: Listener) -> None:
    assert listener.wait(lambda: hub.hub.store.count_intents() == 0)


@pytest.mark.conformance("NT02", "NT03")
def test_what_is_submitted_reaches_who_subscribed_signed_and_byte_by_byte(
    hub: RunningHub, listener: Listener
) -> None:
    body = payload()
    joined(hub, listener, "/me?a=b", secret="s3cret")

    assert hub.submit(body).status == 204
    assert listener.wait(lambda: len(listener.posts()) == 1)

    [delivery] = listener.posts()
    assert delivery.body == body
    assert delivery.target == "/me?a=b"
    assert delivery.fields["content-type"] == "application/xml"
    assert delivery.fields["link"] == f'<{TOPIC}>; rel="self", <{hub.uri}hub>; rel="hub"'
    assert is_signed(b"s3cret", body, [delivery.fields["x-hub-signature"]])


def test_a_receiver_is_asked_with_its_own_query_first_and_a_new_challenge_each_time(
    hub: RunningHub, listener: Listener
) -> None:
    for _ in range(2):
        assert (
            hub.subscribe(
                f"{listener.origin}/me?hub.challenge=mine&x=%26", lease_seconds="4000"
            ).status
            == 202
        )
        settled(hub, listener)

    targets = [heard.target for heard in listener.heard]
    assert all(
        target.startswith("/me?hub.challenge=mine&x=%26&hub.mode=subscribe&") for target in targets
    )
    asked = [heard.target.split("&hub.challenge=")[1].split("&")[0] for heard in listener.heard]
    assert len(set(asked)) == 2
    assert all(len(name) >= 43 for name in asked)  # 32 bytes in base64
    query = listener.heard[0].query
    assert (query["hub.topic"], query["hub.lease_seconds"]) == (TOPIC, "4000")


def test_a_receiver_that_does_not_repeat_the_challenge_exactly_is_not_subscribed(
    hub: RunningHub, listener: Listener
) -> None:
    answers: list[Callable[[bytes], Reply]] = [
        lambda chunk: (200, chunk + b"\n"),
        lambda chunk: (200, chunk.swapcase()),
        lambda chunk: (200, b"<p>" + chunk),
        lambda chunk: (200, chunk + b" " * 5000),
        lambda chunk: (404, chunk),
        lambda chunk: (302, chunk, {"location": "/elsewhere"}),
        lambda _: (200, b""),
    ]

    def answer(heard: Heard) -> Reply:
        return answers[int(heard.path[1:])](heard.query["hub.challenge"].encode())

    listener.answer = answer
    for number in range(len(answers)):
        assert hub.subscribe(f"{listener.origin}/{number}").status == 202
    settled(hub, listener)

    assert hub.subscribed() == 0
    assert sorted(heard.path for heard in listener.heard) == [
        f"/{number}" for number in range(len(answers))
    ]
    assert hub.hub.deliveries.counts["refused"] == len(answers)


def test_the_address_is_looked_at_again_at_each_delivery(
    tmp_path: Path, listener: Listener
) -> None:
    with running_hub(tmp_path / "hub.db") as hub:
        joined(hub, listener)
    asked = len(listener.heard)

    with running_hub(tmp_path / "hub.db", private=False) as strict:
        strict.submit(payload())
        counts = strict.hub.deliveries.counts
        assert listener.wait(lambda: counts["failed"] == 1)

    assert len(listener.heard) == asked


def test_a_stranger_cannot_change_a_subscription(hub: RunningHub, listener: Listener) -> None:
    joined(hub, listener, secret="mine")
    listener.answer = lambda heard: (404, b"") if heard.method == "GET" else (204, b"")

    assert hub.subscribe(f"{listener.origin}/me", secret="theirs").status == 202
    settled(hub, listener)
    assert hub.subscribe(f"{listener.origin}/me", mode="unsubscribe").status == 202
    settled(hub, listener)
    hub.submit(payload())
    assert listener.wait(lambda: len(listener.posts()) == 1)

    [delivery] = listener.posts()
    assert is_signed(b"mine", delivery.body, [delivery.fields["x-hub-signature"]])


def test_a_body_that_is_announced_as_too_long_is_not_even_read(hub: RunningHub) -> None:
    for media_type, most in ((FORM, 16 * 1024), (XML, 1024 * 1024)):
        fields = {"content-type": media_type, "content-length": str(most + 1)}
        assert said(hub.uri, method="POST", fields=fields).status == 413


@pytest.mark.parametrize("status", [302, 404, 503])
def test_what_did_not_arrive_is_delivered_again_and_no_redirect_is_followed(
    hub: RunningHub, listener: Listener, status: int
) -> None:
    joined(hub, listener)
    answers = iter([status])

    def answer(heard: Heard) -> Reply:
        del heard
        found = next(answers, 200)
        return found, b"x" * 100_000, {"location": f"{listener.origin}/elsewhere"}

    listener.answer = answer
    hub.submit(payload())

    assert listener.wait(lambda: len(listener.posts()) == 2)
    assert [post.path for post in listener.posts()] == ["/me", "/me"]
    first, second = listener.posts()
    assert 0.4 < second.at - first.at < 8.0
    assert listener.wait(lambda: hub.hub.deliveries.counts["delivered"] == 1)


def test_receivers_that_hang_hold_up_nobody_else(hub: RunningHub, listener: Listener) -> None:
    release = threading.Event()

    def hang(heard: Heard) -> Reply:
        if heard.method == "POST":
            release.wait(20)
        return agreeing(heard)

    with ExitStack() as stack:
        stack.callback(release.set)
        slow = [stack.enter_context(Listener(hang)) for _ in range(3)]
        for item in slow:
            for number in range(3):
                joined(hub, item, f"/{number}")
        for number in range(20):
            joined(hub, listener, f"/{number}")
        for minute in range(3):
            began = time.monotonic()
            hub.submit(payload(minute=minute))
            most = 20 * (minute + 1)
            assert listener.wait(lambda most=most: len(listener.posts()) == most)  # type: ignore[misc]
            assert (
                max(post.at for post in listener.posts()) - began < 8.0
            )  # those that hang take ten
        assert sum(len(listener.posts()) for listener in slow) == 9


@pytest.mark.conformance("NT05")
def test_a_lease_has_an_end_whatever_is_asked(tmp_path: Path, listener: Listener) -> None:
    with running_hub(tmp_path / "hub.db") as hub:
        for path, lease in (("/1", "999999999999"), ("/2", "1"), ("/3", "")):
            said = {"lease_seconds": lease} if lease else {}
            joined(hub, listener, path, **said)

    granted = [int(heard.query["hub.lease_seconds"]) for heard in listener.heard]
    assert granted == [30 * 86_400, 3_600, 10 * 86_400]
