"""A subscriber that is begun anew."""

from pathlib import Path

import pytest

from resourcesync.websub.channels import Channel
from tests.support.subscribing import HUB, TOPIC, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_who_begins_anew_asks_at_once_for_what_no_hub_confirmed(world: World) -> None:
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
