"""A part of a list that cannot be read: the others are followed, and nothing is taken for gone."""

import os
import re
import resource
from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.audits.explain import ResourceVerdict
from resourcesync.destination.reports import MirrorState
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.errors import SourceError, SourceUnavailableError
from resourcesync.source.stored_plan import PublicationStep
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.site_maps import index, urlset
from tests.support.worlds.world import OwnWorld, World

SITEMAP = BASE + "sitemap.xml"
ROBOTS = BASE + "robots.txt"
PARTS = (BASE + "sm-1.xml", BASE + "sm-2.xml", BASE + "sm-3.xml")
ANEW = Filters(exclude=("*.none",))
UNREADABLE: dict[str, Answer | Exception] = {
    "gone": Answer(status=404),
    "forbidden": Answer(status=403),
    "faulty": Answer(status=500),
    "cut below its length": SourceUnavailableError("cut", uri=PARTS[2], code="truncated"),
    "empty": Answer(body=b""),
    "cut short": Answer(body=urlset((BASE + "3/a.html", "2026-01-01"))[:-9]),
    "a page": Answer(body=b"<html><body>log in</body></html>"),
    "an index": Answer(body=index(BASE + "other.xml")),
    "not well-formed": Answer(body=urlset((BASE + "3/a.html", "2026-01-01"))[:-9] + b"</x>"),
}


@pytest.fixture
def site(tmp_path: Path) -> OwnWorld:
    world = World(tmp_path / "mirror")
    robots = f"Sitemap: {SITEMAP}\nSitemap: {BASE}other.xml\n"
    world.network.answers[ROBOTS] = Answer(body=robots.encode())
    for uri in (SITEMAP, BASE + "other.xml"):
        world.network.answers[uri] = Answer(body=index(*PARTS))
    for number, part in enumerate(PARTS, 1):
        names = [f"{number}/a.html", f"{number}/b.html"]
        for name in names:
            world.source.put(name, name)
        lists(world, part, *names)
    return world


@pytest.fixture
def source(tmp_path: Path) -> OwnWorld:
    world = World(tmp_path / "mirror", PublishedSource(max_entries=3))
    for number in range(6):
        world.source.put(f"{number}.txt", f"{number}")
    world.source.publish()
    return world


def lists(world: OwnWorld, part: str, *names: str, lastmod: str = "2026-01-01") -> None:
    world.network.answers[part] = Answer(body=urlset(*((BASE + name, lastmod) for name in names)))


def refused(world: OwnWorld) -> list[object]:
    return [fields["uri"] for fields in world.told("item") if fields["action"] == "refuse"]


@pytest.mark.parametrize("address", [SITEMAP, ROBOTS])
@pytest.mark.parametrize("answer", UNREADABLE.values(), ids=UNREADABLE)
def test_the_other_parts_of_a_sitemap_are_mirrored(
    site: OwnWorld, answer: Answer | Exception, address: str
) -> None:
    whole = site.network.answers[PARTS[2]]
    site.network.answers[PARTS[2]] = answer

    for created in (4, 0):
        report = site.pull(address)

        assert report.created - created in (0, 1)  # what stands before a fault is listed
        found = (report.faults.unread, report.listed.refused, report.state)
        assert found == (1, 1, MirrorState.BEHIND)
        assert refused(site) == [PARTS[2]]
    site.network.answers[PARTS[2]] = whole

    report = site.pull(address)

    counts = (report.faults.unread, report.listed.refused, report.state)
    assert counts == (0, 0, MirrorState.IN_SYNC)
    assert site.in_sync()


@pytest.mark.parametrize("status", [404, 503])
def test_an_index_of_which_nothing_can_be_read_ends_the_run(site: OwnWorld, status: int) -> None:
    for part in PARTS:
        site.network.answers[part] = Answer(status=status)

    with pytest.raises(SourceError) as caught:
        site.pull(SITEMAP)

    assert {("part", PARTS[0]), ("of index", SITEMAP)} <= set(caught.value.evidence)


@pytest.mark.parametrize("more", [{"code": "connect"}, {"status": 503, "retry_after": 60.0}])
def test_a_source_that_does_not_answer_now_for_one_part_ends_the_run(
    site: OwnWorld, more: dict[str, Any]
) -> None:
    site.network.answers[PARTS[2]] = SourceUnavailableError("later", uri=PARTS[2], **more)

    with pytest.raises(SourceUnavailableError):
        site.pull(SITEMAP)


def test_a_mirror_that_was_in_sync_loses_nothing_by_a_missing_part(source: OwnWorld) -> None:
    source.pull()
    source.source.put("1.txt", "changed")
    source.source.remove("4.txt")
    source.source.publish(PublicationStep.REBASE)
    body = source.source.honest(BASE + "resourcesync/resourcelist.xml").body.decode()
    missing = body.partition("<sitemap><loc>")[2].partition("</loc>")[0]
    source.network.answers[missing] = Answer(status=404)

    report = source.pull(filters=ANEW)

    assert (report.state, report.deleted) == (MirrorState.BEHIND, 0)
    assert len(source.files()) == 6
    for _ in range(2):
        source.source.publish_file("2.txt", f"at {source.clock.now()}")
        assert source.pull().state is MirrorState.BEHIND
    del source.network.answers[missing]
    assert source.pull().state is MirrorState.IN_SYNC
    assert source.in_sync()


def test_lost_parts_whose_stored_bytes_the_index_proves_are_read_by_pulls_and_audits_alike(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source = World(tmp_path / "mirror", PublishedSource(max_entries=1))
    for number in range(100):
        source.source.put(f"{number}.txt", f"{number}")
    source.source.publish()
    source.pull()
    body = source.source.honest(BASE + "resourcesync/resourcelist.xml").body.decode()
    for lost in re.findall("<sitemap><loc>(.+?)</loc>", body):
        source.network.answers[lost] = Answer(status=404)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    request.addfinalizer(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits))
    os.close(lowest := os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 50, limits[1]))

    assert {source.pull(mode=each).state for each in ("baseline", "auto")} == {MirrorState.IN_SYNC}
    assert source.audit().in_sync


def test_what_an_unread_part_may_list_is_not_called_unlisted(site: OwnWorld) -> None:
    site.pull(SITEMAP, delete="absent")
    whole = site.network.answers[PARTS[2]]
    site.network.answers[PARTS[2]] = Answer(status=404)
    lists(site, PARTS[1], "2/a.html")

    report = site.pull(SITEMAP)

    assert (report.faults.unread, report.retained.unlisted) == (1, 0)
    assert (site.status().retained.unlisted, site.status().resources) == (0, 6)
    site.network.answers[PARTS[2]] = whole
    assert site.pull(SITEMAP, delete="never").state is MirrorState.IN_SYNC
    assert site.status().retained.unlisted == 1


@pytest.mark.parametrize("answer", [UNREADABLE[name] for name in ("empty", "gone", "faulty")])
def test_audit_repair_and_why_go_on_with_the_other_parts(
    site: OwnWorld, answer: Answer | Exception
) -> None:
    site.pull(SITEMAP)
    site.network.answers[PARTS[2]] = answer
    damaged = next(site.folder.rglob("1/a.html"))
    damaged.write_text("damaged")

    audit = site.audit(method="hash")
    repaired = site.repair(source=SITEMAP, deleting=True)
    why = site.why("3/a.html", SITEMAP)

    assert [finding.uri for finding in audit.findings] == [BASE + "1/a.html"]
    assert (audit.listed, audit.extra, audit.in_sync) == (4, 0, False)
    assert (repaired.updated, repaired.deleted, repaired.state) == (1, 0, MirrorState.BEHIND)
    told = (repaired, site.repair(source=SITEMAP), site.status())
    assert audit.unread == 1
    assert [(each.faults.unread, each.listed.refused) for each in told] == [(1, 1)] * 3
    assert site.in_sync()
    assert why.verdict is ResourceVerdict.AS_FETCHED
    assert "cannot be read" in why.source_error
    lists(site, PARTS[2], "3/a.html", "3/b.html")
    assert site.pull(SITEMAP).state is MirrorState.IN_SYNC
