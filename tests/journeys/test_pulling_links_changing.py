"""``--link``: what becomes of linked things when entries change, or a run is killed (§14)."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.audits.reports import FindingKind
from resourcesync.destination.reports import MirrorState
from resourcesync.errors import StorageError
from tests.support.worlds.linked_things import (
    ABOUT,
    ALL,
    LICENCE,
    aside,
    check,
    described,
    linked_world,
    names,
    pull,
)
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path) -> World[LooseSource]:
    return linked_world(tmp_path / "mirror")


def test_a_changed_entry_brings_its_new_links_and_drops_its_old_ones(
    world: World[LooseSource],
) -> None:
    world.source.publish()
    pull(world)
    aside(world, "about/a2.xml", b"2")
    world.source.put("a.txt", b"new")
    world.source.links.put("a.txt", described(BASE + "about/a2.xml"))
    world.source.publish()
    report = pull(world)
    assert (report.created, report.updated, report.deleted) == (1, 1, 1)
    assert report.state is MirrorState.IN_SYNC
    assert names(world) == ALL - {"about/a.xml"} | {"about/a2.xml"}  # b.txt links to the licence
    assert world.audit().in_sync
    again = pull(world)
    assert (again.created, again.updated, again.deleted) == (0, 0, 0)


def test_what_nobody_links_to_any_more_goes_to_the_trash_with_its_last_entry(
    world: World[LooseSource],
) -> None:
    world.source.publish()
    pull(world)
    world.source.remove("a.txt")
    world.source.publish()
    assert pull(world).deleted == 2
    assert names(world) == {"b.txt", "c.txt", "licence"}
    world.source.remove("b.txt")
    world.source.publish()
    report = pull(world)
    assert (report.deleted, report.state, report.retained.linked) == (2, MirrorState.IN_SYNC, 0)
    assert names(world) == {"c.txt"}
    assert len(list((world.folder / ".resourcesync/trash").iterdir())) == 4
    assert world.audit().in_sync


@pytest.mark.parametrize("delete", ["auto", "never"])
def test_a_dry_run_says_what_nobody_will_link_to_any_more(
    world: World[LooseSource], delete: str
) -> None:
    world.source.publish()
    pull(world)
    aside(world, "about/a2.xml", b"2")
    world.source.put("a.txt", b"new")
    world.source.links.put("a.txt", described(BASE + "about/a2.xml"))
    world.source.remove("b.txt")
    world.source.publish()
    dry = pull(world, dry_run=True, delete=delete)
    foreseen = world.told("plan")
    report = pull(world, delete=delete)
    assert world.told("plan") == foreseen
    gone = 3 * (delete == "auto")  # the licence, too: only the other text linked to it
    assert foreseen[0]["delete"] == report.deleted == gone
    assert dry.retained.unlisted == report.retained.unlisted == 3 - gone


@pytest.mark.parametrize("mode", ["auto", "baseline"])
def test_nothing_is_deleted_when_that_is_the_policy(world: World[LooseSource], mode: str) -> None:
    world.source.publish()
    pull(world)
    world.source.remove("a.txt")
    world.source.publish()
    world.source.snapshot()
    report = pull(world, delete="never", mode=mode)
    assert (report.deleted, report.retained.unlisted) == (0, 2)
    assert names(world) == ALL


def test_links_count_among_the_deletions_that_one_run_may_do(world: World[LooseSource]) -> None:
    from resourcesync.destination.planner import DeletionLimit

    world.source.publish()
    pull(world)
    world.source.links.put("a.txt")
    world.source.put("a.txt", b"new")
    world.source.publish()
    report = pull(world, max_delete=DeletionLimit(count=0))
    assert (report.held, report.state) == (1, MirrorState.STOPPED)
    world.source.links.put("c.txt", described(ABOUT, b"<about>a</about>"))
    world.source.put("c.txt", b"new")
    world.source.publish()
    report = pull(world)
    assert (report.held, report.deleted, report.state) == (0, 0, MirrorState.IN_SYNC)
    assert names(world) == ALL


def test_a_linked_thing_without_a_hash_is_asked_for_anew_when_an_entry_changes(
    world: World[LooseSource],
) -> None:
    world.source.publish()
    pull(world)
    aside(world, "licence", b"freer")
    assert pull(world).updated == 0
    world.source.put("b.txt", b"new")
    world.source.publish()
    assert pull(world).updated == 2
    assert world.files()[LICENCE] == b"freer"
    world.source.put("b.txt", b"newer")
    world.source.publish()
    report = pull(world)
    assert (report.updated, world.asked_resources().count("licence")) == (1, 1)  # 304


def test_what_was_linked_to_and_becomes_listed_is_no_longer_here_by_links(
    world: World[LooseSource],
) -> None:
    world.source.publish()
    pull(world)
    del world.network.answers[LICENCE]
    world.source.put("licence", b"listed now")
    world.source.publish()
    report = pull(world)
    assert (report.updated, report.retained.linked) == (1, 1)
    for name in ("a.txt", "b.txt"):
        world.source.links.put(name)
        world.source.put(name, b"without links")
    world.source.publish()
    report = pull(world)
    assert report.deleted == 1
    assert names(world) == ALL - {"about/a.xml"}
    assert world.audit().in_sync


def test_a_baseline_finds_out_that_a_linked_thing_is_listed_now(world: World[LooseSource]) -> None:
    world.source.publish()
    assert pull(world).retained.linked == 2
    del world.network.answers[LICENCE]
    world.source.put("licence", b"free")
    world.source.publish()
    world.source.snapshot()
    assert pull(world, mode="baseline").retained.linked == 1


def test_a_copy_that_the_filters_gave_up_is_wanted_again_when_it_is_linked_to(
    world: World[LooseSource],
) -> None:
    world.source.publish()
    check(world.pull())
    chosen = {"include": ("a.txt",)}
    before = pull(world, filters=chosen)
    assert (before.listed.total, before.retained.linked) == (3, 2)
    world.source.put("a.txt", b"new")
    world.source.links.put("a.txt", described(LICENCE), described(BASE + "c.txt"))
    world.source.publish()
    after = pull(world, filters=chosen)
    assert (after.listed.total, after.retained.linked, after.state) == (3, 2, MirrorState.IN_SYNC)
    world.source.put("c.txt", b"a change of a filtered entry")
    world.source.publish()
    report = pull(world, filters=chosen)
    assert (report.updated, report.state) == (1, MirrorState.IN_SYNC)
    assert world.files()[BASE + "c.txt"] == b"a change of a filtered entry"
    assert pull(world, filters=chosen, mode="baseline").updated == 0


def test_a_linked_thing_that_is_missing_is_told_and_tried_again(world: World[LooseSource]) -> None:
    world.network.answers[LICENCE] = Answer(status=404)
    world.source.publish()
    report = pull(world)
    assert (report.failed, report.state) == (1, MirrorState.BEHIND)
    aside(world, "licence", b"free")
    assert pull(world).state is MirrorState.IN_SYNC


def test_a_task_for_what_nobody_links_to_any_more_is_dropped(world: World[LooseSource]) -> None:
    world.network.answers[ABOUT] = Answer(status=404)
    world.source.publish()
    assert pull(world).failed == 1
    world.source.links.put("a.txt", described(LICENCE))
    world.source.put("a.txt", b"new")
    world.source.publish()
    report = pull(world)
    assert (report.failed, report.listed.pending, report.state) == (0, 0, MirrorState.IN_SYNC)


def test_a_baseline_sweeps_what_nobody_links_to(world: World[LooseSource]) -> None:
    world.source.publish()
    pull(world)
    world.source.links.put("a.txt")
    world.source.put("a.txt", b"new")
    world.source.publish()
    world.source.snapshot()
    report = pull(world, mode="baseline")
    assert (report.deleted, report.state) == (1, MirrorState.IN_SYNC)
    assert names(world) == ALL - {"about/a.xml"}


def test_a_lost_linked_copy_is_missing_in_an_audit_and_repaired(world: World[LooseSource]) -> None:
    world.source.publish()
    pull(world)
    (world.folder / "about/a.xml").unlink()
    audit = world.audit()
    assert [(finding.kind, finding.uri) for finding in audit.findings] == [
        (FindingKind.MISSING, ABOUT)
    ]
    from resourcesync.destination.options import PullOptions

    with world.destination() as destination:
        report = destination.repair(audit.findings, PullOptions())
    assert report.created == 1
    assert world.audit().in_sync


@pytest.mark.parametrize("stop", range(6))
def test_a_run_that_is_killed_while_links_are_written_is_made_up_for(
    world: World[LooseSource], stop: int
) -> None:
    world.source.publish()
    pull(world)
    aside(world, "about/a2.xml", b"2")
    world.source.put("a.txt", b"new")
    world.source.links.put("a.txt", described(BASE + "about/a2.xml"))
    world.source.remove("b.txt")
    world.source.publish()
    left = [stop]

    def failing(port: Any) -> Any:
        if hasattr(port, "commit"):
            honest = port.commit

            def commit(step: Any) -> None:
                left[0] -= 1
                if left[0] < 0:
                    raise StorageError("killed")
                honest(step)

            port.commit = commit
        return port

    world.home.before = failing
    with pytest.raises(StorageError):
        pull(world)
    world.home.before = lambda port: port
    report = pull(world)
    assert report.state is MirrorState.IN_SYNC
    assert names(world) == {"a.txt", "c.txt", "about/a2.xml"}
    assert world.audit().in_sync


def test_a_dry_run_writes_no_links(world: World[LooseSource]) -> None:
    world.source.publish()
    pull(world)
    world.source.remove("a.txt")
    world.source.publish()
    pull(world, dry_run=True)
    assert pull(world).deleted == 2


def test_an_address_with_odd_spelling_is_one_thing(world: World[LooseSource]) -> None:
    world.source.links.put("b.txt", described("http://SOURCE.example:80/licence"))
    world.source.publish()
    assert pull(world).resources == 5
