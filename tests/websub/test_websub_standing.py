"""How subscriptions stand, as operators are told."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from resourcesync.push_state.rows import FollowerState
from resourcesync.websub.channels import Channel
from resourcesync.websub.messages import DAY
from resourcesync.websub.subscription_status import (
    DeliveryFault,
    SubscriptionReport,
    SubscriptionStatus,
)
from tests.support.servers.hubs import payload
from tests.support.servers.subscribing import HUB, TOPIC, SubscriberAndHubs

BODY = payload()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SubscriberAndHubs]:
    with closing(SubscriberAndHubs(tmp_path)) as world:
        yield world


def stands(world: SubscriberAndHubs) -> SubscriptionReport:
    [found] = world.subscriber.reports()
    return found


def follow(world: SubscriberAndHubs) -> None:
    world.subscriber.follow("arxiv", [Channel(topic=TOPIC, hubs=(HUB,))])


def test_a_subscription_is_pending_until_its_hub_asked_back(world: SubscriberAndHubs) -> None:
    follow(world)
    for _ in range(2):
        found = stands(world)
        assert (found.mirror, found.topic, found.hub) == ("arxiv", TOPIC, HUB)
        assert (found.status, found.until, found.reason) == (SubscriptionStatus.PENDING, None, "")
        world.subscriber.tick()
    assert world.ask("token-1", lease_seconds="7200").status == 200

    found = stands(world)
    assert (found.status, found.accepted, found.last) == (SubscriptionStatus.VERIFIED, 0, None)
    assert found.until == world.clock.now() + timedelta(hours=2)


def test_a_hub_that_refuses_is_named_with_its_reason_until_it_does_not(
    world: SubscriberAndHubs,
) -> None:
    world.hubs.answer = lambda _: (403, {})
    follow(world)
    world.subscriber.tick()
    assert (stands(world).status, stands(world).reason) == (
        SubscriptionStatus.REFUSED,
        "the hub refuses it: 403",
    )
    world.hubs.answer = lambda _: (0, {})
    world.clock.sleep(DAY)
    world.subscriber.tick()
    assert (stands(world).status, stands(world).reason) == (SubscriptionStatus.PENDING, "away")
    world.hubs.answer = lambda _: (202, {})
    world.clock.sleep(DAY)
    world.subscriber.tick()
    assert world.ask(world.follower().next_token).status == 200
    assert (stands(world).status, stands(world).reason) == (SubscriptionStatus.VERIFIED, "")


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


def test_what_comes_to_a_former_callback_after_a_renewal_is_no_news(
    world: SubscriberAndHubs,
) -> None:
    first = world.subscribed()
    world.clock.sleep(0.65 * 10 * DAY)
    world.subscriber.tick()
    assert world.ask(world.follower().next_token).status == 200
    before = world.subscriber.ledger.version
    assert world.deliver(first, BODY).status == 410
    assert world.subscriber.ledger.version == before
    assert stands(world).refused == 0
