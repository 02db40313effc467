"""``--link``: what listed entries link to is here too, as copies of its own (§14)."""

from pathlib import Path

import pytest

from resourcesync.destination.audits.reports import FindingKind
from resourcesync.destination.reports import MirrorState
from resourcesync.destination.scope_and_filters import Filters
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
from tests.support.worlds.network import BASE
from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path) -> World[LooseSource]:
    return linked_world(tmp_path / "mirror")


@pytest.mark.founding(
    "0.9 §8", "A Destination fetches linked resources too", "`-o link=describedby`"
)
def test_what_is_linked_to_is_fetched_once_and_is_in_sync_with_the_rest(
    world: World[LooseSource],
) -> None:
    world.source.publish()
    report = pull(world)

    assert report.state is MirrorState.IN_SYNC
    assert (report.created, report.resources, report.retained.linked) == (5, 5, 2)
    assert report.listed.total == 5
    assert world.asked_resources().count("licence") == 1
    assert names(world) == ALL
    assert world.files()[LICENCE] == b"free"
    audit = world.audit()
    assert audit.in_sync
    assert (audit.listed, audit.extra, audit.foreign) == (5, 0, 0)


def test_the_relations_are_remembered_with_the_mirror_and_taken_back_as_filters_are(
    world: World[LooseSource],
) -> None:
    world.source.publish()
    pull(world)
    world.source.put("d.txt", b"d")
    world.source.links.put("d.txt", described(BASE + "about/d.xml"))
    aside(world, "about/d.xml", b"d")
    world.source.publish()
    assert check(world.pull()).created == 2
    assert "about/d.xml" in names(world)
    report = check(world.pull(filters=Filters(exclude=("*.none",)), delete="absent"))
    assert (report.deleted, report.state) == (3, MirrorState.IN_SYNC)
    assert names(world) == {"a.txt", "b.txt", "c.txt", "d.txt"}


@pytest.mark.parametrize("liar", ["a.txt", "b.txt"])
def test_links_that_say_different_things_of_one_target_claim_nothing(
    world: World[LooseSource], liar: str
) -> None:
    world.source.links.put(liar, described(LICENCE, b"another"))
    world.source.publish()
    assert pull(world).state is MirrorState.IN_SYNC
    assert world.files()[LICENCE] == b"free"


def test_a_target_beyond_the_sources_authority_is_refused_once(world: World[LooseSource]) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        world.source.links.put(name, described("http://elsewhere.example/x"), described("urn:x"))
    world.source.publish()
    report = pull(world)
    assert (report.listed.refused, report.resources, report.state) == (2, 3, MirrorState.BEHIND)
    assert not [uri for uri in world.fetcher.asked if "elsewhere" in uri]
    codes = {fields["code"] for fields in world.told("item") if fields["action"] == "refuse"}
    assert codes == {"foreign", "URL_SCHEME"}


def test_filters_choose_entries_and_not_what_they_link_to(world: World[LooseSource]) -> None:
    world.source.put("m.xml", b"meta")
    world.source.links.put(
        "a.txt", described(BASE + "m.xml"), described(BASE + "big"), described(LICENCE)
    )
    aside(world, "big", b"x" * 100)
    world.source.links.put("c.txt", described(BASE + "unwanted"))
    world.source.publish()
    chosen = {"include": ("a.txt",), "exclude": ("licence",), "max_size": 50}
    assert pull(world, filters=chosen).state is MirrorState.IN_SYNC
    assert names(world) == {"a.txt", "m.xml", "big"}  # nobody said how large it is
    assert world.audit().in_sync


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


@pytest.mark.parametrize("is_unlinked", [False, True])
def test_a_linked_copy_whose_deletion_is_listed_is_requested_unless_nothing_links_to_it_any_more(
    world: World[LooseSource], is_unlinked: bool
) -> None:
    chosen = {"include": ("a.txt",)}
    world.source.links.put("a.txt", described(BASE + "c.txt"))
    world.source.publish()
    pull(world, filters=chosen)

    world.source.remove("c.txt")
    if is_unlinked:
        world.source.put("a.txt", b"new")
        world.source.links.put("a.txt")
    world.source.publish()
    assert (pull(world, filters=chosen).state is MirrorState.IN_SYNC) is is_unlinked
    assert world.asked_resources().count("c.txt") == (not is_unlinked)
    assert ("c.txt" in names(world)) is not is_unlinked


def test_a_lost_linked_copy_is_missing_in_an_audit_and_repaired(world: World[LooseSource]) -> None:
    world.source.publish()
    pull(world)
    (world.folder / "about/a.xml").unlink()
    audit = world.audit()
    assert [(finding.kind, finding.uri) for finding in audit.findings] == [
        (FindingKind.MISSING, ABOUT)
    ]
    assert world.repair(audit.findings).created == 1
    assert world.audit().in_sync
