"""Gaps in the changes, Sources set back, old copies of lists."""

import pytest

from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.errors import (
    DiscontinuityError,
    DocumentError,
    RollbackError,
    SourceError,
    SourceUnavailableError,
)
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import OwnWorld

CHANGE_LIST = BASE + "resourcesync/changelist.xml"
RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


def republish(world: OwnWorld) -> None:
    """A Source that starts anew: a newer Resource List, and Change Lists from there only."""
    world.source.begin_again()
    world.source.publish()


def lose_the_past(world: OwnWorld) -> None:
    body = world.source.honest(CHANGE_LIST).body.decode()
    start = body.index('from="') + 6
    later = body[:start] + "2030-01-01T00:00:00Z" + body[body.index('"', start) :]
    world.network.answers[CHANGE_LIST] = Answer(body=later.encode())


def test_a_gap_in_the_changes_leads_to_a_baseline_that_also_deletes(world: OwnWorld) -> None:
    world.pull()
    world.source.put("objects/0001.html", "changed in the gap")
    world.source.remove("objects/0002.html")
    world.source.put("new.html", "created in the gap")
    republish(world)

    report = world.pull()

    assert report.mode is Mode.BASELINE
    assert [fields["code"] for fields in world.told("warning")] == ["change-gap"]
    assert (report.created, report.updated, report.deleted) == (1, 1, 1)
    assert world.in_sync()


def test_a_gap_without_a_newer_resource_list_is_told_and_nothing_is_called_in_sync(
    world: OwnWorld,
) -> None:
    world.pull()
    world.source.publish_file("objects/0001.html", "x")
    world.pull()
    lose_the_past(world)

    with pytest.raises(DiscontinuityError):
        world.pull()

    assert len(world.files()) == 41


def test_a_source_that_was_set_back_is_not_followed_unless_told_to(world: OwnWorld) -> None:
    old, old_changes = world.source.honest(RESOURCE_LIST), world.source.honest(CHANGE_LIST)
    world.pull()
    republish(world)
    world.pull()
    world.network.answers[RESOURCE_LIST] = old
    lose_the_past(world)

    with pytest.raises(RollbackError):
        world.pull()

    world.network.answers[CHANGE_LIST] = old_changes
    assert world.pull(mode="baseline").state is MirrorState.IN_SYNC


@pytest.mark.parametrize("is_begun_anew", [False, True])
def test_a_change_list_that_lost_changes_is_refused_until_the_source_has_them_or_begins_anew(
    world: OwnWorld, *, is_begun_anew: bool
) -> None:
    world.pull()
    empty = world.source.honest(CHANGE_LIST)
    world.source.publish_file("objects/0001.html", "new")
    world.pull()
    world.network.answers[CHANGE_LIST] = empty
    for _ in range(2):
        with pytest.raises(SourceUnavailableError) as caught:
            world.pull()
        assert caught.value.code == "stale-copy"
        assert world.in_sync()
        world.clock.advance(hours=25)
    world.network.answers.clear()
    if is_begun_anew:
        republish(world)

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.parametrize(
    "away",
    [Answer(status=404), Answer(body=b"<!DOCTYPE html><html><title>Gone</title></html>")],
    ids=["404", "a page"],
)
def test_a_sitemap_never_takes_the_place_of_lists_that_are_away(
    world: OwnWorld, away: Answer
) -> None:
    world.pull()
    for name in ("resourcelist", "changelist", "capabilitylist"):
        world.network.answers[f"{BASE}resourcesync/{name}.xml"] = away
    world.network.answers[BASE + ".well-known/resourcesync"] = away
    world.network.answers[BASE + "sitemap.xml"] = Answer(
        body=b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        b"<url><loc>http://source.example/index.html</loc></url></urlset>"
    )
    world.source.publish_file("objects/0001.html", "changed meanwhile")

    for options in ({}, {"delete": "absent"}):
        with pytest.raises((SourceError, DocumentError)):
            world.pull(**options)
    assert len(world.files()) == 41

    world.network.answers.clear()
    assert world.pull().updated == 1
    assert world.in_sync()
