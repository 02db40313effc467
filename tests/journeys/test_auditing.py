"""An audit names what is not as listed, and changes nothing."""

import fcntl
import os
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from resourcesync.cli.main import run
from resourcesync.cli.render.audit import conclude
from resourcesync.destination.audits.reports import AuditReport
from resourcesync.destination.audits.sampling import AuditRolling
from resourcesync.destination.reports import MirrorState
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.errors import RollbackError, SourceUnavailableError
from resourcesync.model.settings import Limit
from resourcesync.source.link_rules import LinkedOriginals, parse_rule
from resourcesync.source.scan_for_changes import scan
from resourcesync.source.stored_plan import PublicationStep
from tests.support.commands.command_line import Said, rows
from tests.support.servers.tiny_source import Answer as TinyAnswer
from tests.support.servers.tiny_source import TinySource
from tests.support.worlds.dated_server import DatedServer
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.site_maps import urlset
from tests.support.worlds.timed_source import TimedSource, entry
from tests.support.worlds.world import World


@pytest.mark.founding("D-Lib §1", "An audit checks copies for completeness and accuracy", "`audit`")
def test_an_audit_names_what_is_missing_damaged_extra_and_newer_at_the_source(
    world: World[PublishedSource],
) -> None:
    world.pull()
    damaged = world.folder / "objects/0002.html"
    stat = damaged.stat()
    damaged.write_text("Content of 2")
    os.utime(damaged, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    (world.folder / "objects/0001.html").unlink()
    (world.folder / "notes.txt").write_text("mine")
    world.source.put("objects/0005.html", "newer")
    world.source.remove("objects/0006.html")
    world.source.publish()

    report = world.audit()
    found = {(finding.kind.value, finding.path) for finding in report.findings}

    assert not report.in_sync
    assert found == {
        ("+", "objects/0001.html"),
        ("*", "objects/0002.html"),
        ("*", "objects/0005.html"),
        ("-", "objects/0006.html"),
        ("-", "notes.txt"),
    }
    assert (report.listed, report.present, report.accurate) == (40, 39, 37)
    assert (report.extra, report.foreign) == (1, 1)


@pytest.mark.skipif(not hasattr(fcntl, "F_SETLEASE"), reason="needs the leases of Linux")
@pytest.mark.parametrize("rolling", [None, AuditRolling()])
def test_a_copy_that_cannot_be_read_is_reported_and_the_others_are_read(
    world: World[PublishedSource], rolling: AuditRolling | None
) -> None:
    world.pull()
    size = sum(map(len, world.source.originals.contents().values()))
    unreadable = world.folder / "objects/0002.html"
    ignored = signal.signal(signal.SIGIO, signal.SIG_IGN)
    try:
        with unreadable.open("r+b") as stream:  # who has a lease keeps others from opening a file
            fcntl.fcntl(stream, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            report = world.audit(rolling=rolling)
            assert world.status().state is MirrorState.BEHIND
            mended = world.pull() if rolling else world.repair()
            assert mended.state is MirrorState.IN_SYNC
    finally:
        signal.signal(signal.SIGIO, ignored)

    assert not report.in_sync
    assert [(each.kind.value, each.path) for each in report.findings] == [
        ("!", "objects/0002.html")
    ]
    assert "reading objects/0002.html" in report.findings[0].reason
    assert (report.listed, report.present, report.accurate) == (41, 41, 40)
    assert (report.unchecked, report.accuracy) == (1, 1.0)
    assert report.read_bytes == size - unreadable.stat().st_size
    assert report.doubted == 1
    assert world.audit().in_sync


def test_whatever_is_in_the_place_of_a_file_counts_as_missing(
    world: World[PublishedSource], tmp_path_factory: pytest.TempPathFactory
) -> None:
    world.pull()
    paths = [world.folder / f"objects/000{number}.html" for number in range(1, 6)]
    outside = tmp_path_factory.mktemp("outside")
    for path in paths:
        path.rename(outside / path.name)
    paths[0].symlink_to(outside / paths[0].name)
    os.link(outside / paths[1].name, paths[1])
    paths[2].mkdir()
    os.mkfifo(paths[3])
    with socket.socket(socket.AF_UNIX) as bound:
        folder = os.open(paths[4].parent, os.O_RDONLY | os.O_DIRECTORY)
        bound.bind(f"/proc/self/fd/{folder}/{paths[4].name}")  # their paths are short
        os.close(folder)

    report = world.audit()

    missing = {each.path for each in report.findings if each.kind.value == "+"}
    assert missing == {f"objects/000{number}.html" for number in (1, 3, 4, 5)}
    assert (report.listed, report.present, report.accurate) == (41, 37, 37)


def test_a_folder_that_became_a_link_is_not_followed(
    world: World[PublishedSource], tmp_path_factory: pytest.TempPathFactory
) -> None:
    world.pull()
    outside = tmp_path_factory.mktemp("outside") / "objects"
    (world.folder / "objects").rename(outside)
    (world.folder / "objects").symlink_to(outside)

    report = world.audit()

    assert report.read_bytes < sum(path.stat().st_size for path in outside.iterdir())
    assert report.present < report.listed


def test_a_rolling_audit_within_no_time_stops_and_says_so(world: World[PublishedSource]) -> None:
    world.pull()

    report = world.audit(rolling=AuditRolling(oldest_first=True, seconds=0.0))

    assert report.stopped
    assert report.listed == 41


def test_a_sample_is_another_one_each_time_and_about_as_large_as_asked(
    world: World[PublishedSource],
) -> None:
    world.pull()

    counts = [world.audit(rolling=AuditRolling(share=0.5)).proven or 0 for _ in range(20)]

    assert 0.3 < sum(counts) / (20 * 41) < 0.7
    assert len(set(counts)) > 1


@pytest.mark.parametrize("left", [0, 1])
def test_an_audit_refuses_a_change_list_that_lost_its_changes(
    world: World[PublishedSource], left: int
) -> None:
    world.pull()
    for number in range(3):
        world.source.publish_file(f"objects/{number:04}.html", f"new {number}")
    world.pull()
    uri = BASE + "resourcesync/changelist.xml"
    entries = re.compile(rb"<url>.*?</url>", re.DOTALL)
    whole = world.source.honest(uri).body
    kept = b"".join(entries.findall(whole)[:left])
    first = whole.index(b"<url>")
    world.network.answers[uri] = Answer(body=whole[:first] + kept + entries.sub(b"", whole[first:]))

    for look in (world.pull, world.audit):
        with pytest.raises(SourceUnavailableError) as caught:
            look()
        assert caught.value.code == "stale-copy"

    del world.network.answers[uri]
    assert not world.audit().findings


RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


@pytest.mark.parametrize("offline", [False, True])
def test_a_copy_that_is_not_listed_or_not_wanted_any_more_is_not_counted_as_listed(
    world: World[PublishedSource], offline: bool
) -> None:
    world.pull()
    world.source.publish_deletion("objects/0002.html")
    world.pull(filters=Filters(exclude=("0001.html",)), mode="baseline", delete="never")

    report = world.audit(offline=offline)

    assert (report.listed, report.present, report.accurate) == (39, 39, 39)
    assert (report.in_sync, report.unlisted, len(report.findings)) == (True, 1, 1)


@pytest.mark.parametrize("method", ["lists", "hash"])
def test_a_list_that_is_older_than_the_one_of_the_last_pull_is_nothing_to_compare_with(
    method: Any, world: World[PublishedSource]
) -> None:
    old = world.source.honest(RESOURCE_LIST)
    world.source.put("new.html", "new")
    world.source.publish(PublicationStep.REBASE)
    world.pull()
    assert world.audit(method=method).in_sync
    world.network.answers[RESOURCE_LIST] = old

    with pytest.raises(RollbackError, match="older than the one already processed"):
        world.audit(method=method)

    assert world.audit(method=method, offline=True).in_sync


ORIGIN = "https://origin.example/"


class Aggregator(PublishedSource):
    """A Source whose resources are copies, with links to their originals."""

    def scan(self, *, after: float = 60) -> None:
        self.clock.advance(seconds=after)
        rule = parse_rule(f"via:{ORIGIN}{{path}} only=*.txt")
        linked = LinkedOriginals(self.originals, [rule], BASE)
        scan(linked, self.catalogue, self.clock.now())


@pytest.mark.founding(
    "0.9 §8.7",
    "Copies of an aggregator are verified with the original Source",
    "`audit --method origin`",
)
def test_a_copy_that_is_not_as_its_original_is_found_and_the_mirror_stays_as_listed(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, Aggregator())
    for name in ("same.txt", "older.txt", "gone.txt", "own.html"):
        world.source.put(name, f"content of {name}")
    world.source.publish()
    assert world.pull().state is MirrorState.IN_SYNC
    world.network.answers |= {
        f"{ORIGIN}same.txt": Answer(body=b"content of same.txt"),
        f"{ORIGIN}older.txt": Answer(body=b"another edition"),
        f"{ORIGIN}gone.txt": Answer(status=404),
    }

    report = world.audit(method="origin")

    assert {found.uri.removeprefix(BASE): found.reason for found in report.findings} == {
        "older.txt": f"the original {ORIGIN}older.txt has other bytes",
        "gone.txt": f"the original {ORIGIN}gone.txt: 404",
    }
    assert (report.in_sync, report.accurate) == (False, 2)
    *_, step = conclude(report, tmp_path).closing
    assert "ask the Source to copy these originals again" in step.text
    assert world.status().state is MirrorState.IN_SYNC
    (warning,) = world.told("warning")
    assert (warning["code"], str(warning["message"])[:6]) == ("no-original", "1 of 4")
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.asked_resources() == []
    assert world.audit().in_sync


PAGES = ("a", "b", "c")


@pytest.fixture
def dated(tmp_path: Path) -> World[DatedServer]:
    world = World(tmp_path / "mirror", DatedServer())
    for name in PAGES:
        world.source.edit(name, "1")
    world.clock.advance(hours=1)
    world.source.sitemap = dict.fromkeys(PAGES, "2025-01-01")
    world.pull()
    return world


def test_a_damaged_copy_bounds_what_is_accurate(dated: World[DatedServer]) -> None:
    place = next(path for path in dated.folder.iterdir() if path.is_file())
    place.write_bytes(b"damaged")
    report = dated.audit()
    assert report.accuracy == pytest.approx(2 / 3)
    assert report.unproven == 2
    for path in filter(Path.is_file, dated.folder.iterdir()):
        path.unlink()
    assert dated.audit().accuracy is None


@pytest.mark.founding("0.9 §2.2.2", "Without hashes, an audit tells coverage only", "`audit`")
def test_an_audit_of_a_plain_sitemap_says_that_its_accuracy_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    with TinySource() as source:
        uris = [f"{source.url}/{name}.html" for name in PAGES]
        for name in PAGES:
            source.put(f"/{name}.html", b"page", "text/html")
        source.put("/sitemap.xml", urlset(*((uri, "2025-01-01") for uri in uris)), "text/xml")
        assert run(["pull", source.url, "m"]) == 0
        source.put("/b.html", b"edited", "text/html")
        capsys.readouterr()
        assert run(["audit", "m"]) == 0
        said = capsys.readouterr().out
        assert run(["audit", "m", "--json"]) == 0
        end = rows(capsys)[-1]
        assert run(["audit", "m", "--method", "remote"]) == 1
    unknown = "accuracy not known: the Source lists no hash; check them at the server: --method"
    assert re.search(rf"In sync   coverage 100 % \(3 of 3\), {unknown} remote  ", said)
    assert (end["accuracy"], end["unproven"], end["in_sync"]) == (None, 3, True)
    assert "accuracy 66.7 % (2 of 3)" in capsys.readouterr().out


def test_an_audit_names_the_answers_with_which_it_could_not_check_and_how_to_accept_a_404(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    remote, accept = ["audit", "m", "--method", "remote"], "resourcesync pull m --accept-missing"
    with TinySource() as source:
        source.offer({f"/{name}.html": b"page" for name in PAGES})
        assert run(["pull", source.url, "m"]) == 0
        offered = dict(source.answers)
        for name in PAGES:
            source.answers[f"/{name}.html"] = TinyAnswer(status=304)
        capsys.readouterr()
        assert run(remote) == 1
        said = capsys.readouterr().out
        source.answers.update(offered)
        del source.answers[f"/{PAGES[0]}.html"]
        assert run(remote) == 1
        missing = capsys.readouterr().out
        assert [run(accept.split()[1:]), run(remote)] == [0, 0]
    assert said.count("(304 Not Modified)") == 3
    assert "accuracy not known: nothing could be checked" in said
    assert "3 could not be checked" in said
    assert "repair" not in said
    assert "1 listed but not at the Source (404, 410)\n" in missing
    assert f"ask the Source to correct its list, or accept that: {accept}\n" in missing


def test_a_list_with_some_hashes_says_of_how_many_it_has_none() -> None:
    report = AuditReport(audit="1", at=None, listed=3, present=3, accurate=3, unproven=1)
    said = "accuracy not known: 1 of 3 not verifiable (the Source lists no hash);"
    assert said in conclude(report, Path("m")).closing[0].text


NAMES = [f"{number}.txt" for number in range(6)]
BESIDE = NAMES[4:]


def damaged_beside(folder: Path, beside: str) -> tuple[World[PublishedSource], dict[str, Any]]:
    """Return a mirror with two damaged copies beside the list, and the options of its pulls."""
    world = World(folder / "mirror", PublishedSource(max_entries=3))
    for name in NAMES:
        world.source.put(name, name)
    world.source.publish()
    world.pull()
    if beside == "not read":
        world.source.put("3.txt", "changed")
        world.source.publish(PublicationStep.REBASE)
        body = world.source.honest(RESOURCE_LIST).body.decode()
        world.network.answers[body.split("<loc>")[2].split("<")[0]] = Answer(status=404)
    elif beside == "held":
        for name in BESIDE:
            world.source.publish_deletion(name)
    filters = Filters(exclude=tuple(BESIDE) if beside == "excluded" else ())
    options: dict[str, Any] = {"max_delete": Limit(number=0), "filters": filters}
    world.pull(mode="baseline", **options)
    (world.folder / "4.txt").write_text("edited")
    (world.folder / "5.txt").unlink()
    return world, options


@pytest.mark.parametrize("judge", ["audit", "audit offline", "why", "why offline"])
@pytest.mark.parametrize("beside", ["excluded", "held", "not read"])
def test_a_damaged_copy_beside_the_list_is_damaged_for_every_command_until_it_is_fetched_again(
    tmp_path: Path, beside: str, judge: str
) -> None:
    world, options = damaged_beside(tmp_path, beside)

    command, _, offline = judge.partition(" ")
    if command == "audit":
        assert world.audit(offline=bool(offline)).damaged == 2
    else:
        assert not any(world.why(n, offline=bool(offline)).verdict.is_well for n in BESIDE)
    dry = world.pull(dry_run=True, **options), world.repair(dry_run=True)
    for report in (world.status(), *dry, world.pull(**options), world.repair(), world.status()):
        assert report.state is not MirrorState.IN_SYNC
        assert (report.retained.damaged, report.retained.filtered) == (2, 0)
    assert not {*BESIDE} & {*world.asked_resources()}
    assert world.texts()["4.txt"] == "edited"
    for method in ("hash", "stat", "lists"):
        found = world.audit(method=method), world.audit(method=method, offline=True)
        assert [(each.damaged, each.in_sync) for each in found] == [(2, False)] * 2, method
    if beside == "excluded":
        for name in BESIDE:
            (world.folder / name).write_text(name)
        foreseen = world.pull(dry_run=True, **options)
        assert {foreseen.state, world.pull(**options).state} == {MirrorState.IN_SYNC}
    world.network.answers.clear()
    for name in NAMES[3:]:
        world.source.put(name, name)
    world.source.publish()
    assert world.pull(filters=Filters()).state is MirrorState.IN_SYNC
    assert world.texts() == dict(zip(NAMES, NAMES, strict=True))


def test_bytes_that_are_put_back_end_a_damage_also_where_no_list_is_new(tmp_path: Path) -> None:
    source = TimedSource("resourcelist")
    source.has(x="one")
    source.resource_list("2026-02-20T00:00:00Z", entry("x", "one", "2026-02-01T00:00:00Z"))
    world = World(tmp_path / "mirror", source)
    world.pull()
    world.pull(filters=(none := Filters(exclude=("x",))))
    (world.folder / "x").write_text("two")
    assert world.audit().damaged == 1
    assert world.pull(filters=none).state is MirrorState.BEHIND

    (world.folder / "x").write_text("one")

    assert world.pull(filters=none).state is MirrorState.IN_SYNC
