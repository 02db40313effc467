"""What a reading of lists proves: a copy is absent, or a gap is closed, only by evidence."""

from datetime import timedelta
from email.utils import format_datetime
from hashlib import sha256
from pathlib import Path

import pytest

from resourcesync.cli.render.status import notes_of
from resourcesync.destination.mirror_health import CheckedMirror
from resourcesync.destination.reports import MirrorState, Mode
from resourcesync.destination.sync_state import SyncState
from resourcesync.errors import RollbackError
from resourcesync.model.vocabulary import RS_NS
from resourcesync.ports import FetchRequest
from tests.support.documents.written import written
from tests.support.worlds.contradicting_source import ContradictingSource, change
from tests.support.worlds.daily_source import DailySource, Form
from tests.support.worlds.dump_source import AT, DumpSource, Packed, Told, many, zipped
from tests.support.worlds.network import BASE, Answer, Serve
from tests.support.worlds.plain_site import PlainSite
from tests.support.worlds.site_maps import index, urlset
from tests.support.worlds.world import World
from tests.support.worlds.written_source import (
    Part,
    WrittenList,
    WrittenSource,
    dated_network,
    dated_world,
    listed,
    serve_parts,
)

RESOURCE_LIST = BASE + "resourcesync/resourcelist.xml"


@pytest.mark.parametrize("archive", [False, True])
@pytest.mark.parametrize("own_times", [False, True])
def test_a_daily_list_that_replaces_the_last_one_takes_no_copy_away(
    tmp_path: Path, own_times: bool, archive: bool
) -> None:
    world = World(tmp_path, DailySource(own_times=own_times, archive=archive))
    world.pull()
    world.source.put("new.txt", "made on the first day")
    world.source.end_day()
    world.pull()
    assert world.in_sync()
    for day in range(2, 7):
        world.source.put("0.txt", f"changed on day {day}")
        world.source.end_day()

        report = world.pull()

        assert world.in_sync()
        assert (report.deleted, report.held) == (0, 0)
        assert world.source.asked_files(world.asked()) == ["0.txt"]


@pytest.mark.parametrize("own_times", [False, True])
def test_a_missed_daily_list_is_a_gap_until_the_next_resource_list(
    tmp_path: Path, own_times: bool
) -> None:
    world = World(tmp_path, DailySource(own_times=own_times))
    assert world.pull().state is MirrorState.IN_SYNC
    world.source.put("new.txt", "made")
    world.source.remove("1.txt")
    world.source.put("2.txt", "changed")
    world.source.end_day()
    for day in range(2, 7):
        world.source.put("0.txt", f"changed on day {day}")
        world.source.end_day()

        assert world.pull().state is MirrorState.BEHIND
        assert world.texts()["0.txt"] == f"changed on day {day}"
        assert not world.audit(method="lists").in_sync
    world.source.put("0.txt", "changed on day 7")
    world.source.end_day()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_the_archive_supplies_a_missed_daily_list(tmp_path: Path) -> None:
    world = World(tmp_path, DailySource(archive=True))
    world.pull()
    world.source.put("0.txt", "changed on day 1")
    world.source.end_day()
    world.pull()
    world.source.put("new.txt", "made")
    world.source.remove("1.txt")
    world.source.put("2.txt", "changed")
    world.source.end_day()
    world.source.put("0.txt", "changed on day 3")
    world.source.end_day()

    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


@pytest.mark.founding(
    "WWW §4", "Wikipedia: a list of the most recent changes is followed", "`pull`"
)
@pytest.mark.parametrize("own_times", [False, True])
@pytest.mark.parametrize("form", ["window", "newest-first"])
def test_a_window_of_the_last_changes_is_followed_in_either_order(
    tmp_path: Path, form: Form, own_times: bool
) -> None:
    world = World(tmp_path, DailySource(form, own_times=own_times))
    assert world.pull().state is MirrorState.IN_SYNC
    for day in range(1, 20):
        changed = [f"{day % 5}.txt", f"new-{day}.txt", f"{day % 5}.txt"]
        for number, name in enumerate(changed):
            world.source.put(name, f"{number} of day {day}")
        if day > 3:
            world.source.remove(f"new-{day - 3}.txt")
        world.source.end_day()

        assert (world.pull().state, world.in_sync()) == (MirrorState.IN_SYNC, True), day
        assert world.source.asked_files(world.asked()) == sorted(set(changed))


def test_a_window_that_slid_past_what_was_processed_is_a_gap(tmp_path: Path) -> None:
    world = World(tmp_path, DailySource("window", window=4))
    world.pull()
    world.source.put("0.txt", "changed on day 1")
    world.source.end_day()
    world.pull()
    world.source.remove("1.txt")
    for number in range(4):
        world.source.put(f"new-{number}.txt", "made")
    world.source.end_day()

    assert world.pull().state is MirrorState.BEHIND

    assert "1.txt" in world.texts()


class _Parts:
    """The parts of an index, rewritten between two requests."""

    def __init__(self, source: WrittenSource, at: str, *, hashed: bool) -> None:
        self.source = source
        self.at = at
        self._is_hashed = hashed
        self._index = b""
        names = sorted(source.written.contents)
        self.halves = [names[:15], names[15:]]

    def index(self, _: FetchRequest) -> Answer:
        """Answer with the index: it dates its parts by ``lastmod``, or has their first hashes."""
        parts = "".join(
            f"<sitemap><loc>{BASE}resourcesync/part{number}.xml</loc>"
            + (
                f'<rs:md hash="sha-256:{sha256(self._body(number)).hexdigest()}"/></sitemap>'
                if self._is_hashed
                else "<lastmod>2026-03-02T00:00:00Z</lastmod></sitemap>"
            )
            for number in (1, 2)
        )
        head = f'<rs:md capability="resourcelist"{self._at()}/>'
        if not self._index or not self._is_hashed:
            self._index = written(head, parts, "sitemapindex").encode()
        return Answer(body=self._index)

    def _at(self) -> str:
        return f' at="{self.at}"' if self.at else ""

    def _body(self, number: int) -> bytes:
        texts = self.source.written.contents
        entries = "".join(listed(name, texts[name]) for name in self.halves[number - 1])
        return written(f'<rs:md capability="resourcelist"{self._at()}/>', entries).encode()

    def part(self, number: int) -> Serve:
        def serve(_: FetchRequest) -> Answer:
            body = self._body(number)
            if number == 1:  # the first resource of part 2 moves to part 1
                first, second = self.halves
                self.halves = [[*first, second[0]], second[1:]]
                self.at = self.at and "2026-03-03T00:00:00Z"
            return Answer(body=body)

        return serve


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("at", ["", "2026-03-02T00:00:00Z"])
@pytest.mark.parametrize("delete", ["auto", "absent"])
def test_a_resource_that_moves_between_parts_while_they_are_read_stays(
    tmp_path: Path, delete: str, at: str, *, hashed: bool
) -> None:
    world = World(tmp_path, WrittenSource())
    world.source.wait_until(7 * 86_400)
    world.pull(RESOURCE_LIST)
    parts = _Parts(world.source, at, hashed=hashed)
    world.clock.advance(seconds=60)
    world.network.answers |= {
        RESOURCE_LIST: parts.index,
        BASE + "resourcesync/part1.xml": parts.part(1),
        BASE + "resourcesync/part2.xml": parts.part(2),
    }

    report = world.pull(RESOURCE_LIST, delete=delete)

    assert (report.deleted, report.held) == (0, 0)
    assert world.in_sync()


def in_two(ats: tuple[str, str], halves: list[list[str]]) -> list[Part]:
    return [
        (f"part{number}.xml", at, names)
        for number, (at, names) in enumerate(zip(ats, halves, strict=True), 1)
    ]


def test_a_part_older_than_the_one_read_before_is_a_rollback(tmp_path: Path) -> None:
    world = World(tmp_path, WrittenSource())
    names = sorted(world.source.written.contents)
    halves = [names[:15], names[15:]]
    early, late = "2026-03-02T03:00:00Z", "2026-03-02T04:00:00Z"
    world.source.wait_until(3 * 86_400)
    old = dict(world.source.written.contents)
    world.source.written.contents["0.html"] = "new"
    serve_parts(world, early, in_two((late, early), halves), announces=False)
    world.pull(RESOURCE_LIST)
    world.source.written.contents = old
    serve_parts(world, early, in_two((early, early), halves), announces=False)
    world.clock.advance(seconds=3_600)

    with pytest.raises(RollbackError):
        world.pull(RESOURCE_LIST)

    assert world.texts()["0.html"] == "new"


@pytest.mark.parametrize("served", ["first", None])
def test_an_older_change_and_an_old_replica_take_nothing_back(
    tmp_path: Path, served: str | None
) -> None:
    """A cached Change List ends before the Resource List, and a replica is as old."""
    world = World(tmp_path, ContradictingSource())
    world.source.begin()
    world.source.serve_one("second")
    world.source.list("2026-01-02T02:00:00Z", "second")
    assert world.pull().state is MirrorState.IN_SYNC
    kind = "deleted" if served is None else "updated"
    at = "2026-01-02T00:00:00Z"
    text = change(kind, served or "").replace(' datetime="2026-01-02T00:00:00Z"', "")
    dated = text.replace("</loc>", f"</loc><lastmod>{at}</lastmod>")
    world.source.list("2026-01-02T02:00:00Z", "second", dated)
    world.source.serve_one(served)
    world.clock.advance(seconds=3_600)

    assert world.pull(mode="baseline").state is MirrorState.BEHIND
    assert world.texts()["a.html"] == "second"
    assert world.pull().state is MirrorState.BEHIND
    assert world.texts()["a.html"] == "second"


@pytest.mark.parametrize("length", [-1, None])
def test_a_resource_that_moves_between_packages_while_they_are_read_stays(
    tmp_path: Path, length: int | None
) -> None:
    """The dump says of its packages no more than their names, or also their lengths."""
    world = World(tmp_path, DumpSource())
    told = many(40)
    world.source.put_all(told)
    first, later = "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"

    def package(name: str, of: list[Told], at: str) -> Packed:
        return Packed(name=name, body=zipped(of, at=at), length=length)

    halves = [package("1.zip", told[:20], AT), package("2.zip", told[20:], AT)]
    world.source.dump(*halves)
    world.clock.advance(seconds=7 * 86_400)
    assert world.pull().state is MirrorState.IN_SYNC
    moved = package("2.zip", told[21:], later)
    world.source.dump(package("1.zip", told[:20], first), moved, at=first)
    world.clock.advance(seconds=60)

    report = world.pull()

    assert (report.deleted, report.held) == (0, 0)
    assert report.state is MirrorState.BEHIND
    assert world.in_sync()
    world.source.dump(package("1.zip", told[:21], later), moved, at=later)
    world.clock.advance(seconds=60)
    assert world.pull().state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_parts_of_several_minutes_whose_index_dates_them_prove_absence_at_once(
    tmp_path: Path,
) -> None:
    """The standard's own example has parts of different minutes (example 15)."""
    world = dated_world(tmp_path)
    world.source.wait_until(7 * 86_400)
    names = sorted(world.source.written.contents)
    ats = ("2026-03-05T03:00:01Z", "2026-03-05T03:01:01Z")
    serve_parts(world, ats[0], in_two(ats, [names[:15], names[15:]]))
    world.pull(RESOURCE_LIST)
    del world.source.written.contents[names[0]]
    world.source.wait_until(9 * 86_400)
    ats = ("2026-03-09T03:00:01Z", "2026-03-09T03:01:01Z")
    serve_parts(world, ats[0], in_two(ats, [names[1:15], names[15:]]))
    world.source.wait_until(9 * 86_400)

    report = world.pull(RESOURCE_LIST)

    assert (report.state, report.deleted) == (MirrorState.IN_SYNC, 1)


DAY = 86_400


def day(number: int, time: str = "03:00:00") -> str:
    return f"2026-03-{number:02}T{time}Z"


@pytest.mark.parametrize("with_date", [True, False])
@pytest.mark.parametrize("states_at", [True, False])
def test_a_list_whose_parts_are_being_written_takes_no_copy_away(
    tmp_path: Path, with_date: bool, states_at: bool
) -> None:
    """Cron writes part 1, then part 2, then the index; the pull comes in between."""
    world = dated_world(tmp_path) if with_date else World(tmp_path, WrittenSource())
    names = sorted(world.source.written.contents)
    at = day(7) if states_at else ""
    old = [("1.xml", day(7, "03:00:00"), names[:15]), ("2.xml", day(7, "03:05:00"), names[15:])]
    serve_parts(world, at, old, announces=False)
    world.source.wait_until(6 * DAY + 12 * 3600)
    assert world.pull(RESOURCE_LIST).state is MirrorState.IN_SYNC
    world.source.written.contents["!new.html"] = "new"
    first = ("1.xml", day(8, "03:00:00"), ["!new.html", *names][:15])
    serve_parts(world, at, [first, old[1]], announces=False)
    world.source.wait_until(7 * DAY + 3 * 3600 + 120)

    assert world.pull(RESOURCE_LIST).deleted == 0
    assert world.in_sync()


def test_an_old_index_twice_takes_no_copy_away(tmp_path: Path) -> None:
    """Each version of a part has a name; a replica serves the index of day 3 for two pulls."""
    world = World(tmp_path, WrittenSource())
    names = sorted(world.source.written.contents)
    world.source.wait_until(8 * DAY)
    old = ("old.xml", day(2), names[:10])
    third, fifth = ("new-3.xml", day(3), names[10:29]), ("new-5.xml", day(5), names[10:])
    serve_parts(world, "", [old, third])
    stale = world.network.answers[RESOURCE_LIST]
    serve_parts(world, "", [old, fifth])
    assert world.pull(RESOURCE_LIST).state is MirrorState.IN_SYNC
    assert world.in_sync()
    world.network.answers[RESOURCE_LIST] = stale
    for _ in range(3):
        world.clock.advance(seconds=3_600)
        assert world.pull(RESOURCE_LIST).deleted == 0


def test_a_part_that_joins_with_an_older_moment_hides_no_deletion_of_another(
    tmp_path: Path,
) -> None:
    world = dated_world(tmp_path)
    names = sorted(world.source.written.contents)
    world.source.wait_until(7 * DAY)
    new = {name: world.source.written.contents.pop(name) for name in names[20:]}
    one, two = ("1.xml", day(5), names[:10]), ("2.xml", day(6), names[10:20])
    serve_parts(world, "", [one, two])
    world.pull(RESOURCE_LIST)
    world.source.written.contents |= new
    del world.source.written.contents[names[0]]
    world.source.wait_until(9 * DAY)
    parts = [("1.xml", day(9), names[1:10]), two, ("3.xml", day(3), names[20:])]
    serve_parts(world, "", parts)

    world.clock.advance(seconds=DAY)
    world.pull(RESOURCE_LIST)
    world.clock.advance(seconds=DAY)

    assert world.pull(RESOURCE_LIST).state is MirrorState.IN_SYNC
    assert world.in_sync()


def test_by_a_part_that_is_older_than_its_index_says_no_mirror_is_in_sync(tmp_path: Path) -> None:
    world = World(tmp_path, WrittenSource())
    names = sorted(world.source.written.contents)
    one, two = ("1.xml", day(5), names[:15]), ("2.xml", day(5), names[15:])
    second = f"{BASE}resourcesync/2.xml"
    world.source.wait_until(7 * DAY)
    serve_parts(world, day(5), [one, two])
    assert world.pull(RESOURCE_LIST).state is MirrorState.IN_SYNC
    old = world.network.answers[second]
    world.source.written.contents["new.html"] = "new"
    serve_parts(world, day(6), [one, ("2.xml", day(6), [*names[15:], "new.html"])])
    fresh, world.network.answers[second] = world.network.answers[second], old

    for _ in range(2):
        world.clock.advance(hours=1)
        report = world.pull(RESOURCE_LIST)
        assert (report.state, report.deleted) == (MirrorState.BEHIND, 0)
        assert world.warned()[-1] == "old-part"
        assert not world.audit().in_sync
        with world.state() as state:
            assert SyncState(state).cursor.is_baseline_due
    world.network.answers[second] = fresh

    report = world.pull(RESOURCE_LIST)
    assert (report.state, report.mode, report.created) == (MirrorState.IN_SYNC, Mode.BASELINE, 1)
    assert world.in_sync()


def test_a_part_that_cannot_be_had_hides_no_news_of_another(tmp_path: Path) -> None:
    """The index of the parts stays as it is, and no change is listed."""
    world = World(tmp_path, WrittenSource())
    world.source.written.lists = [WrittenList("changelist.xml", from_=0)]
    world.source.written.is_index = False
    names = sorted(world.source.written.contents)
    one, two = ("1.xml", day(5), names[:15]), ("2.xml", day(5), names[15:])
    uris = [f"{BASE}resourcesync/{number}.xml" for number in (1, 2)]
    world.source.wait_until(7 * DAY)
    serve_parts(world, day(5), [one, two], announces=False)
    assert world.pull().state is MirrorState.IN_SYNC
    old = world.network.answers[uris[1]]
    world.source.written.contents["new.html"] = "new"
    two = ("2.xml", day(6), [*names[15:], "new.html"])
    serve_parts(world, day(5), [one, two], announces=False)
    whole, world.network.answers[uris[0]] = world.network.answers[uris[0]], Answer(status=503)

    report = world.pull()
    assert (report.state, report.faults.unread, report.created) == (MirrorState.BEHIND, 1, 1)
    world.network.answers[uris[0]] = whole
    assert world.pull().state is MirrorState.IN_SYNC

    assert world.in_sync()
    world.network.answers[uris[1]] = old
    assert world.pull().mode is Mode.UNCHANGED


PAGES = [f"{number}.html" for number in range(10, 30)]


def serve_undated(world: World[PlainSite], *parts: list[str], age: int | None) -> None:
    """Serve sitemaps without dates; by their server, all were written so many seconds ago."""
    written = world.clock.now() - timedelta(seconds=age or 0)
    headers = {} if age is None else {"last-modified": format_datetime(written, usegmt=True)}
    bodies = [urlset(*((BASE + name, "") for name in part)) for part in parts]
    uris = [f"{BASE}{number}.xml" for number in range(len(parts))]
    bodies += [index(*uris), "".join(f"Sitemap: {uri}\n" for uri in uris).encode()]
    for uri, body in zip((*uris, f"{BASE}sitemap.xml", f"{BASE}robots.txt"), bodies, strict=True):
        world.network.answers[uri] = Answer(body=body, headers={**headers})


@pytest.fixture(params=["sitemap.xml", "robots.txt"])
def plain(tmp_path: Path, request: pytest.FixtureRequest) -> World[PlainSite]:
    site = PlainSite(dict.fromkeys(PAGES, "page"))
    site.entry = BASE + request.param
    world = World(tmp_path, site, network=dated_network(site.clock))
    serve_undated(world, PAGES[:10], PAGES[10:], age=DAY)
    assert world.pull(delete="absent").state is MirrorState.IN_SYNC
    world.clock.advance(hours=12)
    return world


@pytest.mark.parametrize(("age", "repairs"), [(3_600, 0), (3_600, 1), (300, 0), (None, 0)])
def test_what_undated_parts_lack_is_gone_at_once_if_they_are_old_and_the_same_again(
    plain: World[PlainSite], age: int | None, *, repairs: bool
) -> None:
    serve_undated(plain, PAGES[1:10], PAGES[10:], age=age)

    report = plain.repair(source=None, deleting=True) if repairs else plain.pull()

    is_gone = age == 3_600
    assert report.state is (MirrorState.IN_SYNC if is_gone else MirrorState.BEHIND)
    assert (report.deleted, report.retained.open) == (int(is_gone), int(not is_gone))
    notes = "\n".join(notes_of(CheckedMirror(plain.status())))
    assert ("a pull\nin ten minutes or more" in notes) is not is_gone
    assert "--delete absent" not in notes
    plain.clock.advance(seconds=600)
    assert plain.pull().state is MirrorState.IN_SYNC
    assert len(plain.files()) == len(PAGES) - 1


def test_a_page_that_moves_between_sitemaps_of_old_dates_stays(plain: World[PlainSite]) -> None:
    serve_undated(plain, PAGES[:10], PAGES[10:], age=DAY)
    first = plain.network.answers[f"{BASE}0.xml"]

    def move(_: FetchRequest) -> Answer:
        serve_undated(plain, PAGES[:11], PAGES[11:], age=DAY)
        assert isinstance(first, Answer)
        return first

    plain.network.answers[f"{BASE}0.xml"] = move

    report = plain.pull()

    assert (report.state, report.deleted) == (MirrorState.BEHIND, 0)


@pytest.mark.parametrize("is_stated", [True, False])
def test_a_part_with_a_moment_or_one_that_is_lost_when_read_again_proves_no_absence_at_once(
    plain: World[PlainSite], *, is_stated: bool
) -> None:
    serve_undated(plain, PAGES[1:10], PAGES[10:], age=DAY)
    uri = f"{BASE}0.xml"
    first = plain.network.answers[uri]
    assert isinstance(first, Answer)

    def lose(_: FetchRequest) -> Answer:
        plain.network.answers[uri] = Answer(status=404)
        return first

    head = f'<rs:md xmlns:rs="{RS_NS}" capability="resourcelist" at="2026-01-01T00:00:00Z"/><url>'
    stated = first.body.replace(b"<url>", head.encode(), 1)
    plain.network.answers[uri] = Answer(body=stated, headers=first.headers) if is_stated else lose

    report = plain.pull()

    assert (report.state, report.deleted) == (MirrorState.BEHIND, 0)
