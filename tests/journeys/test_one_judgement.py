"""What an audit proved is in the state: every command judges a copy alike."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from resourcesync.destination.audits.explain import Explanation, ResourceVerdict
from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import MirrorState, MirrorStatus, RunReport
from resourcesync.destination.status import status_of
from resourcesync.ports import FetchRequest
from resourcesync.source.plan import Policy
from tests.support.worlds.network import BASE, Answer, Network, Serve
from tests.support.worlds.plain_site import PlainSite
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

PAGES = {f"{number}.html": f"page {number}" for number in range(6)}
LARGE = "a" * 20_000


@pytest.fixture
def site(tmp_path: Path) -> World[PlainSite]:
    """A mirror of a site of which one page was edited, and its date was not."""
    world = World(tmp_path / "mirror", PlainSite(PAGES, date="2024-01-01"))
    world.pull()
    world.clock.advance(hours=1)
    world.source.pages["3.html"] = b"edited"
    return world


def status(world: World[PlainSite] | World[PublishedSource]) -> MirrorStatus:
    with world.state() as state:
        return status_of("mirror", state, running=False)


def repair(world: World[PlainSite] | World[PublishedSource]) -> RunReport:
    with world.destination(None) as destination:
        return destination.repair(None, PullOptions())


def why(
    world: World[PlainSite] | World[PublishedSource], name: str, *, offline: bool = False
) -> Explanation:
    with world.destination(None) as destination:
        return destination.explain([BASE + name], list, offline=offline)


def test_what_no_one_asked_for_is_as_its_date_says(site: World[PlainSite]) -> None:
    assert site.pull().state is MirrorState.IN_SYNC
    assert (status(site).state, status(site).listed.pending) == (MirrorState.IN_SYNC, 0)
    assert site.audit().in_sync


@pytest.mark.parametrize("offline", [False, True])
def test_after_an_audit_found_a_page_changed_no_command_calls_the_mirror_in_sync(
    site: World[PlainSite], offline: bool
) -> None:
    assert not site.audit(method="remote").in_sync

    found = status(site)
    assert (found.state, found.listed.pending, found.listed.unchanged) == (
        MirrorState.BEHIND,
        1,
        found.resources - 1,
    )
    assert [failure.uri for failure in found.failures] == [f"{BASE}3.html"]
    for method in ("lists", "stat", "hash"):
        report = site.audit(method=method, offline=offline)
        assert [finding.uri for finding in report.findings] == [f"{BASE}3.html"], method
    assert why(site, "3.html", offline=offline).verdict is ResourceVerdict.STALE
    assert why(site, "2.html", offline=offline).verdict.is_well


@pytest.mark.parametrize("mode", ["auto", "baseline"])
def test_a_pull_fetches_what_an_audit_found_changed(site: World[PlainSite], mode: str) -> None:
    site.audit(method="remote")

    report = site.pull(mode=mode)

    assert (report.state, report.updated) == (MirrorState.IN_SYNC, 1)
    assert site.in_sync()
    assert status(site).state is MirrorState.IN_SYNC
    assert site.audit(method="remote").in_sync
    assert why(site, "3.html").verdict.is_well


def test_a_repair_takes_what_the_last_audit_found(site: World[PlainSite]) -> None:
    site.audit(method="remote")

    report = repair(site)

    assert (report.state, report.updated) == (MirrorState.IN_SYNC, 1)
    assert site.asked_resources().count("3.html") >= 1
    assert site.in_sync()


def test_a_page_that_is_as_before_again_is_well_for_all_after_the_next_audit(
    site: World[PlainSite],
) -> None:
    site.audit(method="remote")
    site.source.pages["3.html"] = b"page 3"

    assert site.audit(method="remote").in_sync
    assert (status(site).state, status(site).listed.pending) == (MirrorState.IN_SYNC, 0)
    assert why(site, "3.html").verdict.is_well


def test_a_page_that_an_audit_found_gone_is_known_to_all(site: World[PlainSite]) -> None:
    del site.source.pages["3.html"]
    assert site.audit(method="remote").absent == 1

    assert (status(site).listed.absent, status(site).retained.unknown) == (1, 1)
    assert site.audit().absent == 1
    assert why(site, "3.html").verdict is ResourceVerdict.ABSENT
    report = site.pull()
    assert (report.listed.absent, site.asked_resources()) == (1, ["3.html"])


@pytest.fixture
def source(tmp_path: Path) -> World[PublishedSource]:
    """A mirror of a Source that serves other bytes than it lists."""
    world = World(tmp_path / "mirror")
    for name in ("a.txt", "b.txt"):
        world.source.put(name, LARGE)
    world.source.publish()
    world.pull()
    world.network.answers[BASE + "a.txt"] = Answer(body=b"b" * 20_000)
    return world


def test_a_server_that_serves_other_bytes_than_are_listed_is_not_in_sync(
    source: World[PublishedSource],
) -> None:
    assert source.pull().state is MirrorState.IN_SYNC
    assert not source.audit(method="remote").in_sync

    assert status(source).state is MirrorState.BEHIND
    for method in ("lists", "stat", "hash"):
        assert not source.audit(method=method).in_sync, method
    for report in (source.pull(), source.pull(mode="baseline"), repair(source)):
        assert report.state is MirrorState.BEHIND
    assert source.in_sync(), "the copy that is as listed stays"
    assert why(source, "a.txt").verdict is ResourceVerdict.DISAGREES

    source.network.answers.clear()
    assert source.pull().state is MirrorState.IN_SYNC
    assert why(source, "a.txt").verdict is ResourceVerdict.AS_LISTED
    assert source.audit(method="remote").in_sync


def test_a_version_that_an_audit_found_listed_is_known_to_the_status(
    source: World[PublishedSource],
) -> None:
    source.network.answers.clear()
    source.source.put("a.txt", "newer")
    source.source.publish()
    assert status(source).state is MirrorState.IN_SYNC

    assert not source.audit().in_sync

    assert status(source).state is MirrorState.BEHIND
    source.pull()
    assert status(source).state is MirrorState.IN_SYNC


@pytest.fixture
def resting(tmp_path: Path) -> World[PlainSite]:
    """A mirror of a site of which one page was absent so often that it rests; now it is there."""
    world = World(tmp_path / "mirror", PlainSite(PAGES, date="2024-01-01"))
    del world.source.pages["3.html"]
    for _ in range(6):
        world.clock.advance(seconds=1)
        world.pull()
    assert world.asked_resources() == []
    world.source.pages["3.html"] = b"there"
    return world


def test_a_page_that_rests_is_asked_for_by_a_baseline(resting: World[PlainSite]) -> None:
    assert resting.pull().listed.absent == 1

    report = resting.pull(mode="baseline")

    assert (report.created, report.listed.absent, report.state) == (1, 0, MirrorState.IN_SYNC)


def test_a_page_that_rests_is_asked_for_by_a_repair(resting: World[PlainSite]) -> None:
    report = repair(resting)

    assert (report.created, report.listed.absent, report.state) == (1, 0, MirrorState.IN_SYNC)


def test_a_page_that_rests_is_asked_for_by_an_audit_of_what_is_served(
    resting: World[PlainSite],
) -> None:
    report = resting.audit(method="remote")

    assert [finding.uri for finding in report.findings] == [f"{BASE}3.html"]
    assert status(resting).state is MirrorState.BEHIND
    assert resting.pull().created == 1
    assert resting.audit(method="remote").in_sync


def test_a_page_that_is_absent_still_rests_on_after_an_audit(resting: World[PlainSite]) -> None:
    del resting.source.pages["3.html"]

    assert resting.audit(method="remote").absent == 1

    resting.pull()
    assert resting.asked_resources() == []


def _without_claims(request: FetchRequest, serve: Serve) -> Answer | Exception:
    """Take what lists say of a content out of them: hashes, lengths and dates."""
    answer = serve(request)
    if not isinstance(answer, Answer) or "/resourcesync/" not in request.uri:
        return answer
    claims = rb' (hash|length)="[^"]*"|<lastmod>[^<]*</lastmod>'
    return replace(answer, body=re.sub(claims, b"", answer.body))


def test_a_list_rewritten_with_each_change_contradicts_nothing(tmp_path: Path) -> None:
    """The list is of the very moment of the change, and neither says anything of a content."""
    world = World(tmp_path / "mirror", PublishedSource(), network=Network(_without_claims))
    world.source.policy = Policy(rebase_up_to=100)
    for name in ("a.txt", "b.txt"):
        world.source.put(name, "one")
    world.source.publish()
    world.pull()
    world.source.put("b.txt", "another")
    world.source.put("c.txt", "new")
    world.source.publish()

    assert (world.pull().state, world.in_sync()) == (MirrorState.IN_SYNC, True)
    for method in ("lists", "stat", "hash", "remote"):
        assert world.audit(method=method).findings == ()
        assert world.audit(method=method).in_sync
    assert repair(world).state is MirrorState.IN_SYNC
    assert status(world).state is MirrorState.IN_SYNC
    assert world.pull(mode="baseline").state is MirrorState.IN_SYNC
    assert world.in_sync()
