"""Changes whose times tell little: of one second, those of their resources, or none at all.

Each is a life in which a mirror strayed, refused a Source that was fine, or asked more than once.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.options import Filters, PullOptions
from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.errors import SourceUnavailableError
from tests.support.worlds.dump_world import DumpWorld, Packed, Told, sha256, zipped
from tests.support.worlds.loose_world import LooseWorld
from tests.support.worlds.memory_fetcher import Answer
from tests.support.worlds.world import BASE

LISTS = BASE + "resourcesync/"
CHANGE_LIST = LISTS + "changelist.xml"
HOUR = 3_600
OTHER_FILTERS = Filters(exclude=("*.none",))
"""They make the next pull a baseline."""


def test_a_baseline_takes_changes_without_a_time_from_no_old_copy(tmp_path: Path) -> None:
    world = LooseWorld(tmp_path / "mirror", times=False)
    world.put("a.txt", "a")
    world.publish()
    world.put("a.txt", "b")
    world.publish()
    old = world.honest(CHANGE_LIST)
    world.answers[CHANGE_LIST] = lambda request: (
        world.honest(request.uri) if request.uncached else old
    )
    world.put("a.txt", "c")
    world.publish()
    world.snapshot()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.parametrize("times", [True, False])
def test_a_baseline_after_changes_without_a_time_of_their_own_goes_on(
    tmp_path: Path, *, times: bool
) -> None:
    """They move T a little, and no time in the lists says as much."""
    world = LooseWorld(tmp_path / "mirror", times=times)
    world.put("a.txt", "a")
    world.publish()
    world.pull()
    for body in "bc":
        world.put("a.txt", body)
        world.publish()
        assert world.pull().updated == 1

    report = world.pull(filters=OTHER_FILTERS)

    assert (report.state, report.mode) == (MirrorState.IN_SYNC, Mode.BASELINE)
    assert world.in_sync()


def test_changes_of_one_second_that_were_read_one_by_one_do_not_hinder_a_baseline(
    tmp_path: Path,
) -> None:
    world = LooseWorld(tmp_path / "mirror", whole_seconds=True, lastmods=False)
    world.put("a.txt", "a")
    world.publish()
    world.pull()
    now = world.moment()
    for body in "bc":
        world.put("a.txt", body)
        world.source.publish(now, world.originals.contents())
        world.show()
        assert world.pull().updated == 1

    assert world.audit().accurate == 1
    assert world.pull(filters=OTHER_FILTERS).state is MirrorState.IN_SYNC


def test_neither_do_those_of_which_only_some_have_a_time_of_their_own(tmp_path: Path) -> None:
    world = LooseWorld(tmp_path / "mirror")  # an update has the time of its resource
    world.put("a.txt", "a")
    world.put("b.txt", "b")
    world.publish()
    world.pull()
    world.remove("b.txt")
    world.publish()
    assert world.pull().deleted == 1
    world.put("a.txt", "another")
    world.publish()
    assert world.pull().updated == 1

    assert world.pull(filters=OTHER_FILTERS).state is MirrorState.IN_SYNC
    assert world.in_sync()


def _ends_with_a_time_of_its_own(world: LooseWorld) -> None:
    world.remove("d.txt")
    world.publish()


def _ends_with_a_list(world: LooseWorld) -> None:
    world.rotate()
    world.remove("d.txt")
    world.publish()


@pytest.mark.parametrize(
    ("style", "end"),
    [
        ({}, _ends_with_a_time_of_its_own),
        ({"index": True, "times": False}, _ends_with_a_list),
    ],
)
def test_an_old_copy_that_no_asking_gets_past_is_refused_and_takes_nothing_away(
    tmp_path: Path, style: dict[str, Any], end: Callable[[LooseWorld], None]
) -> None:
    world = LooseWorld(tmp_path / "mirror", **style)
    world.put("a.txt", "a")
    world.publish()
    world.pull()
    world.put("a.txt", "another")
    world.publish()
    names = [LISTS + name for name in world.source.documents() if name.startswith("change")]
    old = {name: world.honest(name) for name in names}
    world.put("c.txt", "c")
    world.put("d.txt", "d")
    world.publish()
    end(world)
    assert world.pull().state is MirrorState.IN_SYNC
    world.answers.update(old)

    with pytest.raises(SourceUnavailableError, match="stale copy"):
        world.pull(filters=OTHER_FILTERS)
    assert world.in_sync()
    world.answers.clear()
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.parametrize("times", [True, False])
def test_a_list_that_always_tells_of_the_last_day_is_followed_for_longer(
    tmp_path: Path, *, times: bool
) -> None:
    """Its changes have the times of their resources: these move T with them."""
    world = LooseWorld(tmp_path / "mirror", times=times)
    world.put("a.txt", "0")
    world.publish()
    world.pull()
    window, log = world.source.open_list, list[tuple[int, str]]()
    for hour in range(1, 30):
        world.clock.advance(seconds=HOUR)
        world.put("a.txt", f"{hour}")
        world.publish()
        now = world.moment()
        log.append((now, window.entries[-1]))
        window.start = max(window.start, now - 24 * HOUR * 1_000_000)
        window.entries[:] = [entry for moment, entry in log if moment >= window.start]
        world.show()

        report = world.pull()
        assert (report.state, report.mode) == (MirrorState.IN_SYNC, Mode.INCREMENTAL)
        assert world.in_sync()
        assert report.as_of is not None
        assert (world.clock.now() - report.as_of).total_seconds() < HOUR


def test_a_change_that_is_listed_late_survives_a_baseline_with_the_same_resource_list(
    tmp_path: Path,
) -> None:
    """Its time is before that list, which lacks it: only its place in the list shows it."""
    world = LooseWorld(tmp_path / "mirror", lastmods=False)
    world.put("a.txt", "a")
    world.publish()
    before = world.moment()
    world.snapshot()
    world.pull()
    world.put("late.txt", "late")
    world.source.publish(before, world.originals.contents())
    world.show()
    assert world.pull().created == 1

    assert world.pull(filters=OTHER_FILTERS).mode is Mode.BASELINE
    assert world.in_sync()


def test_a_list_of_the_last_day_may_have_a_change_up_to_a_second_late(tmp_path: Path) -> None:
    world = LooseWorld(tmp_path / "mirror", lastmods=False)
    for body in ("a", "another"):
        world.put("a.txt", body)
        world.publish()
        world.pull()
    window, now = world.source.open_list, world.moment()
    world.put("b.txt", "b")
    world.source.publish(now + 600_000, world.originals.contents())
    world.show()
    assert world.pull().created == 1
    world.put("late.txt", "late")
    world.source.publish(now + 300_000, world.originals.contents(), late=1)
    window.start = now
    del window.entries[0]
    world.show()

    report = world.pull()

    assert (report.mode, report.created) == (Mode.INCREMENTAL, 1)
    assert world.in_sync()


def test_lists_of_the_past_do_not_bring_an_old_copy_back_in(tmp_path: Path) -> None:
    """A baseline needs an archive, and a cache on the way has an old copy of the open list."""
    world = LooseWorld(tmp_path / "mirror", index=True, times=False, keep=1)
    for name in ("a.txt", "x.txt"):
        world.put(name, name)
    world.publish()
    world.put("a.txt", "another")
    world.publish()
    world.rotate()
    first = LISTS + "changes-1.xml"
    world.answers[first] = world.honest(first)
    world.answers[CHANGE_LIST] = partial(_with_archive, world)
    world.answers[LISTS + "archive.xml"] = _archive(world, first)
    world.rotate()
    world.remove("x.txt")
    world.publish()
    old = world.honest(LISTS + "changes-3.xml")
    world.put("x.txt", "x")
    world.publish()
    world.answers[LISTS + "changes-3.xml"] = lambda request: (
        world.honest(request.uri) if request.uncached else old
    )

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def _with_archive(world: LooseWorld, request: Any) -> Answer:
    found = world.honest(request.uri)
    link = f'<rs:ln rel="archives" href="{LISTS}archive.xml"/><rs:md capability="changelist"'
    body = found.body.replace(b'<rs:md capability="changelist"', link.encode(), 1)
    return Answer(body=body, headers=found.headers)


def _archive(world: LooseWorld, uri: str) -> Answer:
    header = world.honest(uri).body.partition(b"<rs:md ")[2].partition(b"/>")[0].decode()
    text = (
        '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        ' xmlns:rs="http://www.openarchives.org/rs/terms/">'
        f'<rs:md capability="changelist-archive"/><url><loc>{uri}</loc><rs:md {header}/></url>'
        "</urlset>"
    )
    return Answer(body=text.encode(), headers={"content-type": "application/xml"})


def told(name: str, hour: int, change: str = "") -> Told:
    moment = f"2026-01-01T{hour:02}:00:00Z"
    body = f"{name} at {hour}".encode()
    return Told(name=name, data=body, change=change, time=moment if change else "", lastmod=moment)


def test_a_package_that_is_read_again_past_caches_is_another_one_and_none_is_left(
    tmp_path: Path,
) -> None:
    begin = "2026-01-01T01:00:00Z"
    world = DumpWorld(tmp_path / "mirror")
    world.clock.advance(hours=36)
    first = [told("a.txt", 0), told("b.txt", 0)]
    world.put_all(first)
    world.list_resources(first, at=begin)
    names = [BASE + name for name in ("p0.zip", "changedump.xml")]

    def pack(changes: list[Told]) -> dict[str, Any]:
        world.put_all(changes)
        body = zipped(changes, from_=begin)
        packed = Packed(name="p0.zip", body=body, hash=sha256(body), from_=begin)
        world.dump_changes(packed, from_=begin)
        return {name: world.answers[name] for name in names}

    changes = [told("a.txt", 2, "updated")]
    old = pack(changes)
    pack(changes := [*changes, told("b.txt", 3, "updated")])
    world.pull()
    new = pack([*changes, told("a.txt", 4, "updated")])
    for name in names:
        world.answers[name] = lambda request: (new if request.uncached else old)[request.uri]

    with world.destination() as destination:
        report = destination.pull(PullOptions())
        waiting = list((world.folder / ".resourcesync" / "tmp").iterdir())

    assert report.state is MirrorState.IN_SYNC
    assert world.is_here()
    assert not waiting


def test_packages_that_stand_for_lists_are_fetched_once(tmp_path: Path) -> None:
    world = DumpWorld(tmp_path / "mirror")
    world.clock.advance(hours=36)
    first = [told("a.txt", 0), told("b.txt", 0)]
    world.put_all(first)
    world.list_resources(first, at="2026-01-01T01:00:00Z")
    changes = [told("a.txt", 2, "updated"), told("b.txt", 3, "updated")]
    world.put_all(changes)
    packed = [
        Packed(
            name=f"p{number}.zip",
            body=zipped(
                [change],
                from_=f"2026-01-01T{number + 1:02}:00:00Z",
                until=f"2026-01-01T{number + 2:02}:00:00Z",
            ),
        )
        for number, change in enumerate(changes)
    ]
    world.dump_changes(*packed, from_="2026-01-01T01:00:00Z")

    with world.destination() as destination:
        report = destination.pull(PullOptions())
        waiting = list((world.folder / ".resourcesync" / "tmp").iterdir())

    assert report.state is MirrorState.IN_SYNC
    assert world.is_here()
    assert [world.asked().count(f"p{number}.zip") for number in range(2)] == [1, 1]
    assert not waiting


def test_an_entry_that_cannot_be_used_is_told_once_though_its_list_is_read_twice(
    tmp_path: Path,
) -> None:
    world = LooseWorld(tmp_path / "mirror", times=False)
    world.put("a.txt", "a")
    world.publish()
    world.put("a.txt", "b")
    world.publish()
    world.source.open_list.entries.append(
        '<url><loc>http://elsewhere.example/x</loc><rs:md change="created"/></url>'
    )
    world.show()

    report = world.pull()

    assert (report.state, report.refused) == (MirrorState.BEHIND, 1)
    assert [mapping["uri"] for mapping in world.told("item")].count(
        "http://elsewhere.example/x"
    ) == 1
    assert len(world.told("item")) == 2
