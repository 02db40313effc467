"""What cannot be used is refused, counted once, and refused no longer than it must be."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from resourcesync.destination.lists.selection import MAX_REFUSED
from resourcesync.destination.reports import MirrorState, RunReport
from tests.support.worlds.loose_world import LooseWorld
from tests.support.worlds.memory_fetcher import Answer
from tests.support.worlds.world import BASE

FOREIGN = "http://elsewhere.example/x.html"
CHANGES = BASE + "resourcesync/changelist.xml"


@pytest.fixture
def loose(tmp_path: Path) -> LooseWorld:
    world = LooseWorld(tmp_path / "mirror")
    world.put("a.html", "a")
    world.publish()
    assert world.pull().state is MirrorState.IN_SYNC
    return world


def change(loc: str, second: int) -> str:
    moment = f"2026-01-01T01:00:{second:02}Z"
    told = f'change="updated" datetime="{moment}" length="1"'
    return f"<url><loc>{loc}</loc><rs:md {told}/></url>"


def lists(world: LooseWorld, entries: Sequence[str]) -> None:
    """Let the Change List have these entries."""
    start = world.source.documents()["changelist.xml"]
    body = start.replace("</urlset>", "".join(entries) + "</urlset>")
    world.answers[CHANGES] = Answer(body=body.encode())


def rows(world: LooseWorld) -> list[str]:
    with world.state() as state:
        return [row.uri for row in state.refused()]


def sound(report: RunReport) -> bool:
    accounted = report.unchanged + report.applied + report.pending + report.refused
    return report.listed == accounted


def test_a_refused_change_counts_once_however_often_its_list_is_read(loose: LooseWorld) -> None:
    loose.originals.put(FOREIGN, b"x")
    loose.publish()

    for _ in range(3):
        report = loose.pull()
        assert (report.refused, report.state) == (1, MirrorState.BEHIND)
        assert sound(report)
        loose.put("a.html", f"at {loose.clock.now()}")
        loose.publish()
    loose.originals.put(FOREIGN, b"another x")
    loose.publish()
    assert loose.pull().refused == 1
    assert rows(loose) == [FOREIGN]


def test_a_refused_resource_that_the_source_took_away_is_refused_no_more(
    loose: LooseWorld,
) -> None:
    loose.originals.put(FOREIGN, b"x")
    loose.publish()
    loose.pull()
    loose.originals.remove(FOREIGN)
    loose.publish()

    report = loose.pull()

    assert (report.refused, report.state) == (0, MirrorState.IN_SYNC)
    assert rows(loose) == []
    assert loose.pull().refused == 0


def test_what_is_refused_and_taken_away_in_one_list_was_never_refused(loose: LooseWorld) -> None:
    loose.originals.put(FOREIGN, b"x")
    loose.publish()
    loose.originals.remove(FOREIGN)
    loose.publish()

    assert loose.pull().state is MirrorState.IN_SYNC


def test_an_entry_that_is_listed_well_later_is_refused_no_more(loose: LooseWorld) -> None:
    loose.put("b.html", "b")
    bad = change(f"{BASE}b.html", 1).replace("</url>", "<rs:md/></url>")
    lists(loose, [bad])
    report = loose.pull()
    assert (report.refused, report.state) == (1, MirrorState.BEHIND)
    assert rows(loose) == [f"{BASE}b.html"]
    lists(loose, [bad, change(f"{BASE}b.html", 2)])

    report = loose.pull()

    assert (report.created, report.refused, report.state) == (1, 0, MirrorState.IN_SYNC)
    for _ in range(2):
        assert loose.pull().refused == 0
    lists(loose, [bad, change(f"{BASE}b.html", 2), change(f"{BASE}c", 3)])
    loose.put("c", "c")
    assert loose.pull().state is MirrorState.IN_SYNC


def test_entries_refused_beyond_what_is_remembered_are_counted_and_the_table_is_bounded(
    loose: LooseWorld,
) -> None:
    far = [change(f"http://elsewhere.example/{number}", 1) for number in range(MAX_REFUSED + 50)]
    lists(loose, far[: MAX_REFUSED - 10])
    assert loose.pull().refused == MAX_REFUSED - 10
    lists(loose, far)

    assert loose.pull().refused == MAX_REFUSED + 50
    assert len(rows(loose)) == MAX_REFUSED
    assert loose.pull().refused == MAX_REFUSED + 50
