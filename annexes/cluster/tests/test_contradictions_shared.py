"""Lists that contradict each other: a mirror with workers comes to the same."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState, RunReport
from tests.support.worlds.contradicting_source import (
    LISTED_AT,
    ONE,
    ContradictingSource,
    change,
)
from tests.support.worlds.folder_home import FolderHome
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.shared_workers import SharedWorkers, Steady
from tests.support.worlds.world import World

pytestmark = pytest.mark.usefixtures("without_fsync")

URI = BASE + ONE
LATER = "2026-01-02T12:00:00Z"


@pytest.fixture
def worlds(tmp_path: Path) -> list[World[ContradictingSource]]:
    workers = SharedWorkers(Steady())
    homes = FolderHome(tmp_path / "plain"), FolderHome(tmp_path / "shared", workers)
    made = [World(home, ContradictingSource()) for home in homes]
    for world in made:
        world.source.begin()
        assert world.pull().state is MirrorState.IN_SYNC
    return made


def summary(report: RunReport) -> tuple[Any, ...]:
    done = (report.created, report.updated, report.deleted, report.held, report.retained.unlisted)
    return (
        report.state,
        report.listed.total,
        report.failed,
        report.listed.pending,
        report.listed.refused,
        *done,
    )


ENTRIES = {
    "no change": (),
    "updated": (change("updated", "second"),),
    "deleted": (change("deleted"),),
    "deleted later": (change("deleted", time=LATER),),
    "first unknown, then later": (change("deleted", time=""), change("created", "second", LATER)),
    "of another": (change("deleted", name="none.html"), change("updated", "x", name="0.html")),
}


@pytest.mark.parametrize("entries", ENTRIES.values(), ids=ENTRIES)
@pytest.mark.parametrize(
    ("served", "listed"),
    [("first", "first"), ("second", "first"), ("third", "first"), (None, "first"), ("first", None)],
)
def test_workers_come_to_the_same_as_a_plain_mirror(
    worlds: list[World[ContradictingSource]],
    served: str | None,
    listed: str | None,
    entries: tuple[str, ...],
) -> None:
    told: list[list[object]] = []
    for world in worlds:
        world.source.serve_one(served)
        world.source.list(LISTED_AT, listed, *entries)
        found: list[object] = []
        for _ in range(2):
            world.clock.advance(seconds=3_600)
            found += [summary(world.pull()), world.files(), world.audit().in_sync]
        told.append(found)

    assert told[0] == told[1]


@pytest.mark.parametrize("served", ["first", "second", None])
def test_what_could_not_be_asked_for_is_decided_later_by_workers_too(
    worlds: list[World[ContradictingSource]], served: str | None
) -> None:
    told: list[object] = []
    for world in worlds:
        world.network.answers[URI] = Answer(status=500)
        world.source.list(LISTED_AT, "first", change("updated" if served else "deleted", "second"))
        world.clock.advance(seconds=3_600)
        first = summary(world.pull())
        del world.network.answers[URI]
        world.source.serve_one(served)
        world.clock.advance(seconds=3_600)
        told.append((first, summary(world.pull()), world.files(), world.audit().in_sync))

    assert told[0] == told[1]
