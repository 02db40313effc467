"""What the filters leave out is never refused, however wrong it is."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.destination.scope import Filters
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.site_maps import urlset
from tests.support.worlds.world import World

SITEMAP = BASE + "sitemap.xml"
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
