"""What cannot be used is refused, counted once, and refused no longer than it must be."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World

FOREIGN = "http://elsewhere.example/x.html"
CHANGES = BASE + "resourcesync/changelist.xml"


@pytest.fixture
def loose(tmp_path: Path) -> World[LooseSource]:
    world = World(tmp_path / "mirror", LooseSource())
    world.source.publish_file("a.html", "a")
    assert world.pull().state is MirrorState.IN_SYNC
    return world


def change(loc: str, second: int) -> str:
    moment = f"2026-01-01T01:00:{second:02}Z"
    told = f'change="updated" datetime="{moment}" length="1"'
    return f"<url><loc>{loc}</loc><rs:md {told}/></url>"


def lists(world: World[LooseSource], entries: Sequence[str]) -> None:
    """Let the Change List have these entries."""
    start = world.source.lists.documents()["changelist.xml"]
    body = start.replace("</urlset>", "".join(entries) + "</urlset>")
    world.network.answers[CHANGES] = Answer(body=body.encode())


def rows(world: World[LooseSource]) -> list[str]:
    with world.state() as state:
        return [row.uri for row in state.refused()]


def test_what_is_refused_and_taken_away_in_one_list_was_never_refused(
    loose: World[LooseSource],
) -> None:
    loose.source.originals.put(FOREIGN, b"x")
    loose.source.publish()
    loose.source.originals.remove(FOREIGN)
    loose.source.publish()

    assert loose.pull().state is MirrorState.IN_SYNC


def test_an_entry_that_is_listed_well_later_is_refused_no_more(loose: World[LooseSource]) -> None:
    loose.source.put("b.html", "b")
    bad = change(f"{BASE}b.html", 1).replace("</url>", "<rs:md/></url>")
    lists(loose, [bad])
    report = loose.pull()
    assert (report.listed.refused, report.state) == (1, MirrorState.BEHIND)
    assert rows(loose) == [f"{BASE}b.html"]
    lists(loose, [bad, change(f"{BASE}b.html", 2)])

    report = loose.pull()

    assert (report.created, report.listed.refused, report.state) == (1, 0, MirrorState.IN_SYNC)
    for _ in range(2):
        assert loose.pull().listed.refused == 0
    lists(loose, [bad, change(f"{BASE}b.html", 2), change(f"{BASE}c", 3)])
    loose.source.put("c", "c")
    assert loose.pull().state is MirrorState.IN_SYNC
