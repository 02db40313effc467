"""What an audit proved is in the state: every command judges a copy alike."""

from pathlib import Path

import pytest

from resourcesync.app.mirror_changes import read_resources
from resourcesync.app.mirror_trash import is_restored
from resourcesync.cli.commands.why import next_step
from resourcesync.destination.audits.explain import ResourceVerdict
from resourcesync.destination.pending_tasks import SHARED
from resourcesync.destination.planner import as_unknown
from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.errors import SourceRefusedError
from resourcesync.mirror_state.rows import StateTransaction
from resourcesync.model.settings import Limit
from tests.journeys.test_trash import restore
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.plain_site import FrozenSite, PlainSite
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

PAGES = {f"{number}.html": f"page {number}" for number in range(6)}
LARGE = "a" * 20_000


@pytest.fixture
def site(tmp_path: Path) -> World[PlainSite]:
    world = World(tmp_path / "mirror", PlainSite(PAGES, date="2024-01-01"))
    world.pull()
    world.clock.advance(hours=1)
    world.source.pages["3.html"] = b"edited"
    return world


@pytest.mark.parametrize("offline", [False, True])
def test_after_an_audit_found_a_page_changed_no_command_calls_the_mirror_in_sync(
    site: World[PlainSite], offline: bool
) -> None:
    assert not site.audit(method="remote").in_sync

    found = site.status()
    counts = (found.state, found.listed.pending, found.listed.unchanged)
    assert counts == (MirrorState.BEHIND, 1, found.resources - 1)
    assert [failure.uri for failure in found.failures] == [f"{BASE}3.html"]
    for method in ("lists", "stat", "hash"):
        report = site.audit(method=method, offline=offline)
        assert [finding.uri for finding in report.findings] == [f"{BASE}3.html"], method
    assert site.why("3.html", None, offline=offline).verdict is ResourceVerdict.STALE
    sound = site.why("2.html", None, offline=offline)
    assert sound.verdict.is_well
    step = next_step(sound, Path("m"))
    assert offline or (step and step[1].startswith("all bytes, as the Source served them"))


@pytest.mark.parametrize("is_redirected", [False, True], ids=["in place", "by redirects"])
@pytest.mark.parametrize(("changed", "held"), [(4, 0), (5, 5), (12, 12)])
def test_one_answer_for_many_pages_replaces_none_of_them_until_it_is_accepted(
    tmp_path: Path, changed: int, held: int, *, is_redirected: bool
) -> None:
    pages = {f"{number:02}.html": f"page {number}" for number in range(12)}
    world = World(tmp_path / "mirror", PlainSite(pages, date="2024-01-01"))
    world.pull()
    world.clock.advance(hours=1)
    for number, name in enumerate(sorted(pages)[:changed]):
        token = f", token {number}" * is_redirected
        world.source.pages[name] = body = f"Log in{token}".encode()
        world.source.dates[name] = "2024-02-01"
        if is_redirected:
            world.network.answers[BASE + name] = Answer(body=body, uri=f"{BASE}login?next={name}")

    for _ in range(2):
        report = world.pull()
        assert report.state is (MirrorState.BEHIND if held else MirrorState.IN_SYNC)
        assert report.reasons.get(SHARED, 0) == held
        assert (
            sum(text.startswith("page") for text in world.texts().values()) == 12 - changed + held
        )
    assert world.pull(mode="baseline").state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert world.pull().state is MirrorState.IN_SYNC


def test_a_copy_that_an_audit_was_served_is_known_by_request(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", FrozenSite(2))
    world.pull()
    world.source.dates = dict.fromkeys(world.source.dates, "2024-02-01")
    assert world.pull().evidence.unconfirmed == 2

    assert world.audit(method="remote").in_sync

    evidence = world.status().evidence
    assert (evidence.by_request, evidence.by_date, evidence.unconfirmed) == (2, 0, 0)


@pytest.mark.parametrize("task", ["pull", "repair"])
@pytest.mark.parametrize("fails", [False, True])
def test_what_an_audit_found_changed_is_fetched_without_a_condition_also_if_its_date_moved(
    tmp_path: Path, task: str, fails: bool
) -> None:
    world = World(tmp_path / "mirror", FrozenSite(2))
    world.pull()
    world.source.pages["0001.html"] = world.source.pages["0001.html"].upper()  # the same ETag
    world.source.dates = dict.fromkeys(world.source.dates, "2024-02-01")
    if fails:
        world.network.answers[BASE + "0001.html"] = Answer(status=500)
        world.pull()
        world.network.answers.clear()
    assert not world.audit(method="remote").in_sync
    assert world.status().state is MirrorState.BEHIND

    report = world.pull() if task == "pull" else world.repair()

    assert report.state is MirrorState.IN_SYNC
    assert world.audit(method="remote").in_sync


def test_a_page_that_is_as_before_again_is_well_for_all_after_the_next_audit(
    site: World[PlainSite],
) -> None:
    site.audit(method="remote")
    site.source.pages["3.html"] = b"page 3"

    assert site.audit(method="remote").in_sync
    assert (site.status().state, site.status().listed.pending) == (MirrorState.IN_SYNC, 0)
    assert site.why("3.html", None).verdict.is_well


def test_a_page_that_an_audit_found_gone_is_known_to_all(site: World[PlainSite]) -> None:
    del site.source.pages["3.html"]
    found = site.audit(method="remote")

    assert (found.absent, found.unknown, found.proven) == (1, 1, 5)
    assert (site.status().listed.absent, site.status().retained.unknown) == (1, 1)
    assert site.audit().absent == 1
    assert site.why("3.html", None).verdict is ResourceVerdict.ABSENT
    assert (site.pull().listed.absent, site.asked_resources()) == (1, ["3.html"])


def test_a_page_that_a_sitemap_no_longer_lists_goes_by_the_step_that_all_propose(
    site: World[PlainSite],
) -> None:
    del site.source.dates["2.html"]
    site.pull()

    step = next_step(site.why("2.html", None), Path("m"))
    assert step == ("To remove", "resourcesync repair m --delete")
    assert (site.audit().unlisted, site.audit().unproving) == (1, False)
    assert site.repair(source=None, deleting=True).deleted == 1


@pytest.mark.parametrize("restored", [True, False])
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_kept_file_that_was_changed_or_removed_here_is_told_by_all_and_ended_by_one_command(
    world: World[PublishedSource], restored: bool, is_gone: bool
) -> None:
    name, kept, delete = "objects/0003.html", world.folder / "objects/0003.html", "never"
    world.pull()
    body = kept.read_bytes()
    world.source.remove(name)
    world.source.publish()
    if restored:
        delete = "auto"
        world.pull()
        restore(world)
    assert world.pull(delete=delete).state is MirrorState.IN_SYNC
    assert world.status().evidence.by_date == 0
    assert world.why(name).verdict.is_well
    assert next_step(world.why(name), Path("m")) == ("To remove", "resourcesync repair m --delete")

    def harm() -> None:
        kept.unlink() if is_gone else kept.write_text("edited")

    for judge in (world.audit, lambda: world.why(name)):
        harm()
        judge()
        reports = [world.pull(mode=mode, delete=delete) for mode in ("auto", "baseline")]
        results = [(each.state, each.retained) for each in (*reports, world.repair())]
        for state, retained in (*results, (world.status().state, world.status().retained)):
            assert state is MirrorState.BEHIND
            assert (retained.damaged, retained.restored, retained.unlisted) == (1, 0, 0)
        for method in ("hash", "stat", "lists"):
            found = world.audit(method=method)
            assert (found.in_sync, found.damaged, found.unlisted) == (False, 1, 0), method
        assert next_step(world.why(name), Path("m")) == ("Next", "resourcesync repair m --delete")
        assert not is_restored(world.folder, lambda row: row.uri.endswith(name))

        kept.write_bytes(body)
        assert (world.audit().in_sync, world.audit().unlisted) == (True, 1)
        assert world.pull(delete=delete).state is MirrorState.IN_SYNC
        assert is_restored(world.folder, lambda row: row.uri.endswith(name)) is restored

    harm()
    assert world.repair(deleting=True).state is MirrorState.IN_SYNC
    assert not kept.exists()
    assert (world.audit().in_sync, world.pull().state) == (True, MirrorState.IN_SYNC)


def test_a_kept_file_that_a_killed_pull_may_have_replaced_is_in_sync_for_no_command(
    world: World[PublishedSource],
) -> None:
    world.pull()
    with world.state() as state:
        copy = state.copy(f"{BASE}objects/0003.html")
        assert copy is not None
        state.commit(StateTransaction(suspect=[as_unknown(copy)]))
    world.source.remove("objects/0003.html")
    world.source.publish()

    for report in (world.pull(delete="never"), world.pull(), world.repair(), world.status()):
        assert report.state is MirrorState.BEHIND
        assert (report.retained.damaged, report.retained.unlisted) == (1, 0)
    for method in ("lists", "stat", "hash"):
        found = world.audit(method=method)
        assert (found.in_sync, found.damaged, found.unlisted) == (False, 1, 0), method


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_file_that_a_full_pull_found_altered_and_could_not_fetch_stays_known_as_altered(
    world: World[PublishedSource], is_gone: bool
) -> None:
    world.pull()
    kept, bad = (world.folder / f"objects/000{number}.html" for number in (3, 4))
    world.source.remove("objects/0003.html")
    world.source.publish()
    world.pull(delete="never")
    for file in (kept, bad):
        file.unlink() if is_gone else file.write_text("edited")
    world.network.answers[f"{BASE}objects/0004.html"] = Answer(status=500)

    for mode in ("baseline", "auto", "auto"):
        report = world.pull(mode=mode, delete="never")
        assert (report.state, report.failed) == (MirrorState.BEHIND, 2)
        assert world.status().retained.damaged == 1
        with world.state() as state:  # only an audit lets a deletion move it
            found = {state.copy(f"{BASE}objects/000{n}.html").signature for n in (3, 4)}  # type: ignore[union-attr]
        assert found == {"missing" if is_gone else "edited"}
    world.network.answers.clear()
    report = world.pull()
    assert (report.created, report.updated, report.failed) == (is_gone, not is_gone, 1)
    assert bad.read_text() == "content of 4"


def test_a_deletion_that_was_tried_is_held_for_no_command(world: World[PublishedSource]) -> None:
    world.pull()
    world.source.remove("objects/0003.html")
    world.source.publish()
    tried = world.folder / "objects/0003.html"
    body = tried.read_bytes()
    tried.write_text("edited")
    assert world.pull().retained.edited == 1
    for number in range(10, 30):
        world.source.remove(f"objects/{number:04}.html")
    world.source.publish()
    tried.write_bytes(body)

    assert (world.pull(max_delete=Limit(number=5)).held, world.status().held) == (20, 20)
    assert world.audit().held == 20
    assert world.why("objects/0003.html").verdict is ResourceVerdict.UNDELETED
    assert world.why("objects/0011.html").verdict is ResourceVerdict.HELD


def test_a_copy_that_an_audit_found_altered_or_missing_counts_as_proven_nowhere(
    world: World[PublishedSource],
) -> None:
    world.pull()
    number = world.status().evidence.by_hash
    (world.folder / "objects/0003.html").unlink()
    (world.folder / "objects/0004.html").write_text("edited")
    world.audit()

    shown = {each.path.name: each.fixity for each in read_resources(world.folder)}
    assert (shown.pop("0003.html"), shown.pop("0004.html")) == ("missing", "altered")
    assert set(shown.values()) == {"verified"}
    assert world.status().evidence.by_hash == number - 2
    planned = world.pull(dry_run=True)
    assert (planned.created, planned.updated) == (0, 0)
    plan = world.told("plan")[-1]
    assert (plan["create"], plan["update"]) == (1, 1), "as a repair says"
    report = world.pull()
    assert (report.created, report.updated, report.evidence.by_hash) == (1, 1, number)


@pytest.mark.parametrize("mode", ["auto", "baseline"])
def test_a_changed_file_that_a_deletion_left_is_known_as_changed_until_it_is_fetched_again(
    mode: str, world: World[PublishedSource]
) -> None:
    kept = world.folder / "objects/0003.html"
    world.pull()
    world.source.remove("objects/0003.html")
    world.source.publish()
    kept.write_text("mine")
    assert [world.pull(mode=mode).retained.edited for mode in ("auto", "baseline")] == [1, 1]

    report = world.pull(delete="never", mode=mode)
    assert (report.state, report.retained.damaged) == (MirrorState.BEHIND, 1)
    kept.write_text("content of 3")
    for dry_run in (True, False):
        report = world.pull(mode=mode, dry_run=dry_run)
        assert (report.state, report.retained.unlisted) == (MirrorState.IN_SYNC, 1)
    assert world.status().state is MirrorState.IN_SYNC
    kept.write_text("mine")
    assert world.pull(delete="auto", mode=mode, dry_run=True).retained.edited == 1
    assert world.pull(delete="auto", mode=mode).retained.edited == 1
    assert kept.read_text() == "mine"
    world.source.put("objects/0003.html", "content of 3")
    world.source.publish()
    assert world.pull().updated == 1


def test_a_restored_file_that_cannot_be_deleted_as_asked_is_not_kept_by_the_next_pull(
    world: World[PublishedSource],
) -> None:
    kept = world.folder / "objects/0003.html"
    world.pull()
    world.source.remove("objects/0003.html")
    world.source.publish()
    world.pull()
    restore(world)
    findings = world.audit().findings
    kept.write_text("edited")
    assert world.repair(findings, deleting=True).retained.edited == 1

    for mode in ("auto", "baseline"):
        assert world.pull(mode=mode).state is MirrorState.BEHIND
        assert (world.status().state, world.status().retained.edited) == (MirrorState.BEHIND, 1)
    kept.unlink()

    assert world.pull().deleted == 1
    assert world.status().state is MirrorState.IN_SYNC
    assert world.audit().in_sync


@pytest.fixture
def source(tmp_path: Path) -> World[PublishedSource]:
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

    assert source.status().state is MirrorState.BEHIND
    for method in ("lists", "stat", "hash"):
        assert not source.audit(method=method).in_sync, method
    for report in (source.pull(), source.pull(mode="baseline"), source.repair(source=None)):
        assert report.state is MirrorState.BEHIND
    assert source.in_sync(), "the copy that is as listed stays"
    assert source.why("a.txt", None).verdict is ResourceVerdict.DISAGREES

    source.network.answers.clear()
    assert source.pull().state is MirrorState.IN_SYNC
    assert source.why("a.txt", None).verdict is ResourceVerdict.AS_LISTED
    assert source.audit(method="remote").in_sync


def test_a_version_that_an_audit_found_listed_is_known_to_the_status(
    source: World[PublishedSource],
) -> None:
    source.network.answers[BASE + "a.txt"] = Answer(status=404)
    source.source.publish_file("a.txt", "newer")
    assert source.status().state is MirrorState.IN_SYNC

    for method in ("hash", "remote"):
        found = source.audit(method=method)
        assert (found.checked, found.accurate, found.unserved, found.doubted) == (2, 1, 0, 0)

    assert source.status().state is MirrorState.BEHIND
    source.network.answers.clear()
    source.pull()
    assert source.status().state is MirrorState.IN_SYNC


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


def test_a_page_that_rests_is_asked_for_by_an_audit_of_what_is_served(
    resting: World[PlainSite],
) -> None:
    report = resting.audit(method="remote")

    assert [finding.uri for finding in report.findings] == [f"{BASE}3.html"]
    assert resting.status().state is MirrorState.BEHIND
    assert resting.pull().created == 1
    assert resting.audit(method="remote").in_sync


def site_of(folder: Path, *, listed: int, served: int, code: str = "") -> World[PlainSite]:
    """Return a site that lists pages below ``en/``, and serves the first of them."""
    site = PlainSite({f"en/{number:02}.html": f"page {number}" for number in range(listed)})
    world = World(folder / "mirror", site)
    keep_out(world, served, code)
    return world


def keep_out(world: World[PlainSite], served: int, code: str) -> None:
    """Serve the first pages only: the others are not there, or kept from us by this code."""
    for name in sorted(world.source.dates)[served:]:
        if code:
            refused = SourceRefusedError("kept out", uri=BASE + name, code=code)
            world.network.answers[BASE + name] = refused
        else:
            world.source.pages.pop(name, None)


CODES = ("", "robots", "redirect")


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("accept", [None, True])
@pytest.mark.parametrize("listed", [1, 3, 12])
def test_a_site_of_which_no_page_is_there_is_in_sync_for_no_command(
    tmp_path: Path, listed: int, accept: bool | None, code: str
) -> None:
    world = site_of(tmp_path, listed=listed, served=0, code=code)

    for _ in range(2):
        report = world.pull(accept_missing=accept)

        assert (report.state, lacking(report)) == (MirrorState.BEHIND, listed)
        assert report.faults.absent_below == f"{BASE}en/"
        assert (world.status().state, world.status().share) == (MirrorState.BEHIND, None)
        for method in ("lists", "hash", "remote"):
            assert not world.audit(method=method).in_sync
        assert world.repair().state is MirrorState.BEHIND


def lacking(report: RunReport) -> int:
    return report.listed.absent + report.listed.skipped


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(
    ("listed", "served", "state"),
    [
        (12, 5, MirrorState.BEHIND),
        (12, 6, MirrorState.IN_SYNC),
        (4, 1, MirrorState.BEHIND),
        (3, 1, MirrorState.IN_SYNC),
    ],
)
def test_a_first_pull_that_finds_most_pages_absent_is_not_in_sync(
    tmp_path: Path, listed: int, served: int, state: MirrorState, code: str
) -> None:
    world = site_of(tmp_path, listed=listed, served=served, code=code)

    for _ in range(2):  # it stays so until somebody accepts it
        report = world.pull()
        assert (report.state, lacking(report)) == (state, listed - served)
        assert world.status().state is state
        assert world.audit().in_sync is (state is MirrorState.IN_SYNC)
        assert world.why(max(world.source.dates)).verdict.is_well is world.audit().in_sync

    assert world.pull(accept_missing=True).state is MirrorState.IN_SYNC
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.audit().in_sync


@pytest.mark.parametrize("code", CODES)
def test_pages_that_go_later_are_accepted_until_none_is_left(tmp_path: Path, code: str) -> None:
    world = site_of(tmp_path, listed=12, served=12)
    world.pull()
    keep_out(world, 2, code)
    world.source.dates = dict.fromkeys(world.source.dates, "2024-02-01")

    assert world.pull().state is MirrorState.IN_SYNC
    found = world.status()
    assert (found.resources, found.listed.right, found.wanted) == (12, 2, 12)
    assert found.share_text == "16.7 %"

    keep_out(world, 0, code)
    world.source.dates = dict.fromkeys(world.source.dates, "2024-03-01")
    assert world.pull().state is MirrorState.BEHIND
    assert world.status().share == 0.0
