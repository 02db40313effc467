"""What an audit could not prove is in doubt until it is fetched again or proven."""

import os
from pathlib import Path

import pytest

from resourcesync.destination.audits.sampling import AuditRolling
from resourcesync.destination.reports import MirrorState
from resourcesync.source.stored_plan import PublicationStep
from tests.support.worlds.network import BASE
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

NAME = "objects/0002.html"


def damage(world: World[PublishedSource], text: str = "Content of 2") -> Path:
    path = world.folder / NAME
    stat = path.stat()
    assert len(text) == stat.st_size
    path.write_text(text)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return path


def quarantined(world: World[PublishedSource]) -> list[bytes]:
    folder = world.folder / ".resourcesync" / "quarantine"
    return [path.read_bytes() for path in folder.iterdir() if path.suffix != ".note"]


@pytest.fixture
def damaged(world: World[PublishedSource]) -> World[PublishedSource]:
    world.pull()
    damage(world)
    assert not world.audit().in_sync
    return world


@pytest.mark.parametrize(
    "step", [PublicationStep.UPDATE, PublicationStep.INITIALISE], ids=["deleted", "not listed"]
)
def test_a_damaged_copy_of_what_the_source_takes_away_is_set_aside_and_waits_for_nothing(
    damaged: World[PublishedSource], step: PublicationStep
) -> None:
    damaged.source.remove(NAME)
    damaged.source.publish(step)
    damaged.pull(delete="absent")
    told = damaged.told("warning")
    damaged.clock.advance(hours=2)
    damaged.source.publish(step)

    report = damaged.pull(delete="absent", trash=86_400 * 0)

    assert (report.state, report.failed, report.held) == (MirrorState.IN_SYNC, 0, 0)
    assert not (damaged.folder / NAME).exists()
    assert quarantined(damaged) == [b"Content of 2"]
    assert damaged.audit().in_sync
    (warning,) = (each for each in (*told, *damaged.told("warning")) if each["code"] == "set-aside")
    assert str(warning["message"]).startswith(f"{NAME} is not known")


@pytest.mark.parametrize("edited", ["Content of 2", "content of 2"])
def test_an_update_sets_aside_an_edit_that_kept_size_and_time_but_no_other_mode(
    world: World[PublishedSource], edited: str
) -> None:
    world.pull()
    before = (world.folder / NAME).read_bytes()
    damage(world, edited).chmod(0o640)
    world.source.put(NAME, "new")
    world.source.publish(PublicationStep.UPDATE)

    assert (world.pull().updated, world.in_sync()) == (1, True)
    assert quarantined(world) == [edited.encode()] * (edited.encode() != before)


@pytest.mark.parametrize("options", [{}, {"mode": "baseline"}])
def test_the_next_pull_mends_it_and_keeps_the_altered_file(
    damaged: World[PublishedSource], options: dict[str, str]
) -> None:
    found = damaged.status()
    report = damaged.pull(**options)

    assert (found.state, found.listed.pending) == (MirrorState.BEHIND, 1)
    assert [failing.uri for failing in found.failures] == [BASE + NAME]
    assert "differs" in found.failures[0].reason
    assert report.state is MirrorState.IN_SYNC
    assert report.updated == 1
    assert damaged.asked_resources() == [NAME]
    assert damaged.in_sync()
    assert quarantined(damaged) == [b"Content of 2"]
    assert damaged.status().state is MirrorState.IN_SYNC
    assert damaged.audit().in_sync


@pytest.mark.parametrize("rolling", [None, AuditRolling(oldest_first=True)])
@pytest.mark.parametrize("offline", [False, True])
def test_an_audit_that_proves_the_copy_ends_the_doubt(
    damaged: World[PublishedSource], rolling: AuditRolling | None, offline: bool
) -> None:
    damage(damaged, "content of 2")

    assert damaged.audit(rolling=rolling, offline=offline).in_sync
    assert damaged.status().state is MirrorState.IN_SYNC
    assert damaged.status().listed.pending == 0
    assert damaged.audit(method="stat").in_sync
    damaged.pull()
    assert damaged.asked_resources() == []
