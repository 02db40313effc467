"""``--link``: what listed entries link to is here too, as copies of its own (§14)."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.options import Filters
from resourcesync.destination.reports import FindingKind, MirrorState, RunReport
from resourcesync.errors import ConfigurationError, StorageError
from tests.support.linking_world import LinkingWorld, link
from tests.support.memory_fetcher import Answer
from tests.support.scripted_source import sha256
from tests.support.world import BASE

RELATIONS = ("describedby",)
ABOUT = BASE + "about/a.xml"
LICENCE = BASE + "licence"


@pytest.fixture
def world(tmp_path: Path) -> LinkingWorld:
    world = LinkingWorld(tmp_path / "mirror")
    for name in ("a.txt", "b.txt", "c.txt"):
        world.put(name, name.encode() * 10)
    aside(world, "about/a.xml", b"<about>a</about>")
    aside(world, "licence", b"free")
    world.link("a.txt", described(ABOUT, b"<about>a</about>"), described(LICENCE))
    world.link("b.txt", described(LICENCE))
    return world


def aside(world: LinkingWorld, name: str, body: bytes) -> None:
    """Serve something that is not listed."""
    world.answers[BASE + name] = Answer(body=body)


def described(href: str, body: bytes | None = None) -> str:
    facts = "" if body is None else f' hash="{sha256(body)}" length="{len(body)}"'
    return link("describedby", href, facts)


def pull(world: LinkingWorld, *relations: str, **more: Any) -> RunReport:
    filters = Filters(links=relations or RELATIONS, **more.pop("filters", {}))
    return check(world.pull(filters=filters, **more))


def check(report: RunReport) -> RunReport:
    """Everything listed is accounted for."""
    assert report.listed == report.unchanged + report.applied + report.pending + report.refused
    return report


def names(world: LinkingWorld) -> set[str]:
    return {uri.removeprefix(BASE) for uri in world.files()}


ALL = {"a.txt", "b.txt", "c.txt", "about/a.xml", "licence"}


def test_what_is_linked_to_is_fetched_once_and_is_in_sync_with_the_rest(
    world: LinkingWorld,
) -> None:
    world.publish()
    report = pull(world)

    assert report.state is MirrorState.IN_SYNC
    assert (report.created, report.resources, report.linked) == (5, 5, 2)
    assert report.listed == 5
    assert world.asked_resources().count("licence") == 1
    assert names(world) == ALL
    assert world.files()[LICENCE] == b"free"
    audit = world.audit()
    assert audit.in_sync
    assert (audit.listed, audit.extra, audit.foreign) == (5, 0, 0)


def test_without_the_option_nothing_is_followed(world: LinkingWorld) -> None:
    world.publish()
    assert check(world.pull()).created == 3
    assert names(world) == {"a.txt", "b.txt", "c.txt"}


def test_the_relations_are_remembered_with_the_mirror_and_taken_back_as_filters_are(
    world: LinkingWorld,
) -> None:
    world.publish()
    pull(world)
    world.put("d.txt", b"d")
    world.link("d.txt", described(BASE + "about/d.xml"))
    aside(world, "about/d.xml", b"d")
    world.publish()
    assert check(world.pull()).created == 2
    assert "about/d.xml" in names(world)
    report = check(world.pull(filters=Filters(exclude=("*.none",)), delete="absent"))
    assert (report.deleted, report.state) == (3, MirrorState.IN_SYNC)
    assert names(world) == {"a.txt", "b.txt", "c.txt", "d.txt"}


def test_other_relations_are_left_alone(world: LinkingWorld) -> None:
    world.link("c.txt", link("collection", BASE + "set"), link("DescribedBy ALTERNATE", LICENCE))
    world.publish()
    assert pull(world, "alternate").created == 4
    assert names(world) == {"a.txt", "b.txt", "c.txt", "licence"}


@pytest.mark.parametrize("relation", ["duplicate", "", "two words"])
def test_a_relation_that_cannot_be_followed_is_refused(world: LinkingWorld, relation: str) -> None:
    world.publish()
    with pytest.raises(ConfigurationError):
        pull(world, relation)


def test_a_linked_thing_is_verified_by_the_links_own_hash(world: LinkingWorld) -> None:
    aside(world, "about/a.xml", b"<about>x</about>")
    world.publish()
    report = pull(world)
    assert (report.state, report.failed, report.pending) == (MirrorState.BEHIND, 1, 1)
    assert report.failures[0].code == "hash-mismatch"
    assert "about/a.xml" not in names(world)


@pytest.mark.parametrize("liar", ["a.txt", "b.txt"])
def test_links_that_say_different_things_of_one_target_claim_nothing(
    world: LinkingWorld, liar: str
) -> None:
    world.link(liar, described(LICENCE, b"another"))
    world.publish()
    assert pull(world).state is MirrorState.IN_SYNC
    assert world.files()[LICENCE] == b"free"


def test_a_target_beyond_the_sources_authority_is_refused_once(world: LinkingWorld) -> None:
    for name in ("a.txt", "b.txt", "c.txt"):
        world.link(name, described("http://elsewhere.example/x"), described("urn:x"))
    world.publish()
    report = pull(world)
    assert (report.refused, report.resources, report.state) == (2, 3, MirrorState.BEHIND)
    assert not [uri for uri in world.fetcher.asked if "elsewhere" in uri]
    codes = {fields["code"] for fields in world.told("item") if fields["action"] == "refuse"}
    assert codes == {"foreign", "URL_SCHEME"}


def test_what_is_listed_itself_keeps_its_own_entry(world: LinkingWorld) -> None:
    world.link("c.txt", described(BASE + "a.txt", b"nonsense"))
    world.publish()
    report = pull(world)
    assert (report.state, report.linked, report.resources) == (MirrorState.IN_SYNC, 2, 5)
    assert world.files()[BASE + "a.txt"] == b"a.txt" * 10
    world.put("c.txt", b"new")
    world.publish()
    report = pull(world)
    assert (report.updated, report.failed, report.state) == (1, 0, MirrorState.IN_SYNC)
    world.link("c.txt")
    world.put("c.txt", b"newer")
    world.publish()
    assert pull(world).deleted == 0
    assert names(world) == ALL


def test_filters_choose_entries_and_not_what_they_link_to(world: LinkingWorld) -> None:
    world.put("m.xml", b"meta")
    world.link("a.txt", described(BASE + "m.xml"), described(BASE + "big"), described(LICENCE))
    aside(world, "big", b"x" * 100)
    world.link("c.txt", described(BASE + "unwanted"))
    world.publish()
    chosen = {"include": ("a.txt",), "exclude": ("licence",), "max_size": 50}
    report = pull(world, filters=chosen)
    assert report.state is MirrorState.IN_SYNC
    assert names(world) == {"a.txt", "m.xml", "big"}  # nobody said how large it is
    assert world.audit().in_sync


# --- changes ---


def test_a_changed_entry_brings_its_new_links_and_drops_its_old_ones(world: LinkingWorld) -> None:
    world.publish()
    pull(world)
    aside(world, "about/a2.xml", b"2")
    world.put("a.txt", b"new")
    world.link("a.txt", described(BASE + "about/a2.xml"))
    world.publish()
    report = pull(world)
    assert (report.created, report.updated, report.deleted) == (1, 1, 1)
    assert report.state is MirrorState.IN_SYNC
    assert names(world) == ALL - {"about/a.xml"} | {"about/a2.xml"}  # b.txt links to the licence
    assert world.audit().in_sync
    again = pull(world)
    assert (again.created, again.updated, again.deleted) == (0, 0, 0)


def test_what_nobody_links_to_any_more_goes_to_the_trash_with_its_last_entry(
    world: LinkingWorld,
) -> None:
    world.publish()
    pull(world)
    world.remove("a.txt")
    world.publish()
    assert pull(world).deleted == 2
    assert names(world) == {"b.txt", "c.txt", "licence"}
    world.remove("b.txt")
    world.publish()
    report = pull(world)
    assert (report.deleted, report.state, report.linked) == (2, MirrorState.IN_SYNC, 0)
    assert names(world) == {"c.txt"}
    assert len(list((world.folder / ".resourcesync/trash").iterdir())) == 4
    assert world.audit().in_sync


@pytest.mark.parametrize("mode", ["auto", "baseline"])
def test_nothing_is_deleted_when_that_is_the_policy(world: LinkingWorld, mode: str) -> None:
    world.publish()
    pull(world)
    world.remove("a.txt")
    world.publish()
    world.snapshot()
    report = pull(world, delete="never", mode=mode)
    assert (report.deleted, report.unlisted) == (0, 2)
    assert names(world) == ALL


def test_links_count_among_the_deletions_that_one_run_may_do(world: LinkingWorld) -> None:
    from resourcesync.destination.plan import DeletionLimit

    world.publish()
    pull(world)
    world.link("a.txt")
    world.put("a.txt", b"new")
    world.publish()
    report = pull(world, max_delete=DeletionLimit(count=0))
    assert (report.held, report.state) == (1, MirrorState.STOPPED)
    world.link("c.txt", described(ABOUT, b"<about>a</about>"))
    world.put("c.txt", b"new")
    world.publish()
    report = pull(world)
    assert (report.held, report.deleted, report.state) == (0, 0, MirrorState.IN_SYNC)
    assert names(world) == ALL


def test_a_linked_thing_without_a_hash_is_asked_for_anew_when_an_entry_changes(
    world: LinkingWorld,
) -> None:
    world.publish()
    pull(world)
    aside(world, "licence", b"freer")
    assert pull(world).updated == 0
    world.put("b.txt", b"new")
    world.publish()
    assert pull(world).updated == 2
    assert world.files()[LICENCE] == b"freer"
    world.put("b.txt", b"newer")
    world.publish()
    report = pull(world)
    assert (report.updated, world.asked_resources().count("licence")) == (1, 1)  # 304


def test_what_was_linked_to_and_becomes_listed_is_no_longer_here_by_links(
    world: LinkingWorld,
) -> None:
    world.publish()
    pull(world)
    del world.answers[LICENCE]
    world.put("licence", b"listed now")
    world.publish()
    report = pull(world)
    assert (report.updated, report.linked) == (1, 1)
    for name in ("a.txt", "b.txt"):
        world.link(name)
        world.put(name, b"without links")
    world.publish()
    report = pull(world)
    assert report.deleted == 1
    assert names(world) == ALL - {"about/a.xml"}
    assert world.audit().in_sync


def test_a_baseline_finds_out_that_a_linked_thing_is_listed_now(world: LinkingWorld) -> None:
    world.publish()
    assert pull(world).linked == 2
    del world.answers[LICENCE]
    world.put("licence", b"free")
    world.publish()
    world.snapshot()
    assert pull(world, mode="baseline").linked == 1


def test_a_copy_that_the_filters_gave_up_is_wanted_again_when_it_is_linked_to(
    world: LinkingWorld,
) -> None:
    world.publish()
    check(world.pull())
    chosen = {"include": ("a.txt",)}
    before = pull(world, filters=chosen)
    assert (before.listed, before.linked) == (3, 2)
    world.put("a.txt", b"new")
    world.link("a.txt", described(LICENCE), described(BASE + "c.txt"))
    world.publish()
    after = pull(world, filters=chosen)
    assert (after.listed, after.linked, after.state) == (3, 2, MirrorState.IN_SYNC)
    world.put("c.txt", b"a change of a filtered entry")
    world.publish()
    report = pull(world, filters=chosen)
    assert (report.updated, report.state) == (1, MirrorState.IN_SYNC)
    assert world.files()[BASE + "c.txt"] == b"a change of a filtered entry"
    assert pull(world, filters=chosen, mode="baseline").updated == 0


def test_a_linked_thing_that_is_missing_is_told_and_tried_again(world: LinkingWorld) -> None:
    world.answers[LICENCE] = Answer(status=404)
    world.publish()
    report = pull(world)
    assert (report.failed, report.state) == (1, MirrorState.BEHIND)
    aside(world, "licence", b"free")
    assert pull(world).state is MirrorState.IN_SYNC


def test_a_task_for_what_nobody_links_to_any_more_is_dropped(world: LinkingWorld) -> None:
    world.answers[ABOUT] = Answer(status=404)
    world.publish()
    assert pull(world).failed == 1
    world.link("a.txt", described(LICENCE))
    world.put("a.txt", b"new")
    world.publish()
    report = pull(world)
    assert (report.failed, report.pending, report.state) == (0, 0, MirrorState.IN_SYNC)


def test_a_baseline_sweeps_what_nobody_links_to(world: LinkingWorld) -> None:
    world.publish()
    pull(world)
    world.link("a.txt")
    world.put("a.txt", b"new")
    world.publish()
    world.snapshot()
    report = pull(world, mode="baseline")
    assert (report.deleted, report.state) == (1, MirrorState.IN_SYNC)
    assert names(world) == ALL - {"about/a.xml"}


def test_a_lost_linked_copy_is_missing_in_an_audit_and_repaired(world: LinkingWorld) -> None:
    world.publish()
    pull(world)
    (world.folder / "about/a.xml").unlink()
    audit = world.audit()
    assert [(it.kind, it.uri) for it in audit.findings] == [(FindingKind.MISSING, ABOUT)]
    from resourcesync.destination.options import PullOptions

    with world.destination() as destination:
        report = destination.repair(audit.findings, PullOptions())
    assert report.created == 1
    assert world.audit().in_sync


@pytest.mark.parametrize("stop", range(6))
def test_a_run_that_is_killed_while_links_are_written_is_made_up_for(
    world: LinkingWorld, stop: int
) -> None:
    world.publish()
    pull(world)
    aside(world, "about/a2.xml", b"2")
    world.put("a.txt", b"new")
    world.link("a.txt", described(BASE + "about/a2.xml"))
    world.remove("b.txt")
    world.publish()
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

    world.before = failing
    with pytest.raises(StorageError):
        pull(world)
    world.before = lambda port: port
    report = pull(world)
    assert report.state is MirrorState.IN_SYNC
    assert names(world) == {"a.txt", "c.txt", "about/a2.xml"}
    assert world.audit().in_sync


def test_a_dry_run_writes_no_links(world: LinkingWorld) -> None:
    world.publish()
    pull(world)
    world.remove("a.txt")
    world.publish()
    pull(world, dry_run=True)
    assert pull(world).deleted == 2


def test_an_address_with_odd_spelling_is_one_thing(world: LinkingWorld) -> None:
    world.link("b.txt", described("http://SOURCE.example:80/licence"))
    world.publish()
    assert pull(world).resources == 5
