"""A subscriber: what it asks hubs for, what it answers them, and what it makes of deliveries."""

import itertools
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from resourcesync.model.timestamps import SECOND
from resourcesync.ports import FetchRequest
from resourcesync.push_state.rows import FollowerState
from resourcesync.websub.channels import Channel
from resourcesync.websub.messages import DAY, HOUR, sign
from resourcesync.websub.subscription_status import (
    DeliveryFault,
    SubscriptionReport,
    SubscriptionStatus,
)
from tests.support.servers.hubs import payload
from tests.support.servers.subscribing import CHANNEL, HUB, TOPIC, SubscriberAndHubs

BODY = payload()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SubscriberAndHubs]:
    with closing(SubscriberAndHubs(tmp_path)) as world:
        yield world


def test_a_subscription_is_asked_for_with_a_secret_and_a_callback_of_its_own(
    world: SubscriberAndHubs,
) -> None:
    world.begin()

    [asked] = world.hubs.asked
    assert asked.uri == HUB
    assert world.hubs.forms() == [
        {
            "hub.mode": "subscribe",
            "hub.topic": TOPIC,
            "hub.callback": "https://aggregator.example/push/token-1",
            "hub.verify": "async",
            "hub.lease_seconds": "864000",
            "hub.secret": "token-2",
        }
    ]
    assert world.follower().state is FollowerState.REQUESTED
    world.subscriber.tick()
    assert len(world.hubs.asked) == 1  # once is enough


@pytest.mark.conformance("NT04")
def test_a_challenge_is_repeated_once_and_the_mirror_polls(world: SubscriberAndHubs) -> None:
    world.begin()

    found = world.ask("token-1", lease_seconds="7200")

    assert (found.status, found.text) == (200, "c0ffee")
    active = world.follower()
    assert active.state is FollowerState.ACTIVE
    assert (active.token, active.secret) == ("token-1", b"token-2")
    assert world.hints == ["arxiv"]
    assert world.ask("token-1", lease_seconds="7200").status == 404


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("token-1", {"topic": "https://museum.example/other"}),
        ("token-1", {"mode": "unsubscribe"}),
        ("token-1", {"challenge": ""}),
        ("token-1", {"challenge": "x" * 4097}),
        ("token-2", {}),
        ("", {}),
    ],
)
@pytest.mark.conformance("NT04")
def test_what_was_not_asked_for_is_not_confirmed(
    world: SubscriberAndHubs, token: str, said: dict[str, str]
) -> None:
    world.begin()
    before = world.follower()

    assert world.ask(token, **said).status == 404
    assert world.follower() == before
    assert world.hints == []


def test_what_was_confirmed_is_neither_confirmed_again_nor_ended_by_others(
    world: SubscriberAndHubs,
) -> None:
    active = world.subscribed()

    assert world.ask(active.token).status == 404
    assert world.ask(active.token, mode="unsubscribe").status == 404
    assert world.ask(active.token, mode="denied", topic="https://x.example/").status == 404
    assert world.ask("other", mode="denied").status == 404
    assert world.follower() == active


def test_a_denial_loses_nothing_and_is_asked_again_later(world: SubscriberAndHubs) -> None:
    active = world.subscribed()

    assert world.ask(active.token, mode="denied", reason="\x1b[31m").status == 200
    doubted = world.follower()
    assert doubted.state is FollowerState.PENDING
    assert world.deliver(doubted, BODY).status == 202  # it still counts
    wait = (doubted.due - active.due) / SECOND
    assert wait < 0  # long before it would have been renewed
    world.subscriber.tick()
    assert len(world.hubs.asked) == 1  # but not at once
    world.clock.sleep(HOUR)
    world.subscriber.tick()
    assert len(world.hubs.asked) == 2


def test_an_authentic_delivery_is_a_hint_whatever_it_says(world: SubscriberAndHubs) -> None:
    active = world.subscribed()
    world.clock.sleep(60)

    for body in (BODY, b"", b"not xml", payload("http://127.0.0.1/evil")):
        assert world.deliver(active, body).status == 202
        world.clock.sleep(60)

    assert world.hints == ["arxiv"] * 5  # one of them when it was confirmed


@pytest.mark.parametrize(
    "signatures",
    [
        [],
        [""],
        [sign(b"token-2", BODY), sign(b"token-2", BODY)],
        [sign(b"token-2", BODY, "sha1")],
        [sign(b"token-2", BODY).replace("sha256", "md5")],
        [sign(b"token-2", BODY).replace("sha256", "sha512")],
        [sign(b"token-2", BODY).upper()],
        [sign(b"token-2", BODY) + " "],
        ["sha256"],
        [sign(b"token-1", BODY)],
        ["sha256=\udcff"],
    ],
)
@pytest.mark.conformance("NT03")
def test_a_delivery_that_is_not_rightly_signed_is_taken_and_dropped(
    world: SubscriberAndHubs, signatures: list[str]
) -> None:
    active = world.subscribed()
    world.clock.sleep(60)

    assert world.subscriber.deliver(active.token, signatures, BODY).status == 202
    assert world.hints == ["arxiv"]
    assert world.subscriber.counts["discarded"] == 1
    assert world.follower() == active


def test_a_signature_of_another_subscription_is_worth_nothing(world: SubscriberAndHubs) -> None:
    subscription = world.subscribed("one")
    other = world.subscribed("other")
    world.clock.sleep(60)

    assert world.deliver(subscription, BODY, secret=other.secret).status == 202
    assert world.hints == ["one", "other"]


def test_thousands_of_repetitions_are_one_hint_now_and_one_later(world: SubscriberAndHubs) -> None:
    active = world.subscribed()
    world.clock.sleep(60)
    signature = sign(active.secret, BODY)
    for _ in range(2_000):
        assert world.subscriber.deliver(active.token, [signature], BODY).status == 202

    assert world.hints == ["arxiv"] * 2
    assert world.subscriber.tick() <= 10.0
    assert world.hints == ["arxiv"] * 2
    world.clock.sleep(10)
    world.subscriber.tick()
    assert world.hints == ["arxiv"] * 3
    world.clock.sleep(100)
    world.subscriber.tick()
    assert world.hints == ["arxiv"] * 3


@pytest.mark.parametrize("lease", ["0", "-1", "1000000000000", "", "1e3", "60", "99999999", None])
@pytest.mark.conformance("NT05")
def test_a_lease_is_between_an_hour_and_a_month_and_renewed_before_its_end(
    world: SubscriberAndHubs, lease: str | None
) -> None:
    world.begin()
    said = {} if lease is None else {"lease_seconds": lease}
    assert world.ask("token-1", **said).status == 200

    active = world.follower()
    seconds = (active.lease_until - leases_now(world)) / SECOND
    assert HOUR <= seconds <= 30 * DAY
    assert 0.5 <= (active.due - leases_now(world)) / SECOND / seconds <= 0.8


def leases_now(world: SubscriberAndHubs) -> int:
    return int(world.clock.now().timestamp()) * SECOND


def test_a_renewal_has_another_callback_and_secret_and_the_old_ones_end(
    world: SubscriberAndHubs,
) -> None:
    first = world.subscribed()
    world.clock.sleep(0.65 * 10 * DAY)
    world.subscriber.tick()
    asked = world.follower()

    assert asked.state is FollowerState.REQUESTED
    assert world.deliver(asked, BODY).status == 202  # the old one still counts
    assert world.ask(asked.next_token).status == 200
    second = world.follower()
    assert {second.token, second.secret.decode()}.isdisjoint({first.token, first.secret.decode()})
    news = world.subscriber.ledger.version
    assert world.deliver(first, BODY).status == 410  # so that the hub ends it
    assert (world.subscriber.ledger.version, stands(world).refused) == (news, 0)
    assert world.deliver(second, BODY).status == 202


def test_a_hub_that_is_away_is_asked_again_ever_later(world: SubscriberAndHubs) -> None:
    world.hubs.answer = lambda _: (0, {})
    world.subscriber.follow("arxiv", [CHANNEL])
    waits = []
    for _ in range(16):
        asked = len(world.hubs.asked)
        while len(world.hubs.asked) == asked:
            world.clock.sleep(min(world.subscriber.tick(), 60.0) or 1.0)
        waits.append(world.clock.monotonic())

    gaps = [after - before for before, after in itertools.pairwise(waits)]
    assert gaps[0] < 120
    assert sorted(gaps) == gaps
    assert gaps[-1] <= 6 * HOUR


def test_a_wish_that_is_never_confirmed_is_made_again(world: SubscriberAndHubs) -> None:
    world.begin()
    world.clock.sleep(601)
    world.subscriber.tick()

    assert [form["hub.callback"][-7:] for form in world.hubs.forms()] == ["token-1", "token-3"]
    assert world.ask("token-1").status == 404
    assert world.ask("token-3").status == 200


@pytest.mark.parametrize("status", [307, 308])
def test_a_hub_that_leads_to_another_hub_is_followed(world: SubscriberAndHubs, status: int) -> None:
    def answer(request: FetchRequest) -> tuple[int, dict[str, str]]:
        return (status, {"location": "/second"}) if request.uri == HUB else (202, {})

    world.hubs.answer = answer
    world.begin()

    assert [request.uri for request in world.hubs.asked] == [HUB, "https://hub.example/second"]
    assert world.follower().state is FollowerState.REQUESTED


@pytest.mark.parametrize("location", [HUB, "http://hub.example/hub", "", "http://["])
def test_a_hub_that_leads_nowhere_is_left(world: SubscriberAndHubs, location: str) -> None:
    world.hubs.answer = lambda _: (307, {"location": location})
    world.begin()

    assert len(world.hubs.asked) <= 4
    assert {request.uri for request in world.hubs.asked} == {HUB}  # never without TLS
    assert world.follower().state is FollowerState.PENDING


@pytest.mark.parametrize("status", [204, 500])
def test_a_hub_may_confirm_before_it_answers_whatever_that_is(
    world: SubscriberAndHubs, status: int
) -> None:
    def answer(request: FetchRequest) -> tuple[int, dict[str, str]]:
        del request
        assert world.ask(world.follower().next_token).status == 200
        return status, {}

    world.hubs.answer = answer
    world.begin()

    assert world.follower().state is FollowerState.ACTIVE


def test_what_is_no_longer_followed_ends_with_the_next_delivery(world: SubscriberAndHubs) -> None:
    active = world.subscribed()
    world.subscriber.leave("arxiv")
    assert world.store.subscriptions() == []
    assert world.deliver(active, BODY).status == 410
    assert world.hints == ["arxiv"]
    world.subscriber.tick()
    assert len(world.hubs.asked) == 1


def test_a_source_that_moves_its_channel_is_followed_there(world: SubscriberAndHubs) -> None:
    world.subscribed()
    other = replace(CHANNEL, topic="https://museum.example/new.xml")
    world.subscriber.follow("arxiv", [other, Channel(topic="https://museum.example/none")])
    world.subscriber.tick()

    states = {
        subscription.topic: subscription.state for subscription in world.store.subscriptions()
    }
    assert states == {other.topic: FollowerState.REQUESTED}


def test_a_clock_that_is_set_back_by_years_ends_no_renewal(world: SubscriberAndHubs) -> None:
    world.subscribed()
    asked = len(world.hubs.asked)
    world.clock.set(world.clock.now() - timedelta(days=400))
    world.subscriber.tick()

    assert len(world.hubs.asked) == asked + 1
    assert world.follower().state is FollowerState.REQUESTED


def test_a_restart_loses_no_subscription(world: SubscriberAndHubs, tmp_path: Path) -> None:
    active = world.subscribed()
    world.store.close()
    with closing(SubscriberAndHubs(tmp_path)) as again:
        again.clock = world.clock

        assert again.follower() == active
        assert again.deliver(active, BODY).status == 202
        assert again.hints == ["arxiv"]


def test_no_callback_and_no_secret_is_ever_logged(
    world: SubscriberAndHubs, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    active = world.subscribed()
    world.hubs.answer = lambda _: (500, {})
    world.clock.sleep(0.65 * 10 * DAY)
    world.subscriber.tick()
    world.ask(active.token, mode="denied", reason="no")
    world.subscriber.deliver(active.token, ["sha256=00"], BODY)

    assert "refuses a subscription" in caplog.text
    assert "denies a subscription" in caplog.text
    assert "token-" not in caplog.text
    assert "token-" not in repr(world.store.subscriptions())


def stands(world: SubscriberAndHubs) -> SubscriptionReport:
    [found] = world.subscriber.reports()
    return found


def test_a_subscription_is_pending_or_refused_until_its_hub_asked_back(
    world: SubscriberAndHubs,
) -> None:
    world.subscriber.follow("arxiv", [CHANNEL])
    found = stands(world)
    assert (found.mirror, found.topic, found.hub) == ("arxiv", TOPIC, HUB)
    assert (found.status, found.until, found.reason) == (SubscriptionStatus.PENDING, None, "")
    for status, expected, reason in (
        (403, SubscriptionStatus.REFUSED, "the hub refuses it: 403"),
        (0, SubscriptionStatus.PENDING, "away"),
        (202, SubscriptionStatus.PENDING, "away"),
    ):
        world.hubs.answer = lambda _, status=status: (status, {})  # type: ignore[misc]
        world.subscriber.tick()
        found = stands(world)
        assert (found.status, found.until, found.reason) == (expected, None, reason)
        world.clock.sleep(DAY)
    world.subscriber.tick()
    assert world.ask(world.follower().next_token, lease_seconds="7200").status == 200

    found = stands(world)
    assert (found.status, found.accepted, found.last) == (SubscriptionStatus.VERIFIED, 0, None)
    assert (found.until, found.reason) == (world.clock.now() + timedelta(hours=2), "")


def test_a_renewal_that_fails_takes_nothing_away_before_the_lease_ends(
    world: SubscriberAndHubs,
) -> None:
    world.subscribed()
    world.hubs.answer = lambda _: (500, {})
    world.clock.sleep(0.65 * 10 * DAY)
    world.subscriber.tick()
    assert world.follower().state is FollowerState.PENDING
    assert stands(world).status is SubscriptionStatus.VERIFIED
    assert stands(world).reason == "the hub refuses it: 500"
    world.clock.sleep(0.36 * 10 * DAY)
    assert stands(world).status is SubscriptionStatus.REFUSED


def test_each_delivery_is_counted_and_each_refusal_with_its_reason(
    world: SubscriberAndHubs,
) -> None:
    active = world.subscribed()
    world.clock.sleep(60)
    assert world.deliver(active, BODY).status == 202
    came = world.clock.now()
    world.clock.sleep(60)
    assert world.deliver(active, BODY, secret=b"forged").status == 202
    world.subscriber.refuse(active.token, DeliveryFault.SIZE)
    world.subscriber.refuse("nobody", DeliveryFault.SIZE)

    found = stands(world)
    assert (found.accepted, found.last, found.refused) == (1, came, 2)
    assert dict(found.refusals) == {DeliveryFault.SIGNATURE: 1, DeliveryFault.SIZE: 1}


def test_a_flood_of_forged_deliveries_is_news_a_few_times_and_good_ones_never(
    world: SubscriberAndHubs,
) -> None:
    active = world.subscribed()
    before = world.subscriber.ledger.version
    for _ in range(1_000):
        world.deliver(active, BODY)
    assert world.subscriber.ledger.version == before
    for _ in range(1_000):
        world.deliver(active, BODY, secret=b"forged")
    assert world.subscriber.ledger.version == before + 10
    assert stands(world).refused == 1_000


def test_who_begins_anew_asks_at_once_for_what_no_hub_confirmed(world: SubscriberAndHubs) -> None:
    world.begin()
    world.subscriber.tick()
    assert len(world.hubs.asked) == 1

    again = world.restarted()  # with the address that was wrong mended, say
    again.tick()

    assert len(world.hubs.asked) == 2
    again.tick()
    assert len(world.hubs.asked) == 2
    assert world.ask(world.follower().next_token, lease_seconds="7200").status == 200

    world.restarted().tick()
    assert len(world.hubs.asked) == 2  # what is confirmed is renewed when its time comes


def test_another_callback_is_told_to_the_hub_at_once_and_the_old_one_counts_meanwhile(
    world: SubscriberAndHubs,
) -> None:
    active = world.subscribed()
    world.restarted("https://elsewhere.example/hooks").tick()

    assert [form["hub.callback"].rpartition("/")[0] for form in world.hubs.forms()] == [
        "https://aggregator.example/push",
        "https://elsewhere.example/hooks",
    ]
    world.clock.sleep(60)
    assert world.deliver(active, payload()).status == 202
    assert world.hints == ["arxiv"] * 2
    assert world.ask(world.follower().next_token).status == 200
    assert world.deliver(active, payload()).status == 410

    world.restarted("https://elsewhere.example/hooks/").tick()
    assert len(world.hubs.asked) == 2
