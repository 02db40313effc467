"""Sitemaps as sites write them are pulled in every form; what they lack is not taken for gone."""

from pathlib import Path
from typing import Any

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import SourceRefusedError, UnexpectedDocumentError
from tests.support.documents.sitemap_forms import FORMS, PAGES, URI, WrittenSitemap
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.site_maps import index, urlset
from tests.support.worlds.world import World

HOME = "https://site.example/"
TWIN = "https://www.site.example/"


def site(tmp_path: Path, *pages: str) -> World[Any]:
    world = World(tmp_path / "mirror")
    for page in pages:
        world.network.answers[page] = Answer(body=page.encode())
    return world


def leniencies(world: World[Any]) -> dict[object, object]:
    return {fields["code"]: fields["count"] for fields in world.told("leniency")}


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_a_sitemap_in_any_form_is_pulled_and_its_copies_are_told_as_unverified(
    tmp_path: Path, form: WrittenSitemap
) -> None:
    world = site(tmp_path, *PAGES)
    world.network.answers[URI] = Answer(body=form.data)

    report = world.pull(URI)

    assert (report.state, report.created, report.listed.refused) == (MirrorState.IN_SYNC, 2, 0)
    assert (report.fetched.verified, report.fetched.unverified) == (0, 2)
    assert set(world.files()) == set(PAGES)
    assert all(
        {"code", "rule", "reason", "count", "uri", "line"} == fields.keys()
        for fields in world.told("leniency")
    )


def test_an_entry_without_tls_is_requested_with_it(tmp_path: Path) -> None:
    world = site(tmp_path, f"{HOME}a.html", f"{TWIN}b.html")
    plain = [page.replace("https:", "http:") for page in (f"{HOME}a.html", f"{TWIN}b.html")]
    world.network.answers[URI] = Answer(body=urlset(*((page, "2026-01-01") for page in plain)))

    report = world.pull(URI)

    assert (report.state, report.created) == (MirrorState.IN_SYNC, 2)
    assert set(world.files()) == {f"{HOME}a.html", f"{TWIN}b.html"}
    assert not [asked for asked in world.fetcher.asked if asked.startswith("http:")]
    assert leniencies(world) == {"tls-twin": 2, "host-twin": 1}
    assert world.pull(URI).created == 0


def test_an_entry_with_tls_is_the_resource_of_a_source_without(tmp_path: Path) -> None:
    home = HOME.replace("https:", "http:")
    world = site(tmp_path, f"{HOME}a.html")
    world.network.answers[f"{home}s.xml"] = Answer(body=urlset((f"{HOME}a.html", "")))

    report = world.pull(f"{home}s.xml")

    assert (report.state, report.created) == (MirrorState.IN_SYNC, 1)
    assert set(world.files()) == {f"{home}a.html"}
    assert f"{home}a.html" not in world.fetcher.asked
    assert leniencies(world) == {"tls-twin": 1}


def test_a_site_that_moves_to_its_twin_loses_no_copy(tmp_path: Path) -> None:
    here = [f"{HOME}{number}.html" for number in range(3)]
    there = [page.replace(HOME, TWIN) for page in here]
    world = site(tmp_path, *here, *there)
    world.network.answers[URI] = Answer(body=urlset(*((page, "") for page in here)))
    world.pull(URI)
    world.network.answers[URI] = Answer(body=urlset(*((page, "") for page in there)))

    report = world.pull(URI, delete="absent", mode="baseline")

    assert (report.deleted, report.held, report.created) == (0, 0, 3)
    assert set(world.files()) == {*here, *there}


@pytest.mark.parametrize("itself", [URI, URI.replace("https:", "http:")])
def test_an_index_that_lists_itself_is_read_without_that_entry(tmp_path: Path, itself: str) -> None:
    world = site(tmp_path, *PAGES)
    world.network.answers[URI] = Answer(body=index(itself, f"{HOME}pages.txt"))
    world.network.answers[f"{HOME}pages.txt"] = Answer(body="\n".join((*PAGES, "")).encode())

    report = world.pull(URI)

    assert (report.state, report.created) == (MirrorState.IN_SYNC, 2)
    assert leniencies(world) == {"index-lists-itself": 1, "text-form": 1}


def test_an_index_that_lists_itself_alone_is_an_error(tmp_path: Path) -> None:
    world = site(tmp_path)
    world.network.answers[URI] = Answer(body=index(URI))

    with pytest.raises(UnexpectedDocumentError, match="lists itself"):
        world.pull(URI)


def robots_of(world: World[Any], **sitemaps: bytes | str) -> None:
    names = [f"{HOME}{name}.xml" for name in sitemaps]
    lines = "".join(f"Sitemap: {name}\n" for name in (*names, "https://other.example/s.xml"))
    world.network.answers[f"{HOME}robots.txt"] = Answer(body=lines.encode())
    for name, text in zip(names, sitemaps.values(), strict=True):
        body = text.encode() if isinstance(text, str) else text
        world.network.answers[name] = Answer(body=body) if body else Answer(status=404)


def test_the_sitemaps_that_robots_names_are_one_list(tmp_path: Path) -> None:
    pages = [f"{HOME}{name}.html" for name in "abcd"]
    world = site(tmp_path, *pages)
    entries = [(page, "") for page in pages]
    robots_of(
        world,
        one=urlset(entries[0], entries[1]),
        two=urlset(entries[1], entries[2]),
        whole=index(f"{HOME}part.xml"),
        feed=f'<rss version="2.0"><channel><item><link>{HOME}no</link></item></channel></rss>',
    )
    world.network.answers[f"{HOME}part.xml"] = Answer(body=urlset(entries[3]))

    report = world.pull(HOME)

    assert (report.state, report.created) == (MirrorState.IN_SYNC, 4)
    assert set(world.files()) == set(pages)
    assert world.fetcher.asked.count(pages[1]) == 1, "it is in two of them"
    assert not any("other.example" in asked for asked in world.fetcher.asked)

    robots_of(world, one=urlset(entries[0]), two=urlset(entries[2]), whole=b"")
    kept = world.pull(HOME, delete="absent")

    assert (kept.state, kept.deleted, kept.faults.unread) == (MirrorState.BEHIND, 0, 1)

    robots_of(world, one=urlset(entries[0]), two=urlset(entries[2]), whole=index(f"{HOME}two.xml"))
    world.clock.advance(hours=1)
    world.pull(HOME, delete="absent")
    gone = world.pull(HOME, delete="absent")  # nothing says that both were read at one moment

    assert (gone.state, gone.deleted, len(world.files())) == (MirrorState.IN_SYNC, 2, 2)


UNREADABLE = (
    *(Answer(status=status) for status in (401, 403, 404, 500)),
    *(Answer(body=body) for body in (b"<urlset><url></urlset>", b"<html>log in</html>", b"")),
)


@pytest.mark.parametrize("answer", UNREADABLE)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_sitemap_of_robots_that_cannot_be_read_is_an_unread_part(
    tmp_path: Path, answer: Answer, is_first: bool
) -> None:
    world = site(tmp_path, *PAGES)
    robots_of(world, one=urlset((PAGES[0], "")), two=urlset((PAGES[1], "")))
    if not is_first:
        world.pull(HOME)
        world.clock.advance(hours=48)
    world.network.answers[f"{HOME}two.xml"] = answer

    report = world.pull(HOME, delete="absent")

    is_left_out = is_first and answer.status == 404
    unread = (MirrorState.BEHIND, 0, 1)
    found = (report.state, report.deleted, report.faults.unread)
    assert found == ((MirrorState.IN_SYNC, 0, 0) if is_left_out else unread)
    assert leniencies(world).get("robots-line", 0) == is_left_out
    assert (world.pull(HOME).state is MirrorState.IN_SYNC) is is_left_out, "it stays so"

    world.network.answers[f"{HOME}two.xml"] = Answer(body=urlset((PAGES[1], "")))
    assert (world.pull(HOME).state, len(world.files())) == (MirrorState.IN_SYNC, 2)


def test_what_left_a_sitemap_is_gone_though_robots_has_a_dead_line(tmp_path: Path) -> None:
    world = site(tmp_path, *PAGES)
    all_of, first = (urlset(*((page, "") for page in pages)) for pages in (PAGES, PAGES[:1]))
    robots_of(world, one=all_of, two=first)
    assert world.pull(HOME).state is MirrorState.IN_SYNC
    robots_of(world, one=first, two=first, dead=b"")

    for deleted in (0, 0, 1):  # a new line may lead to what left the other sitemaps
        world.clock.advance(hours=1)
        assert world.pull(HOME, delete="absent").deleted == deleted


def test_a_refused_sitemap_that_robots_names_alone_gives_way_to_no_other(tmp_path: Path) -> None:
    world = site(tmp_path, *PAGES)
    robots_of(world, one=urlset((PAGES[0], "")))
    world.network.answers[f"{HOME}one.xml"] = Answer(status=403)
    world.network.answers[f"{HOME}sitemap.xml"] = Answer(body=urlset((PAGES[1], "")))

    with pytest.raises(SourceRefusedError):
        world.pull(HOME)


FEED = BASE + "feed.xml"
RSS = """<rss version="2.0"><channel>
<item><link>{page}</link></item><item><description>no link</description></item>
<item><guid isPermaLink="false">7</guid></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="{page}"/></entry>
<entry><link rel="self" href="/entries/7"/><content>all of it</content></entry></feed>"""


@pytest.mark.parametrize("feed", [RSS, ATOM])
def test_an_item_without_a_page_is_left_out_and_the_mirror_is_in_sync(
    tmp_path: Path, feed: str
) -> None:
    world = World(tmp_path / "mirror")
    world.source.put("one.html", "one")
    world.network.answers[FEED] = Answer(body=feed.format(page=BASE + "one.html").encode())

    report = world.pull(FEED)

    assert (report.created, report.listed.refused, report.state) == (1, 0, MirrorState.IN_SYNC)
    assert "feed-unlinked" in [fields["code"] for fields in world.told("leniency")]
    assert world.audit().in_sync
