"""Entries that lead out of the mirror, or clash in it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.discovery.uris import normalise, percent_encode
from resourcesync.errors import OutOfScopeError
from tests.support.documents.written import listed
from tests.support.worlds.loose_source import LooseSource
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.site_maps import urlset
from tests.support.worlds.world import World


def resource_list(*locs: str) -> Answer:
    urls = (f"<url><loc>{loc}</loc></url>" for loc in locs)
    return Answer(body=listed("resourcelist", "2026-01-01T00:00:00Z", urls))


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
        "//other.example/relative",
        "http://user:secret@source.example/x",
    ],
)
def test_an_entry_that_leads_elsewhere_is_refused_and_the_rest_is_fetched(
    tmp_path: Path, loc: str
) -> None:
    world = World(tmp_path / "in" / "mirror")
    world.source.put("good.html", "good")
    world.network.answers[BASE + "list.xml"] = resource_list(loc, BASE + "good.html")

    report = world.pull(BASE + "list.xml")

    assert (report.created, report.listed.refused, report.state) == (1, 1, MirrorState.BEHIND)
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
        world.source.put(name, f"content of {name}")
    world.network.answers[BASE + "list.xml"] = resource_list(*(BASE + name for name in names))

    report = world.pull(BASE + "list.xml")

    assert (report.created, report.listed.refused, report.failed) == (len(names), 0, 0)
    assert world.in_sync()


SITEMAP = BASE + "sitemap.xml"
NOT_READ = ("a\\b\u00e4", "100%\u00e4", "\u00e4/../b", "%00\u00e4")


def test_such_addresses_are_read_among_many_others(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    plain = [f"{number}/\u00e4" if number % 50 == 7 else f"{number}.html" for number in range(400)]
    for name in plain:
        world.source.put(name.replace("\u00e4", "%C3%A4"), name)
    world.network.answers[SITEMAP] = Answer(body=urlset(*((BASE + name, "2026") for name in plain)))

    report = world.pull(SITEMAP)

    assert (report.created, report.listed.refused, report.state) == (400, 0, MirrorState.IN_SYNC)
    assert world.in_sync()
    assert [(row["code"], row["count"]) for row in world.told("leniency")] == [("uri-encoded", 8)]
    assert world.warned() == []


@pytest.mark.parametrize("written", NOT_READ)
def test_what_is_read_in_several_ways_is_refused(tmp_path: Path, written: str) -> None:
    world = World(tmp_path / "mirror")
    world.network.answers[SITEMAP] = Answer(body=urlset((BASE + written, "")))

    assert world.pull(SITEMAP).listed.refused == 1
    assert world.asked_resources() == []


@pytest.mark.parametrize(
    "written",
    [
        "http://stra\u00dfe.example/",  # two versions of IDNA, two hosts
        "http://user@\u00e4.example/",
        "http://\uff11\uff12\uff17.1/\u00e4",
        "http://\uff05\uff14\uff11.example/",
        "http://\u00e4 b.example/",
        "http://a.example\\\u00e4/",
        "\u00e4/x",
    ],
)
def test_a_host_that_others_may_read_as_another_is_refused(written: str) -> None:
    with pytest.raises(OutOfScopeError):
        normalise(percent_encode(written))


WRONG = (
    "http://elsewhere.example/old/a.html",
    BASE + "old/../b.html",
    BASE + "old/a\u200bb.html",
    BASE + "old/%00",
    "http://user:secret@source.example/old/x",
    "http://source.example:99999/old/x",
    BASE + "old/" + "x" * 3_000,
    "ftp://source.example/old/x",
)


@pytest.fixture
def site(tmp_path: Path) -> World[PublishedSource]:
    world = World(tmp_path / "mirror")
    world.source.put("new/a.html", "a")
    return world


def pulled(site: World[PublishedSource], loc: str, filters: Filters) -> tuple[int, MirrorState]:
    site.network.answers[SITEMAP] = Answer(
        body=urlset(*((name, "") for name in (loc, BASE + "new/a.html")))
    )
    report = site.pull(SITEMAP, filters=filters)
    assert site.asked_resources() == ["new/a.html"]
    return report.listed.refused, report.state


@pytest.mark.parametrize("loc", WRONG)
@pytest.mark.parametrize(
    "filters",
    [Filters(exclude=("/old/**",)), Filters(include=("/new/**",)), Filters(exclude=("old/",))],
)
def test_an_entry_that_the_filters_leave_out_is_not_refused(
    site: World[PublishedSource], loc: str, filters: Filters
) -> None:
    assert pulled(site, loc, filters) == (0, MirrorState.IN_SYNC)


def test_an_entry_without_an_address_may_be_wanted(site: World[PublishedSource]) -> None:
    body = urlset((BASE + "new/a.html", "")).replace(b"<url>", b"<url/><url>")
    site.network.answers[SITEMAP] = Answer(body=body)

    assert site.pull(SITEMAP, filters=Filters(include=("/new/**",))).listed.refused == 1


FOREIGN = "http://elsewhere.example/x.html"
CHANGES = BASE + "resourcesync/changelist.xml"


@pytest.fixture
def loose(tmp_path: Path) -> World[LooseSource]:
    world = World(tmp_path / "mirror", LooseSource())
    world.source.publish_file("a.html", "a")
    assert world.pull().state is MirrorState.IN_SYNC
    return world


def change(loc: str, second: int) -> str:
    moment = f"2026-01-01T01:00:{second:02}Z"
    told = f'change="updated" datetime="{moment}" length="1"'
    return f"<url><loc>{loc}</loc><rs:md {told}/></url>"


def lists(world: World[LooseSource], entries: Sequence[str]) -> None:
    start = world.source.lists.documents()["changelist.xml"]
    body = start.replace("</urlset>", "".join(entries) + "</urlset>")
    world.network.answers[CHANGES] = Answer(body=body.encode())


def test_what_is_refused_and_taken_away_in_one_list_was_never_refused(
    loose: World[LooseSource],
) -> None:
    loose.source.originals.put(FOREIGN, b"x")
    loose.source.publish()
    loose.source.originals.remove(FOREIGN)
    loose.source.publish()

    assert loose.pull().state is MirrorState.IN_SYNC


def test_an_entry_that_is_listed_well_later_is_refused_no_more(loose: World[LooseSource]) -> None:
    loose.source.put("b.html", "b")
    bad = change(f"{BASE}b.html", 1).replace("</url>", "<rs:md/></url>")
    lists(loose, [bad])
    report = loose.pull()
    assert (report.listed.refused, report.state) == (1, MirrorState.BEHIND)
    with loose.state() as state:
        assert [row.uri for row in state.refused()] == [f"{BASE}b.html"]
    lists(loose, [bad, change(f"{BASE}b.html", 2)])

    report = loose.pull()

    assert (report.created, report.listed.refused, report.state) == (1, 0, MirrorState.IN_SYNC)
    for _ in range(2):
        assert loose.pull().listed.refused == 0
    lists(loose, [bad, change(f"{BASE}b.html", 2), change(f"{BASE}c", 3)])
    loose.source.put("c", "c")
    assert loose.pull().state is MirrorState.IN_SYNC
