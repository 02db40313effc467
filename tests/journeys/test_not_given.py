"""What a Source lists and does not give: no failure at a sitemap, or where a person says so."""

from pathlib import Path

import pytest

from resourcesync.destination.audits.explain import ResourceVerdict
from resourcesync.destination.reports import MirrorState
from resourcesync.errors import SourceRefusedError, SourceUnavailableError
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.site_maps import urlset
from tests.support.worlds.world import OwnWorld, World

SITEMAP = BASE + "sitemap.xml"
NAMES = ("a.html", "b.html", "c.html")


@pytest.fixture
def site(tmp_path: Path) -> OwnWorld:
    world = World(tmp_path / "mirror")
    for name in NAMES:
        world.source.put(name, name)
    listed(world, "2026-01-01")
    return world


def goes(site: OwnWorld, *names: str) -> None:
    site.pull(SITEMAP)
    for name in names:
        site.network.answers[BASE + name] = Answer(status=404)
    listed(site, "2026-02-01")
    site.pull(None)


def listed(world: OwnWorld, lastmod: str) -> None:
    pages = [(BASE + name, lastmod) for name in NAMES]
    world.network.answers[SITEMAP] = Answer(body=urlset(*pages))


@pytest.mark.parametrize("code", ["dns", "egress"])
def test_a_page_that_leads_to_a_site_without_an_address_is_skipped(
    site: OwnWorld, code: str
) -> None:
    there = "https://internal.example/login"
    site.network.answers[BASE + "c.html"] = SourceUnavailableError(
        "no address", uri=there, code=code
    )

    report = site.pull(SITEMAP)

    assert (report.state, report.created) == (MirrorState.IN_SYNC, 2)
    assert (report.listed.absent, report.listed.skipped, report.failed) == (0, 1, 0)
    [told] = [fields for fields in site.told("item") if fields["status"] != "ok"]
    assert (told["status"], told["code"]) == ("skipped", "redirect")
    assert "https://internal.example" in str(told["reason"])


@pytest.mark.parametrize("code", ["dns", "egress"])
def test_a_site_without_an_address_itself_is_a_failure(site: OwnWorld, code: str) -> None:
    at = BASE + "c.html"
    site.network.answers[at] = SourceUnavailableError("no address", uri=at, code=code)

    report = site.pull(SITEMAP)

    assert (report.state, report.listed.skipped, report.failed) == (MirrorState.BEHIND, 0, 1)


def test_a_copy_of_a_page_that_is_gone_is_kept(site: OwnWorld) -> None:
    site.pull(SITEMAP)
    before = site.files()
    site.network.answers[BASE + "b.html"] = Answer(status=404)
    listed(site, "2026-02-01")

    report = site.pull(None)

    assert (report.state, report.listed.absent, report.deleted) == (MirrorState.IN_SYNC, 1, 0)
    assert site.files() == before
    assert [item["kept"] for item in site.told("item") if item["status"] == "absent"] == [True]
    assert all(site.audit(offline=offline).in_sync for offline in (False, True))

    for path in site.folder.rglob("b.html*"):
        path.unlink()
    assert not site.audit().in_sync


@pytest.mark.parametrize(
    "answer",
    [
        *(Answer(status=404), SourceRefusedError("no", uri=BASE + "c.html", code="robots")),
        SourceUnavailableError("no address", uri="https://internal.example/", code="egress"),
    ],
)
def test_an_old_copy_of_what_is_not_given_now_is_never_called_right(
    site: OwnWorld, answer: Answer | Exception
) -> None:
    site.pull(SITEMAP)
    site.network.answers[BASE + "b.html"] = answer
    listed(site, "2026-02-01")
    assert site.pull(None).state is MirrorState.IN_SYNC

    for method in ("lists", "stat", "hash", "remote"):
        for offline in (False, True):
            report = site.audit(method=method, offline=offline)
            assert report.in_sync, (method, offline)
            assert (report.listed, report.present, report.accurate) == (2, 2, 2)
            assert report.absent + report.skipped == 1
            assert report.findings == ()
    known = site.status()
    assert (known.listed.absent + known.listed.skipped, known.retained.unknown) == (1, 1)


def test_nothing_is_known_of_a_mirror_that_is_given_nothing_any_more(site: OwnWorld) -> None:
    goes(site, *NAMES)

    report = site.audit()

    assert (report.listed, report.absent, report.accuracy) == (0, 3, None)
    assert (site.status().resources, site.status().retained.unknown) == (3, 3)


def test_an_audit_that_asks_says_what_it_is_given(site: OwnWorld) -> None:
    goes(site, "b.html")

    del site.network.answers[BASE + "b.html"]
    assert (site.audit(method="remote").accurate, site.audit(method="remote").absent) == (3, 0)
    for answer in (Answer(status=500), Answer(body=b"other bytes")):
        site.network.answers[BASE + "b.html"] = answer
        assert not site.audit(method="remote").in_sync


def test_a_damaged_copy_of_what_is_not_given_is_found(site: OwnWorld) -> None:
    goes(site, "b.html")
    (path,) = site.folder.rglob("b.html*")
    path.write_text("other")

    report = site.audit(method="hash")

    assert (report.listed, report.accurate, report.absent) == (3, 2, 0)
    assert [finding.uri for finding in report.findings] == [BASE + "b.html"]


@pytest.mark.parametrize("code", [404, 410])
def test_a_page_that_is_gone_is_absent_and_every_command_accepts_it(
    site: OwnWorld, code: int
) -> None:
    site.network.answers[BASE + "b.html"] = Answer(status=code)
    for created in (2, 0):
        report = site.pull(SITEMAP)
        assert (report.state, report.created, report.failures) == (MirrorState.IN_SYNC, created, ())
        assert (report.listed.absent, report.listed.pending, report.failed) == (1, 0, 0)

    for method in ("lists", "stat", "hash", "remote"):
        found = site.audit(method=method)
        assert (found.in_sync, found.absent, found.findings) == (True, 1, ())
        assert site.audit(method=method, offline=True).in_sync
    (path,) = site.folder.rglob("a.html*")
    path.unlink()
    for created in (1, 0):
        repaired = site.repair()
        assert (repaired.state, repaired.created) == (MirrorState.IN_SYNC, created)
        assert (repaired.listed.absent, repaired.failed) == (1, 0)
    assert site.repair(deleting=True).state is MirrorState.IN_SYNC
    status = site.status()
    counts = (status.state, status.listed.absent, status.listed.pending)
    assert counts == (MirrorState.IN_SYNC, 1, 0)
    assert site.why("b.html").verdict is ResourceVerdict.ABSENT
    assert site.why("b.html").verdict.is_well


def test_no_command_accepts_what_is_gone_where_the_operator_does_not(site: OwnWorld) -> None:
    site.network.answers[BASE + "b.html"] = Answer(status=404)
    site.pull(SITEMAP, accept_missing=False)

    assert not site.audit(method="remote").in_sync
    assert site.repair().state is MirrorState.BEHIND
    assert site.why("b.html").verdict is ResourceVerdict.FAILED
