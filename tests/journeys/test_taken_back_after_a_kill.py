"""A pull is killed while it writes news down, and the Source is set back before the next one."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.destination.scope_and_filters import Filters
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.rewriting import (
    CHANGE_LIST,
    changed,
    heated,
    killed,
    no_longer_offers,
    set_back,
    sliding,
)
from tests.support.worlds.world import World

_DAY = 86_500


UNTIMED = {
    "where changes have the times of their resources": ' datetime="[^"]*"',
    "where changes have no time": ' datetime="[^"]*"|<lastmod>[^<]*</lastmod>',
}
AMONG_OTHERS, UNLISTED = "among other changes", "where no Change List is offered any more"


@pytest.mark.parametrize(
    ("scene", "writes"),
    [
        *((scene, writes) for scene in ("alone", AMONG_OTHERS) for writes in range(6)),
        *((scene, writes) for scene in (*UNTIMED, UNLISTED) for writes in range(2, 5)),
    ],
)
def test_what_a_killed_pull_had_begun_to_write_down_is_not_done_once_it_is_taken_back(
    world: World[PublishedSource], scene: str, writes: int
) -> None:
    def untimed(_: object) -> Answer:
        body = world.source.honest(CHANGE_LIST).body.decode()
        return Answer(body=re.sub(UNTIMED[scene], "", body).encode())

    if scene in UNTIMED:
        world.network.answers[CHANGE_LIST] = untimed
        changed(world, "objects/0003.html", "objects/0002.html", text="first")
    world.pull()
    before = world.source.saved()
    world.source.publish_deletion("objects/0003.html")
    if scene == AMONG_OTHERS:
        changed(world, "objects/0001.html", "taken-back.html", text="taken back")
    killed(world, writes)  # one that had come to its end notices, too
    set_back(world, before)
    if scene == UNLISTED:
        no_longer_offers(world, "changelist")
        world.network.answers[CHANGE_LIST] = Answer(status=404)
    else:
        changed(world, "after.html", text="after")

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC or scene == UNLISTED
    assert world.in_sync(), "what it had been told to delete is here"


@pytest.mark.parametrize("writes", range(6))
def test_after_a_pull_that_was_killed_while_it_wrote_changes_down_the_next_one_is_in_sync(
    world: World[PublishedSource], writes: int
) -> None:
    world.pull()
    changed(world, "objects/0001.html", "new.html", text="new")
    killed(world, writes)
    changed(world, "objects/0001.html", text="newer")

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert report.created + report.updated <= 2
    assert world.in_sync()


def test_a_killed_pull_goes_on_though_its_list_has_another_place_now(tmp_path: Path) -> None:
    world = World(tmp_path, PublishedSource(max_entries=3))
    changed(world, "first.html", text="first")
    world.pull()
    changed(world, "a.html", "b.html", text="new")
    assert killed(world, 3)
    changed(world, "c.html", "d.html", "e.html", text="newer")  # there is an index from here on

    assert world.pull().mode is Mode.INCREMENTAL
    assert world.in_sync()


@pytest.mark.parametrize("writes", range(2, 7))
def test_it_is_not_done_where_all_that_changed_last_changed_again(
    world: World[PublishedSource], writes: int
) -> None:
    heated(world, "first")
    world.pull()
    before = world.source.saved()
    world.source.publish_deletion("objects/0003.html")
    heated(world, "taken back")
    killed(world, writes)
    set_back(world, before)
    world.clock.advance(seconds=120)
    heated(world, "after")

    world.pull()
    world.clock.advance(seconds=_DAY)  # one that had come to its end waits for a day at most
    heated(world, "a day later")
    world.pull()

    assert world.in_sync()


@pytest.mark.parametrize("writes", range(7))
def test_a_kill_when_a_rewritten_list_was_noticed_puts_the_baseline_off_but_not_away(
    world: World[PublishedSource], writes: int
) -> None:
    heated(world, "first")
    world.pull()
    before = world.source.saved()
    world.source.publish_deletion("objects/0003.html")
    heated(world, "taken back")
    world.pull()
    set_back(world, before)
    world.clock.advance(seconds=120)
    heated(world, "after")
    killed(world, writes)

    world.pull()

    assert world.in_sync()


@pytest.mark.parametrize("writes", range(4, 7))
@pytest.mark.parametrize(
    "options", [{}, {"mode": "baseline"}, {"filters": Filters(exclude=("*.nothing",))}]
)
def test_a_baseline_since_changes_were_taken_back_does_not_delete_what_only_they_deleted(
    world: World[PublishedSource], writes: int, options: Any
) -> None:
    begin = world.clock.now() + timedelta(days=3)
    changed(world, "since.html", text="not in the Resource List")
    world.pull()
    world.clock.advance(seconds=3 * _DAY)
    changed(world, "objects/0001.html", text="some")
    world.pull()
    world.network.answers[CHANGE_LIST] = lambda _: sliding(world, begin)
    changed(world, "objects/0002.html", text="some")
    world.pull()
    before = world.source.saved()
    world.source.publish_deletion("since.html")
    assert killed(world, writes if options else min(writes, 5), **options)
    set_back(world, before)
    changed(world, "after.html", text="after")

    report = world.pull()

    assert report.mode is Mode.BASELINE
    assert BASE + "since.html" in world.files()


@pytest.mark.parametrize("writes", range(5, 7))  # from the first that stores what was read
def test_a_repair_deletes_nothing_but_what_it_found_unlisted(
    world: World[PublishedSource], writes: int
) -> None:
    world.pull()
    before = world.source.saved()
    world.source.publish_deletion("objects/0003.html")
    assert killed(world, writes)
    set_back(world, before)
    world.source.publish_deletion("objects/0001.html")

    report = world.repair(deleting=True)

    assert BASE + "objects/0003.html" in world.files()
    assert BASE + "objects/0001.html" not in world.files()
    assert report.state is not MirrorState.IN_SYNC, "what the killed pull began is not settled yet"
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_an_old_copy_of_a_list_is_read_again_past_caches_and_costs_no_baseline(
    world: World[PublishedSource],
) -> None:
    world.pull()
    changed(world, "a.html", text="a")
    world.pull()
    old = world.source.honest(CHANGE_LIST)
    changed(world, "b.html", text="b")
    world.pull()
    world.network.answers[CHANGE_LIST] = lambda request: (
        world.source.honest(CHANGE_LIST) if request.uncached else old
    )

    assert world.pull().state is MirrorState.IN_SYNC
    changed(world, "c.html", text="c")
    assert world.pull().mode is Mode.INCREMENTAL
    assert world.in_sync()
