"""What was deleted is brought back, whatever happens meanwhile, and stays as long as it should."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.app.mirror_trash import is_blocked, is_restored
from resourcesync.destination.audits.explain import ResourceVerdict, explain
from resourcesync.destination.reports import MirrorState
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.destination.trash import Trash, TrashResult, register_lost_trash
from resourcesync.mirror_state.rows import TrashRow
from tests.support.crashes.killing import killed
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

GONE = ["objects/0003.html", "objects/0004.html", "objects/0005.html"]


@contextmanager
def trash_of(
    world: World[PublishedSource], *, dry_run: bool = False
) -> Iterator[tuple[Trash, list[TrashRow]]]:
    with MirrorFolder(world.folder, world.clock) as mirror:
        assert mirror.copies is not None
        assert mirror.state is not None
        held = world.folder / ".resourcesync/trash"
        trash = Trash(
            copies=world.home.before(mirror.copies),
            state=world.home.before(mirror.state),
            clock=world.clock,
            purge=mirror.copies.purge,
            size=lambda at: (held / at).stat().st_size if (held / at).exists() else None,
            is_blocked=partial(is_blocked, world.folder),
            report=lambda event, fields: world.events.append((event, fields)),
            dry_run=dry_run,
        )
        yield trash, list(mirror.state.trash_by_path())


def restore(world: World[PublishedSource], *, dry_run: bool = False) -> TrashResult:
    with trash_of(world, dry_run=dry_run) as (trash, rows):
        return trash.restore(rows)


def in_trash(world: World[PublishedSource]) -> list[Path]:
    return list((world.folder / ".resourcesync/trash").iterdir())


@pytest.fixture
def emptied(world: World[PublishedSource]) -> World[PublishedSource]:
    world.pull()
    for name in GONE:
        world.source.remove(name)
    world.source.publish()
    assert world.pull().deleted == 3
    return world


@pytest.mark.parametrize("how", [0, 1, 2])
def test_a_restoring_that_is_killed_loses_nothing_and_is_ended_by_the_next(
    emptied: World[PublishedSource], how: int
) -> None:
    bodies = {path.name[17:]: path.read_bytes() for path in in_trash(emptied)}
    for writes in range(30):
        world = emptied
        with killed(world.home, writes, how=how) as fuse:
            restore(world)
        assert restore(world, dry_run=True).failed == 0
        there = {path.name[17:]: path.read_bytes() for path in in_trash(world)}
        placed = {
            name[8:]: body for name, body in world.home.files_on_disk().items() if name in GONE
        }
        assert {**there, **placed} == bodies

        assert restore(world).failed == 0

        assert world.home.files_on_disk().keys() >= set(GONE)
        assert in_trash(world) == []
        assert not world.audit().foreign
        if not fuse.is_burnt:
            return
        world.clock.advance(hours=2)
        findings = world.audit().findings  # and away with it again
        assert world.repair(findings, deleting=True).deleted == 3
    raise AssertionError("the run was never long enough to end by itself")


@pytest.mark.parametrize("mode", ["auto", "baseline"])
def test_no_later_word_of_the_source_that_it_is_deleted_takes_it_away(
    emptied: World[PublishedSource], mode: Any
) -> None:
    world = emptied
    restore(world)
    for number in range(3):
        world.source.publish_file("objects/0001.html", f"again {number}")
        world.clock.advance(hours=2)

        report = world.pull(mode=mode, delete="absent")

        assert (report.retained.restored, report.deleted) == (3, 0)
        assert report.state is MirrorState.IN_SYNC
        assert world.status().resources - world.status().listed.right == 3  # they are not listed
        assert world.home.files_on_disk().keys() >= set(GONE)
    with world.destination() as destination:
        looking = destination.read_only_session()
        uri = f"http://source.example/{GONE[0]}"
        assert explain(looking, [uri], list, offline=False).verdict is ResourceVerdict.KEPT


def test_a_file_of_a_killed_sweep_is_not_put_anywhere(emptied: World[PublishedSource]) -> None:
    place = emptied.folder / ".resourcesync/trash/0123456789abcdef-x.html"
    place.write_text("whose?")
    with trash_of(emptied) as (trash, _):
        register_lost_trash(trash.state, trash.copies, emptied.clock)
        done = trash.restore(row for row in trash.state.trash_by_path() if not row.path)

    assert (done.files, done.failed) == (0, 1)
    assert emptied.told("item")[-1]["code"] == "no-place"
    assert place.exists()


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_text("changed")])
def test_what_cannot_be_put_in_place_does_not_stop_the_others_and_the_dry_run_foresees_it(
    emptied: World[PublishedSource], harm: Callable[[Path], object]
) -> None:
    (emptied.folder / GONE[0]).mkdir()
    (lost,) = (path for path in in_trash(emptied) if path.name.endswith(GONE[1].rpartition("/")[2]))
    harm(lost)
    left = in_trash(emptied)

    foreseen = restore(emptied, dry_run=True)
    assert in_trash(emptied) == left
    done, again = restore(emptied), restore(emptied)

    assert [(each.files, each.failed) for each in (foreseen, done, again)] == [
        (1, 2),
        (1, 2),
        (0, 2),
    ]
    assert len(in_trash(emptied)) == len(left) - 1


def test_an_equal_file_that_a_pull_fetched_is_in_the_way_as_the_dry_run_says(
    emptied: World[PublishedSource],
) -> None:
    (body,) = (path.read_text() for path in in_trash(emptied) if path.name[17:] == GONE[0][8:])
    emptied.source.publish_file(GONE[0], body)
    emptied.pull()

    for dry_run in (True, False):
        done = restore(emptied, dry_run=dry_run)
        assert (done.files, done.failed) == (2, 1)
    assert len(in_trash(emptied)) == 1


def test_the_place_of_another_spelling_with_the_same_content_is_taken(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    world.source.publish_file("a+b", "same")
    world.pull()
    world.source.remove("a+b")
    world.source.put("z", "z")
    world.source.publish()
    world.pull()
    world.source.publish_file("a%2Bb", "same")
    world.pull()

    assert restore(world).failed == 1
    assert len(in_trash(world)) == 1
    assert world.in_sync()
    assert len(world.files()) == 2


def test_what_the_filters_excluded_is_restored_as_such_and_goes_with_the_next_prune(
    world: World[PublishedSource],
) -> None:
    world.pull()
    world.pull(filters=Filters(exclude=("0003.html",)), prune=True)
    assert world.why(GONE[0], offline=True).verdict is ResourceVerdict.FILTERED
    restore(world)

    for report in (world.pull(), world.repair(deleting=True), world.status()):
        kept = report.retained.filtered, report.retained.restored
        assert (report.state, kept) == (MirrorState.IN_SYNC, (1, 0))
    assert is_restored(world.folder, lambda _: True)
    assert world.pull(prune=True).deleted == 1
