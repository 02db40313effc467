"""A subscriber that is begun anew."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from resourcesync.websub.channels import Channel
from tests.support.servers.hubs import payload
from tests.support.servers.subscribing import HUB, TOPIC, SubscriberAndHubs


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SubscriberAndHubs]:
    with closing(SubscriberAndHubs(tmp_path)) as world:
        yield world


def test_who_begins_anew_asks_at_once_for_what_no_hub_confirmed(world: SubscriberAndHubs) -> None:
    world.subscriber.follow("arxiv", [Channel(topic=TOPIC, hubs=(HUB,))])
    world.subscriber.tick()
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
    again = world.restarted("https://elsewhere.example/hooks")
    again.tick()

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
