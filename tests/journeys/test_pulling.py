"""A mirror's life: our real publisher in memory, our real Destination on a disk."""

from pathlib import Path

import pytest

from resourcesync.destination.options import Filters
from resourcesync.destination.plan import DeletionLimit
from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.errors import (
    ConfigurationError,
    DiscontinuityError,
    DocumentError,
    LockedError,
    NotAListError,
    RollbackError,
    SourceNotFoundError,
    SourceUnavailableError,
    TruncatedDocumentError,
)
from resourcesync.model.digests import Digest
from resourcesync.ports import Request
from tests.support.memory_fetcher import Answer
from tests.support.world import BASE, World

CHANGE_LIST = BASE + "resourcesync/changelist.xml"
RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "mirror")
    for number in range(40):
        world.put(f"objects/{number:04}.html", f"content of {number}")
    world.put("index.html", "home")
    world.publish()
    return world


def test_a_first_pull_fetches_everything_and_a_second_one_nothing(world: World) -> None:
    first = world.pull()
    second = world.pull()

    assert (first.state, first.mode) == (MirrorState.IN_SYNC, Mode.BASELINE)
    assert (first.created, first.verified, first.failed) == (41, 41, 0)
    assert world.in_sync()
    assert (second.state, second.mode) == (MirrorState.IN_SYNC, Mode.UNCHANGED)
    assert (second.same, second.created, second.updated) == (41, 0, 0)
    assert world.fetcher.asked == [CHANGE_LIST]


def test_ordinary_uris_get_ordinary_paths(world: World) -> None:
    world.pull()

    assert (world.folder / "objects/0002.html").read_text() == "content of 2"


def test_what_changed_is_fetched_and_nothing_else(world: World) -> None:
    world.pull()
    world.put("objects/0001.html", "new content")
    world.put("objects/new.html", "brand new")
    world.remove("objects/0002.html")
    world.publish()

    report = world.pull(None)

    assert report.mode is Mode.INCREMENTAL
    assert (report.created, report.updated, report.deleted) == (1, 1, 1)
    assert world.asked_resources() == ["objects/0001.html", "objects/new.html"]
    assert world.in_sync()


def test_only_the_last_of_many_changes_is_acted_on(world: World) -> None:
    world.pull()
    for content in ("one", "two"):
        world.put("objects/0001.html", content)
        world.put("objects/tmp.html", content)
        world.publish()
    world.remove("objects/tmp.html")
    world.remove("objects/0003.html")
    world.publish()
    world.put("objects/0003.html", "content of 3")
    world.publish()

    report = world.pull(None)

    assert world.asked_resources() == ["objects/0001.html"]
    assert (report.updated, report.created, report.deleted) == (1, 0, 0)
    assert world.in_sync()


def test_a_late_mirror_takes_the_changes_since_the_resource_list_into_its_baseline(
    world: World,
) -> None:
    world.put("objects/0001.html", "newer than the Resource List")
    world.remove("objects/0002.html")
    world.publish()

    report = world.pull()

    assert report.mode is Mode.BASELINE
    assert world.in_sync()
    assert "objects/0002.html" not in world.asked_resources()
    assert world.pull().mode is Mode.UNCHANGED


def test_a_source_in_several_parts_is_read_whole(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror", max_entries=7)
    for number in range(30):
        world.put(f"{number}.html", f"{number}")
    world.publish()
    world.pull()
    for number in range(20):
        world.put(f"{number}.html", f"changed {number}")
        world.publish()

    report = world.pull()

    assert report.mode is Mode.INCREMENTAL
    assert report.updated == 20
    assert world.in_sync()
    world.put("0.html", "again")
    world.publish()
    assert world.pull().updated == 1
    assert world.in_sync()
    assert world.pull().mode is Mode.UNCHANGED


# --- any address works ---


@pytest.mark.parametrize(
    "address",
    [
        BASE,
        BASE.rstrip("/"),
        BASE + ".well-known/resourcesync",
        BASE + "resourcesync/capabilitylist.xml",
        RESOURCE_LIST,
        CHANGE_LIST,
    ],
)
def test_any_address_of_the_source_leads_to_its_lists(world: World, address: str) -> None:
    assert world.pull(address).state is MirrorState.IN_SYNC
    world.put("x.html", "x")
    world.publish()
    assert world.pull(None).mode is Mode.INCREMENTAL
    assert world.in_sync()


def test_a_page_that_links_to_its_capability_list_leads_to_the_lists(world: World) -> None:
    link = f'<other>; rel="x,y", <{BASE}resourcesync/capabilitylist.xml>; rel="resourcesync"'
    world.answers[BASE + ".well-known/resourcesync"] = Answer(status=404)
    world.answers[BASE + "page"] = Answer(body=b"<html></html>", headers={"link": link})

    assert world.pull(BASE + "page").state is MirrorState.IN_SYNC


def sitemap(*entries: str) -> Answer:
    urls = "".join(f"<url><loc>{BASE}{entry}</url>" for entry in entries)
    return Answer(
        body=f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'.encode()
    )


@pytest.fixture
def plain(tmp_path: Path) -> World:
    world = World(tmp_path / "mirror")
    for name in ("a", "b"):
        world.put(f"{name}.html", f"page {name}")
    return world


def test_a_plain_sitemap_is_mirrored_and_asked_about_with_conditions(plain: World) -> None:
    plain.answers[BASE + "sitemap.xml"] = sitemap("a.html</loc>", "b.html</loc>")

    first = plain.pull()
    again = plain.pull()
    plain.put("b.html", "changed")
    third = plain.pull()

    assert (first.created, first.unverified, first.state) == (2, 2, MirrorState.IN_SYNC)
    assert (again.created, again.updated) == (0, 0)
    assert plain.asked_resources() == ["a.html", "b.html"]
    assert (third.updated, third.same) == (1, 1)
    assert plain.in_sync()


def test_a_page_that_a_plain_sitemap_lists_no_more_is_kept_unless_told_otherwise(
    plain: World,
) -> None:
    plain.answers[BASE + "sitemap.xml"] = sitemap("a.html</loc>", "b.html</loc>")
    plain.pull()
    plain.answers[BASE + "sitemap.xml"] = sitemap("a.html</loc>")

    kept = plain.pull()
    gone = plain.pull(delete="absent")

    assert (kept.deleted, kept.unlisted, kept.state) == (0, 1, MirrorState.IN_SYNC)
    assert gone.deleted == 1
    assert list(plain.files()) == [BASE + "a.html"]


def test_lastmod_alone_tells_what_changed_in_a_plain_sitemap(plain: World) -> None:
    def with_lastmod(moment: str) -> Answer:
        return sitemap(*(f"{n}.html</loc><lastmod>{moment}</lastmod>" for n in "ab"))

    plain.answers[BASE + "sitemap.xml"] = with_lastmod("2026-01-01")
    plain.pull()
    same = plain.pull()
    assert plain.asked_resources() == []
    assert same.mode is Mode.UNCHANGED
    plain.answers[BASE + "sitemap.xml"] = with_lastmod("2026-01-02")
    plain.pull()
    assert plain.asked_resources() == ["a.html", "b.html"]


def test_nothing_at_all_is_told_with_everything_that_was_tried(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")

    with pytest.raises(SourceNotFoundError) as caught:
        world.pull()

    tried = [text for label, text in caught.value.evidence if label == "tried"]
    assert any("/.well-known/resourcesync" in text and "404" in text for text in tried)
    assert any("/sitemap.xml" in text for text in tried)


# --- bad days ---


def test_a_page_of_html_is_not_a_list_and_changes_nothing(world: World) -> None:
    world.pull()
    page = Answer(body=b"<!DOCTYPE html><html><title>Page not found</title></html>")
    world.answers[CHANGE_LIST] = page
    world.put("objects/0001.html", "new")
    world.publish()
    world.answers[BASE + "resourcesync/capabilitylist.xml"] = page

    with pytest.raises((NotAListError, SourceNotFoundError)):
        world.pull()

    assert len(world.files()) == 41


def test_a_list_that_is_cut_short_changes_nothing(world: World) -> None:
    whole = world.honest(RESOURCE_LIST).body
    for cut in (len(whole.rstrip()) - 1, len(whole) // 2, 200, 1):
        world.answers[RESOURCE_LIST] = Answer(body=whole[:cut])
        with pytest.raises(DocumentError) as caught:
            world.pull()
        assert isinstance(caught.value, TruncatedDocumentError) or cut == 1
        assert world.files() == {}
    world.answers.clear()

    assert world.pull().state is MirrorState.IN_SYNC


def test_a_resource_that_is_missing_stops_nothing_else_and_is_not_called_in_sync(
    world: World,
) -> None:
    world.answers[BASE + "objects/0003.html"] = Answer(status=404)

    report = world.pull()

    assert (report.state, report.created, report.failed) == (MirrorState.BEHIND, 40, 1)
    assert report.failures[0].uri == BASE + "objects/0003.html"
    assert report.failures[0].code == "missing"
    world.answers.clear()
    healed = world.pull()
    assert healed.state is MirrorState.IN_SYNC
    assert world.asked_resources() == ["objects/0003.html"]


def test_wrong_bytes_are_never_kept_and_the_good_copy_stays(world: World) -> None:
    world.pull()
    world.put("objects/0003.html", "the new content")
    world.publish()
    world.answers[BASE + "objects/0003.html"] = Answer(body=b"the evil conten")

    report = world.pull()

    assert (report.state, report.failed) == (MirrorState.BEHIND, 1)
    assert report.failures[0].code == "hash-mismatch"
    assert world.asked_resources().count("objects/0003.html") == 2
    assert (world.folder / "objects/0003.html").read_text() == "content of 3"
    world.answers.clear()
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.parametrize("body", [b"the new", b"the new content and more"])
def test_a_body_of_another_length_is_never_kept(world: World, body: bytes) -> None:
    world.answers[BASE + "objects/0003.html"] = Answer(body=body)

    report = world.pull()

    assert report.failures[0].code == "length-mismatch"
    assert not (world.folder / "objects/0003.html").exists()


def test_a_body_that_is_right_the_second_time_is_kept(world: World) -> None:
    served: list[Request] = []

    def flaky(request: Request) -> Answer:
        served.append(request)
        return world.honest(request.uri) if request.uncached else Answer(body=b"content of X")

    world.answers[BASE + "objects/0003.html"] = flaky

    assert world.pull().state is MirrorState.IN_SYNC
    assert [request.uncached for request in served] == [False, True]


def test_lenient_keeps_other_bytes_and_says_that_they_are_unverified(world: World) -> None:
    world.answers[BASE + "objects/0003.html"] = Answer(body=b"whatever")

    report = world.pull(verify="lenient")

    assert (report.failed, report.unverified) == (0, 1)
    assert (world.folder / "objects/0003.html").read_bytes() == b"whatever"


def test_a_pending_resource_is_not_forgotten_when_other_changes_come(world: World) -> None:
    world.pull()
    world.answers[BASE + "objects/0003.html"] = Answer(status=503)
    world.put("objects/0003.html", "new")
    world.publish()
    world.pull()
    world.put("objects/0004.html", "new")
    world.publish()
    report = world.pull()
    world.answers.clear()

    assert report.state is MirrorState.BEHIND
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_a_source_that_does_not_answer_changes_nothing(world: World) -> None:
    world.pull()
    world.answers[CHANGE_LIST] = SourceUnavailableError("refused", uri=CHANGE_LIST)

    with pytest.raises(SourceUnavailableError):
        world.pull()

    assert world.in_sync()


def test_two_runs_never_write_at_the_same_time(world: World) -> None:
    with world.destination(), pytest.raises(LockedError):
        world.pull()


def test_a_folder_follows_one_source_only(world: World) -> None:
    world.pull()

    with pytest.raises(ConfigurationError, match="another Source"):
        world.pull("http://other.example/")


def test_a_dry_run_tells_the_plan_and_changes_nothing(world: World) -> None:
    dry = world.pull(dry_run=True)
    [plan] = world.told("plan")

    assert (plan["create"], plan["mode"]) == (41, "baseline")
    assert dry.dry_run
    assert world.files_on_disk() == {}
    world.pull()
    world.put("objects/0001.html", "new")
    world.remove("objects/0002.html")
    world.publish()
    for _ in range(2):
        world.pull(dry_run=True)
        [plan] = world.told("plan")
        assert (plan["create"], plan["update"], plan["delete"]) == (0, 1, 1)
    assert world.pull().updated == 1
    assert world.in_sync()


# --- hostile entries ---


def resource_list(*locs: str) -> Answer:
    urls = "".join(f"<url><loc>{loc}</loc></url>" for loc in locs)
    return Answer(
        body=(
            '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
            ' xmlns:rs="http://www.openarchives.org/rs/terms/">'
            '<rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>'
            f"{urls}</urlset>"
        ).encode()
    )


@pytest.mark.parametrize(
    "loc",
    [
        BASE + "../../x/evil.txt",
        BASE + "d/%2e%2e/%2e%2e/evil.txt",
        BASE + "..%5c..%5cevil.txt\\..\\x",
        BASE + "a%00b",
        "http://other.example/evil.txt",
        "file:///etc/passwd",
        "https://source.example/evil.txt",
        "/relative",
        "http://user:secret@source.example/x",
    ],
)
def test_an_entry_that_leads_elsewhere_is_refused_and_the_rest_is_fetched(
    tmp_path: Path, loc: str
) -> None:
    world = World(tmp_path / "in" / "mirror")
    world.put("good.html", "good")
    world.answers[BASE + "list.xml"] = resource_list(loc, BASE + "good.html")

    report = world.pull(BASE + "list.xml")

    assert (report.created, report.refused, report.state) == (1, 1, MirrorState.BEHIND)
    assert (
        world.asked_resources() == ["list.xml", "good.html"]
        or world.asked_resources()[-1] == "good.html"
    )
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} >= {"good.html"}
    assert not list(tmp_path.rglob("*evil*"))


def test_names_that_clash_in_a_folder_all_find_a_place(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    names = ["a", "a/", "a/b", "A", "dir/", "x?y", "x%3Fy", "CON", "a//b"]
    for name in names:
        world.put(name, f"content of {name}")
    world.answers[BASE + "list.xml"] = resource_list(*(BASE + name for name in names))

    report = world.pull(BASE + "list.xml")

    assert (report.created, report.refused, report.failed) == (len(names), 0, 0)
    assert world.in_sync()


def test_an_entry_listed_twice_with_different_content_is_refused_and_its_copy_stays(
    world: World,
) -> None:
    world.pull()
    body = world.honest(RESOURCE_LIST).body.decode()
    entry = body[body.index("<url>") : body.index("</url>") + 6]
    double = body.replace(entry, entry + entry.replace('length="', 'length="1'), 1)
    world.answers[RESOURCE_LIST] = Answer(body=double.encode())

    report = world.pull(mode="baseline")

    assert (report.refused, report.deleted) == (1, 0)
    assert len(world.files()) == 41


# --- deletion ---


def test_a_deleted_copy_waits_in_the_trash_and_then_is_gone(world: World) -> None:
    world.pull()
    world.remove("objects/0003.html")
    world.publish()
    world.pull()
    trash = world.folder / ".resourcesync" / "trash"

    assert [item.read_text() for item in trash.iterdir()] == ["content of 3"]
    world.clock.advance(hours=24 * 29)
    world.pull()
    assert list(trash.iterdir())
    world.clock.advance(hours=48)
    world.pull()
    assert not list(trash.iterdir())


def test_deletions_can_be_forbidden(world: World) -> None:
    world.pull()
    world.remove("objects/0003.html")
    world.publish()

    report = world.pull(delete="never")

    assert (report.deleted, report.unlisted) == (0, 1)
    assert (world.folder / "objects/0003.html").exists()


def big_world(folder: Path) -> World:
    world = World(folder)
    for number in range(300):
        world.put(f"{number}.html", f"{number}")
    world.publish()
    world.pull()
    return world


def test_many_deletions_are_held_until_a_second_word_comes_an_hour_later(tmp_path: Path) -> None:
    world = big_world(tmp_path / "mirror")
    for number in range(100):
        world.remove(f"{number}.html")
    world.put("200.html", "changed too")
    world.publish()

    held = world.pull()
    at_once = world.pull()
    world.put("201.html", "a later word of the Source")
    world.publish()
    too_soon = world.pull()
    world.clock.advance(hours=2)
    world.put("202.html", "another")
    world.publish()
    done = world.pull()

    assert (held.state, held.deleted, held.held) == (MirrorState.STOPPED, 0, 100)
    assert held.updated == 1
    assert (at_once.deleted, at_once.held) == (0, 100)
    assert (too_soon.deleted, too_soon.held) == (0, 100)
    assert (done.state, done.deleted) == (MirrorState.IN_SYNC, 100)
    assert world.in_sync()


def test_the_operator_may_allow_many_deletions(tmp_path: Path) -> None:
    world = big_world(tmp_path / "mirror")
    for number in range(100):
        world.remove(f"{number}.html")
    world.publish()

    assert world.pull(max_delete=DeletionLimit(percent=34)).deleted == 100
    assert world.in_sync()


def test_a_held_deletion_is_taken_back_when_the_resource_comes_back(tmp_path: Path) -> None:
    world = big_world(tmp_path / "mirror")
    for number in range(100):
        world.remove(f"{number}.html")
    world.publish()
    world.pull()
    for number in range(100):
        world.put(f"{number}.html", f"{number}")
    world.publish()

    report = world.pull()

    assert (report.state, report.held, report.deleted) == (MirrorState.IN_SYNC, 0, 0)
    assert world.asked_resources() == []


def test_a_copy_that_was_edited_here_is_not_deleted(world: World) -> None:
    world.pull()
    (world.folder / "objects/0003.html").write_text("my notes")
    world.remove("objects/0003.html")
    world.publish()

    report = world.pull()

    assert (report.deleted, report.failed, report.state) == (0, 1, MirrorState.BEHIND)
    assert (world.folder / "objects/0003.html").read_text() == "my notes"


def test_files_that_we_did_not_fetch_are_never_touched(world: World) -> None:
    world.pull()
    (world.folder / "notes.txt").write_text("mine")
    world.remove("objects/0003.html")
    world.publish()
    world.pull()
    world.pull(mode="baseline")

    assert (world.folder / "notes.txt").read_text() == "mine"


# --- gaps, rollbacks, old copies ---


def republish(world: World) -> None:
    """A Source that starts anew: a newer Resource List, and Change Lists from there only."""
    from resourcesync.adapters.memory import MemoryCatalogue, MemoryDocuments

    world.catalogue = MemoryCatalogue()
    world.documents = MemoryDocuments()
    world.publish()


def test_a_gap_in_the_changes_leads_to_a_baseline_that_also_deletes(world: World) -> None:
    world.pull()
    world.put("objects/0001.html", "changed in the gap")
    world.remove("objects/0002.html")
    world.put("new.html", "created in the gap")
    republish(world)

    report = world.pull()

    assert report.mode is Mode.BASELINE
    assert [fields["code"] for fields in world.told("warning")] == ["change-gap"]
    assert (report.created, report.updated, report.deleted) == (1, 1, 1)
    assert world.in_sync()


def test_a_gap_without_a_newer_resource_list_is_told_and_nothing_is_called_in_sync(
    world: World,
) -> None:
    world.pull()
    late = world.honest(CHANGE_LIST).body
    world.put("objects/0001.html", "x")
    world.publish()
    world.pull()
    body = world.honest(CHANGE_LIST).body.decode()
    start = body.index('from="') + 6
    later = body[:start] + "2030-01-01T00:00:00Z" + body[body.index('"', start) :]
    world.answers[CHANGE_LIST] = Answer(body=later.encode())

    with pytest.raises(DiscontinuityError):
        world.pull()

    assert late
    assert len(world.files()) == 41


def test_a_source_that_was_set_back_is_not_followed_unless_told_to(world: World) -> None:
    old = world.honest(RESOURCE_LIST).body
    world.pull()
    republish(world)
    world.pull()
    world.answers[RESOURCE_LIST] = Answer(body=old)
    body = world.honest(CHANGE_LIST).body.decode()
    start = body.index('from="') + 6
    later = body[:start] + "2030-01-01T00:00:00Z" + body[body.index('"', start) :]
    world.answers[CHANGE_LIST] = Answer(body=later.encode())

    with pytest.raises(RollbackError):
        world.pull()

    del world.answers[CHANGE_LIST]
    assert world.pull(mode="baseline").state is MirrorState.IN_SYNC


def test_an_old_copy_of_the_change_list_is_not_applied(world: World) -> None:
    world.pull()
    empty = world.honest(CHANGE_LIST)
    world.put("objects/0001.html", "new")
    world.publish()
    world.pull()
    world.answers[CHANGE_LIST] = empty

    with pytest.raises(SourceUnavailableError) as caught:
        world.pull()

    assert caught.value.code == "stale-copy"
    assert world.in_sync()
    world.answers.clear()
    assert world.pull().state is MirrorState.IN_SYNC


def test_a_change_list_that_stays_rewritten_for_a_day_leads_to_a_baseline(world: World) -> None:
    world.pull()
    empty = world.honest(CHANGE_LIST)
    world.put("objects/0001.html", "new")
    world.publish()
    world.pull()
    world.answers[CHANGE_LIST] = empty
    with pytest.raises(SourceUnavailableError):
        world.pull()
    world.clock.advance(hours=25)
    with pytest.raises(DiscontinuityError):
        world.pull()
    world.answers.clear()
    republish(world)

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


# --- filters ---


def test_filters_are_remembered_and_what_they_exclude_is_neither_fetched_nor_deleted(
    world: World,
) -> None:
    only = Filters(include=("/objects/000*",))
    first = world.pull(filters=only)
    again = world.pull()
    world.put("objects/0011.html", "not wanted")
    world.put("objects/0001.html", "wanted")
    world.publish()
    changed = world.pull()

    assert first.created == 10
    assert again.mode is Mode.UNCHANGED
    assert (changed.updated, changed.created) == (1, 0)
    narrower = world.pull(filters=Filters(include=("/objects/0001.html",)))
    assert (narrower.deleted, narrower.resources) == (0, 10)
    everything = world.pull(filters=Filters())
    assert everything.resources == 41
    assert world.in_sync()


# --- interruption, loss, local damage ---


def test_a_pull_that_is_interrupted_goes_on_where_it_stopped(world: World) -> None:
    count = 0

    def broken(request: Request) -> Answer | Exception:
        nonlocal count
        count += 1
        return KeyboardInterrupt() if count > 20 else world.honest(request.uri)  # type: ignore[return-value]  # raised

    for number in range(40):
        world.answers[f"{BASE}objects/{number:04}.html"] = broken

    with pytest.raises(KeyboardInterrupt):
        world.pull()

    kept = len(world.files())
    assert kept >= 20
    world.answers.clear()
    report = world.pull()
    assert report.created == 41 - kept
    assert world.in_sync()


def test_a_lost_memory_is_rebuilt_from_the_files_without_fetching_them(world: World) -> None:
    world.pull()
    (world.folder / ".resourcesync/state.db").unlink()
    (world.folder / "objects/0003.html").write_text("damaged")

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert world.asked_resources() == ["objects/0003.html"]
    assert world.in_sync()


def test_a_baseline_that_is_asked_for_mends_what_was_damaged_here(world: World) -> None:
    world.pull()
    (world.folder / "objects/0003.html").unlink()
    (world.folder / "objects/0004.html").write_text("scribbled")

    report = world.pull(mode="baseline")

    assert report.updated == 2
    assert world.in_sync()
    kept = world.folder / ".resourcesync/quarantine"
    assert [item.read_text() for item in kept.iterdir()] == ["scribbled"]


# --- audit ---


def test_an_audit_of_an_untouched_mirror_finds_nothing(world: World) -> None:
    world.pull()
    for method in ("lists", "stat", "hash"):
        report = world.audit(method=method)
        assert report.in_sync
        assert (report.listed, report.present, report.accurate, report.extra) == (41, 41, 41, 0)
        assert (report.coverage, report.accuracy) == (1.0, 1.0)
    assert report.read == sum(map(len, world.originals.contents().values()))


def test_an_audit_names_what_is_missing_damaged_extra_and_newer_at_the_source(
    world: World,
) -> None:
    world.pull()
    damaged = world.folder / "objects/0002.html"
    stat = damaged.stat()
    damaged.write_text("Content of 2")
    import os

    os.utime(damaged, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    (world.folder / "objects/0001.html").unlink()
    (world.folder / "notes.txt").write_text("mine")
    world.put("objects/0005.html", "newer")
    world.remove("objects/0006.html")
    world.publish()

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


def test_an_audit_offline_asks_nobody(world: World) -> None:
    world.pull()
    world.fetcher.asked.clear()
    (world.folder / "objects/0001.html").write_text("damaged")

    report = world.audit(offline=True)

    assert not report.in_sync
    assert world.fetcher.asked == []


def test_an_audit_changes_nothing(world: World) -> None:
    world.pull()
    world.put("objects/0005.html", "newer")
    world.publish()
    world.audit()

    assert world.pull().updated == 1
    assert world.in_sync()


def test_the_digest_of_every_copy_is_remembered(world: World) -> None:
    world.pull()
    with world.destination() as destination:
        copies = list(destination._equipment.state.copies())

    assert len(copies) == 41
    assert all(copy.digests.startswith("sha-256:") for copy in copies)
    assert Digest("sha-256", copies[0].digests[8:]).is_usable
