"""Change Lists that are written anew: sorted or merged by their Source, set back, or old copies."""

import re

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.errors import RollbackError
from resourcesync.source.stored_plan import PublicationStep
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.rewriting import CHANGE_LIST, changed, merged, set_back
from tests.support.worlds.world import World

_TIME = re.compile(r' datetime="[^"]*"')


def test_a_source_that_merges_its_list_each_time_leads_to_baselines_that_fetch_nothing_twice(
    world: World[PublishedSource],
) -> None:
    world.network.answers[CHANGE_LIST] = lambda _: Answer(
        body=merged(world.source.honest(CHANGE_LIST).body)
    )
    changed(world, "objects/0001.html", "objects/0002.html", text="first")
    world.pull()
    for number in range(8):  # it gets shorter, too
        # The one that changed last is among them each second time, and is listed but once.
        news = [f"objects/000{number % 2 + 1}.html", "index.html"]
        changed(world, *news, text=f"{number}")

        assert world.pull().mode is Mode.BASELINE
        assert sorted(world.asked_resources()) == sorted(news)
        assert world.in_sync()


@pytest.mark.parametrize("status", [200, 404])
def test_what_a_rewritten_list_no_longer_creates_goes_only_if_the_source_does_not_serve_it(
    world: World[PublishedSource], status: int
) -> None:
    world.pull()
    changed(world, "new.html", "index.html", text="first")
    world.pull()
    body = world.source.honest(CHANGE_LIST).body
    lost = re.sub(rb"<url><loc>[^<]*new\.html.*?</url>", b"", body)
    world.network.answers[CHANGE_LIST] = Answer(body=lost)
    world.network.answers[BASE + "new.html"] = Answer(status, b"first")
    for _ in range(2):
        assert (world.pull().state is MirrorState.IN_SYNC) == (status == 404)
        assert (BASE + "new.html" in world.files()) == (status == 200)


def test_each_time_a_source_is_set_back_what_it_took_back_goes_though_it_is_the_same_day(
    world: World[PublishedSource],
) -> None:
    changed(world, "objects/0003.html", text="kept")
    world.pull()
    before = world.source.saved()
    for number in range(3):
        changed(world, "objects/0001.html", f"taken-back-{number}.html", text=f"{number}")
        assert world.pull().state is MirrorState.IN_SYNC
        set_back(world, before)
        changed(world, *(f"after-{number}-{item}.html" for item in range(4)), text="after")

        report = world.pull()

        assert (report.mode, report.state) == (Mode.BASELINE, MirrorState.IN_SYNC)
        assert world.in_sync()


def test_an_old_list_without_times_does_not_undo_what_a_newer_resource_list_tells(
    world: World[PublishedSource],
) -> None:
    changed(world, "objects/0001.html", "objects/0002.html", "objects/0003.html", text="old")
    body = world.source.honest(CHANGE_LIST).body.decode()
    first = body.index("objects/0001.html")
    untimed = body[:first] + _TIME.sub("", body[first:], count=1)
    changed(world, "objects/0001.html", text="new")
    world.source.publish(step=PublicationStep.REBASE)
    world.network.answers[CHANGE_LIST] = Answer(body=untimed.encode())

    assert world.pull().mode is Mode.BASELINE
    assert world.in_sync()


def test_who_asks_for_a_baseline_of_a_source_that_was_set_back_keeps_nothing_it_took_back(
    world: World[PublishedSource],
) -> None:
    world.pull()
    before = world.source.saved()
    changed(world, "objects/0001.html", "taken-back.html", text="gone again")
    world.source.publish(step=PublicationStep.REBASE)
    world.pull(mode="baseline")
    set_back(world, before)

    assert world.pull(mode="baseline").state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_an_old_copy_of_a_change_list_beside_a_new_resource_list_hides_no_setting_back(
    world: World[PublishedSource],
) -> None:
    changed(world, "before.html", text="before")
    old, kept = world.source.honest(CHANGE_LIST), world.source.saved()
    changed(world, "objects/0001.html", "taken-back.html", text="taken back")
    world.source.publish(step=PublicationStep.REBASE)
    world.network.answers[CHANGE_LIST] = lambda request: (
        world.source.honest(CHANGE_LIST) if request.uncached else old
    )
    assert world.pull().mode is Mode.BASELINE
    del world.network.answers[CHANGE_LIST]
    set_back(world, kept)
    changed(world, "after.html", text="after")
    with pytest.raises(RollbackError):  # its Resource List is older: nothing tells what is right
        world.pull()
    world.source.publish(step=PublicationStep.REBASE)

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
