"""Rows of the threat model about what a Source does, that no other test holds."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from resourcesync.app.mirror_home import read_status
from resourcesync.destination.audits.reports import FindingKind
from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.errors import ResourceSyncError, SourceUnavailableError
from resourcesync.ports import FetchRequest
from tests.support.documents.written import listed
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import OwnWorld, World

LIST = f"{BASE}list.xml"


def resource_list(*names: str, at: str, root: str = "urlset", md: str = "") -> Answer:
    tag = "url" if root == "urlset" else "sitemap"
    rows = (f"<{tag}><loc>{BASE}{name}</loc>{md}</{tag}>" for name in names)
    return Answer(body=listed("resourcelist", at, rows, root))


def test_fields_of_an_answer_never_name_a_file_nor_move_the_cursor(world: OwnWorld) -> None:
    plain = world.network.serve

    def dressed(request: FetchRequest) -> Answer | Exception:
        answer = plain(request)
        if isinstance(answer, Answer):
            answer.headers |= {
                "content-disposition": 'attachment; filename="../../evil.sh"',
                "content-location": "/other/place.html",
                "content-type": "application/x-sh",
                "date": "Fri, 01 Jan 2100 00:00:00 GMT",
                "last-modified": "Fri, 01 Jan 2100 00:00:00 GMT",
            }
        return answer

    world.fetcher.serve = dressed
    assert world.pull().state is MirrorState.IN_SYNC
    assert min(world.home.files_on_disk()) == "index.html"
    assert len(world.home.files_on_disk()) == 41
    world.source.publish_file("objects/0001.html", "newer")

    report = world.pull()

    assert (report.updated, report.state) == (1, MirrorState.IN_SYNC)
    assert world.in_sync()


def test_a_source_that_stands_still_is_not_called_in_sync_as_of_now(world: OwnWorld) -> None:
    first = world.pull()
    world.clock.advance(hours=24 * 90)

    again = world.pull()

    assert again.state is MirrorState.IN_SYNC
    assert again.as_of == first.as_of
    assert again.as_of is not None
    assert world.clock.now() - again.as_of > timedelta(days=89)


def test_parts_of_two_generations_are_not_one_list(tmp_path: Path) -> None:
    """The index is new, one of its parts is an old copy: what is absent may only not be told."""
    world = World(tmp_path / "mirror")
    names = [f"{number}.html" for number in range(6)]
    for name in names:
        world.source.put(name, name)
    old, new = "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"
    parts = ("one.xml", "two.xml")
    world.network.answers[LIST] = resource_list(*parts, at=old, root="sitemapindex")
    world.network.answers[BASE + "one.xml"] = resource_list(*names[:3], at=old)
    world.network.answers[BASE + "two.xml"] = resource_list(*names[3:], at=old)
    world.pull(LIST)
    world.network.answers[LIST] = resource_list(*parts, at=new, root="sitemapindex")
    world.network.answers[BASE + "one.xml"] = resource_list(*names[:2], at=new)
    world.network.answers[BASE + "two.xml"] = resource_list(*names[4:], at=old)

    report = world.pull(LIST)

    assert report.deleted == 0
    assert set(world.home.files_on_disk()) == set(names)
    assert report.as_of == datetime(2026, 1, 1, tzinfo=UTC), "the oldest part says how far it goes"


def change_a_closed_list(folder: Path) -> World[LooseSource]:
    world = World(folder, LooseSource(index=True))
    world.source.publish_file("a.txt", "first")
    world.source.publish_file("b.txt", "second")
    world.source.rotate()
    world.pull()
    closed = world.source.lists.lists[0].entries
    world.source.put("a.txt", "slipped in")
    data = b"slipped in"
    moment = world.source.lists.lists[0].start + 1
    closed.insert(
        0, world.source.lists.entry(BASE + "a.txt", data, moment, change="updated", moment=moment)
    )
    world.source.lists.known[BASE + "a.txt"] = (data, moment)
    world.source.show()
    return world


def test_a_pull_asks_closed_lists_again_once_a_day_and_finds_what_was_changed(
    tmp_path: Path,
) -> None:
    world = change_a_closed_list(tmp_path / "mirror")
    world.pull()  # the day begins
    assert not world.in_sync()
    asked = list(world.fetcher.asked)
    world.pull()
    assert len(world.fetcher.asked) <= len(asked), "asked more than once a day"
    world.clock.advance(hours=25)
    world.network.answers[f"{BASE}resourcesync/resourcelist.xml"] = SourceUnavailableError(
        "down", uri=""
    )
    with pytest.raises(SourceUnavailableError):
        world.pull()
    assert world.told("warning")[0]["code"] == "rewritten"
    assert read_status(world.folder).state is not MirrorState.IN_SYNC
    world.network.answers.clear()

    assert world.pull().mode is Mode.BASELINE
    assert world.in_sync()
    world.clock.advance(hours=25)
    assert world.pull().mode is not Mode.BASELINE


def test_a_closed_list_that_is_changed_afterwards_is_found_by_an_audit(tmp_path: Path) -> None:
    world = change_a_closed_list(tmp_path / "mirror")

    audit = world.audit()

    assert [(found.kind, found.uri) for found in audit.findings] == [
        (FindingKind.DIFFERENT, BASE + "a.txt")
    ]


def test_changes_of_what_is_known_or_unknown_otherwise_are_taken_as_they_are(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "mirror", LooseSource())
    for name in ("a", "b", "c"):
        world.source.put(f"{name}.txt", name)
    world.source.publish()
    world.pull()
    now = world.source.moment()
    world.source.put("a.txt", "a again")
    world.source.put("new.txt", "new")
    world.source.remove("b.txt")
    source = world.source
    source.lists.open_list.entries += [
        source.lists.entry(BASE + "a.txt", b"a again", now, change="created", moment=now),
        source.lists.entry(BASE + "new.txt", b"new", now, change="updated", moment=now),
        source.lists.entry(BASE + "never.txt", None, None, change="deleted", moment=now),
        source.lists.entry(BASE + "b.txt", None, None, change="deleted", moment=now),
        source.lists.entry(BASE + "b.txt", None, None, change="deleted", moment=now),
    ]
    world.source.show()

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert (report.created, report.updated, report.deleted) == (1, 1, 1)
    assert world.in_sync()


@pytest.mark.parametrize(
    ("kinds", "remains"),
    [(("deleted", "created", "deleted"), False), (("deleted", "created"), True)],
)
def test_of_changes_at_one_moment_the_last_in_the_list_counts(
    tmp_path: Path, kinds: tuple[str, ...], *, remains: bool
) -> None:
    world = World(tmp_path / "mirror", LooseSource(whole_seconds=True))
    world.source.put("a.txt", "first")
    world.source.put("b.txt", "stays")
    world.source.publish()
    world.pull()
    now, source = world.source.moment(), world.source
    for kind in kinds:
        body = None if kind == "deleted" else b"second"
        moment = None if body is None else now
        source.lists.open_list.entries.append(
            source.lists.entry(BASE + "a.txt", body, moment, change=kind, moment=now)
        )
    world.source.remove("a.txt")
    if remains:
        world.source.put("a.txt", "second")
    world.source.show()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()
    assert ("a.txt" in world.home.files_on_disk()) is remains


@pytest.mark.founding("WWW §2.1", "arXiv: mirrors recover from outages without a person", "`pull`")
def test_an_outage_of_three_days_leaves_all_as_it_was_and_one_pull_catches_up(
    world: OwnWorld,
) -> None:
    world.pull()
    before = world.home.files_on_disk()
    for name in ("objects/0001.html", "objects/0002.html"):
        world.source.put(name, "newer")
    world.source.publish_deletion("objects/0003.html")
    away = SourceUnavailableError("away", uri=BASE, status=503)
    world.fetcher.serve = lambda request: away
    for _ in range(72):
        world.clock.advance(hours=1)
        with pytest.raises(SourceUnavailableError):
            world.pull()
        assert len(world.fetcher.asked) <= 5
    assert world.home.files_on_disk() == before
    world.fetcher.serve = world.network.serve

    report = world.pull()

    assert report.state is MirrorState.IN_SYNC
    assert (report.updated, report.deleted) == (2, 1)
    assert world.in_sync()


@pytest.mark.parametrize("hours", [-1, 1, -24 * 3650, 24 * 3650])
def test_a_clock_that_is_wrong_here_loses_no_change(world: OwnWorld, hours: float) -> None:
    def pull_by_a_wrong_clock() -> MirrorState:
        world.clock.advance(hours=hours)
        try:
            return world.pull(filters=Filters()).state
        finally:
            world.clock.advance(hours=-hours)

    pull_by_a_wrong_clock()
    for number in range(3):
        world.source.publish_file(f"objects/{number:04}.html", f"newer {number}")
        assert pull_by_a_wrong_clock() is MirrorState.IN_SYNC
        assert world.in_sync()
    world.source.publish()
    assert world.pull().state is MirrorState.IN_SYNC


def test_a_pull_that_fails_empties_no_trash(world: OwnWorld) -> None:
    world.pull()
    world.source.publish_deletion("index.html")
    world.pull(trash=86_400 * 1)
    trash = world.folder / ".resourcesync/trash"
    world.clock.advance(hours=24 * 60)
    world.fetcher.serve = lambda request: SourceUnavailableError("away", uri=BASE, status=503)

    with pytest.raises(ResourceSyncError):
        world.pull(trash=86_400 * 1)

    assert len(list(trash.iterdir())) == 1
    world.fetcher.serve = world.network.serve
    world.pull(trash=86_400 * 1)
    assert list(trash.iterdir()) == []


def test_a_source_that_leads_to_another_origin_is_not_followed_there(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    for name in ("a.txt", "b.txt"):
        world.source.put(name, name)
    world.network.answers[LIST] = resource_list("a.txt", "b.txt", at="2026-01-01T00:00:00Z")
    world.pull(LIST)
    sold = resource_list("a.txt", "c.txt", at="2026-01-02T00:00:00Z")
    sold.body = sold.body.replace(BASE.encode(), b"http://buyer.example/")
    sold.uri = "http://buyer.example/list.xml"
    world.network.answers[LIST] = sold

    report = world.pull(LIST)

    assert report.state is not MirrorState.IN_SYNC
    assert (report.listed.refused, report.created, report.updated, report.deleted) == (2, 0, 0, 0)
    assert not [uri for uri in world.fetcher.asked if "buyer" in uri]
    assert set(world.home.files_on_disk()) == {"a.txt", "b.txt"}
