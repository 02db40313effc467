"""``--link``: what becomes of linked things when entries change, or a run is killed (§14)."""

from pathlib import Path

import pytest

from resourcesync.destination.audits.reports import FindingKind
from resourcesync.destination.reports import MirrorState
from tests.support.worlds.linked_things import (
    ABOUT,
    LICENCE,
    check,
    described,
    linked_world,
    pull,
)
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path) -> World[LooseSource]:
    return linked_world(tmp_path / "mirror")


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
    world.source.publish_file("c.txt", b"a change of a filtered entry")
    report = pull(world, filters=chosen)
    assert (report.updated, report.state) == (1, MirrorState.IN_SYNC)
    assert world.files()[BASE + "c.txt"] == b"a change of a filtered entry"
    assert pull(world, filters=chosen, mode="baseline").updated == 0


def test_a_lost_linked_copy_is_missing_in_an_audit_and_repaired(world: World[LooseSource]) -> None:
    world.source.publish()
    pull(world)
    (world.folder / "about/a.xml").unlink()
    audit = world.audit()
    assert [(finding.kind, finding.uri) for finding in audit.findings] == [
        (FindingKind.MISSING, ABOUT)
    ]
    report = world.repair(audit.findings)
    assert report.created == 1
    assert world.audit().in_sync
