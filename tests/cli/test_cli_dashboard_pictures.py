"""Each page for operators in Chromium: light and dark, on a desk and on a phone.

With ``TESTS_PICTURES`` (an absolute path), the pages are drawn into that folder; with that of
``docs/_static``, only those that the documentation shows.
"""

import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urldefrag, urljoin, urlsplit
from urllib.request import urlopen

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.cli.service.watch_pages import WatchPages
from tests.support.page_checkers import barriers, markup_faults
from tests.support.sources.dashboard_week import configured, served, subscriptions
from tests.support.sources.own_source import source_pages

pytestmark = pytest.mark.night  # a browser draws some hundred pages

LOOKS = [(scheme, width) for scheme in ("light", "dark") for width in (1280, 390)]
MORE = (
    *("?q=nothing", "mirror?name=theses", "mirror?name=maps"),
    "resource?name=theses&resource=collection-3/item-00003.xml",
    "resource?name=museum&resource=collection-3/item-00003.xml",
)
KNOWN = re.compile(
    r"CSS: |"  # what it knows of CSS is older than `color-scheme` and stops of two positions
    r"Bad value .group. for attribute .role. on element .svg."  # a chart whose parts are read out
)
STATIC = Path(__file__).parents[2] / "docs" / "_static"
KINDS = {"/", "/mirror", "/resource", "/run", "/audits", "/audit", "/events", "/explore"}


class _Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        where = dict(attrs).get("href")
        if tag == "a" and where:
            self.found.append(where)


def kind(uri: str) -> str:
    """Return the path of a page and the names of its parameters."""
    parts = urlsplit(uri)
    return " ".join([parts.path, *sorted(name for name, _ in parse_qsl(parts.query))])


def pages_from(start: str) -> list[str]:
    """Return the pages that links lead to, one of each kind."""
    found, waiting, seen = [start], [start], {kind(start)}
    while waiting:
        with urlopen(waiting.pop(0)) as answer:
            if answer.headers.get_content_type() != "text/html":
                continue
            here, text = answer.url, answer.read().decode()
        for link in _Links(text).found:
            uri = urldefrag(urljoin(here, link)).url
            if not uri.startswith(start) or kind(uri) in seen:
                continue
            seen.add(kind(uri))
            found.append(uri)
            waiting.append(uri)
    return [uri for uri in found if not re.search(r"\.(json|xml|css|js|svg)$|/metrics$", uri)]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Serve the pages of mirrors and those of a Source; give the addresses of all of them."""
    folder = tmp_path_factory.mktemp("week")
    configuration = configured(folder)
    names = (configuration.names, configuration)
    pages = WatchPages(lambda: names, SystemClock(), subscriptions)
    pages.count("audit", {"time": pages.now(), "mirror": "museum", "exit": 0})
    with (
        served(configuration, pages) as mirrors,
        source_pages(folder / "demo") as (source, _),
    ):
        more = [f"{mirrors}{path}" for path in MORE]
        yield [*pages_from(mirrors), *more, *pages_from(source)]


def test_every_kind_of_page_is_looked_at(places: list[str]) -> None:
    assert {urlsplit(place).path for place in places} >= KINDS


SHOWN = {
    ("", "light-1280"): ("dashboard-mirrors.png", 490),
    ("mirror?name=theses", "light-1280"): ("dashboard-mirror.png", 880),
}
"""What the documentation shows: a page of mirrors and its look; its file, and how high it is."""


def draw(page: Any, place: str, look: str) -> None:
    """Draw a page into the folder that was named, if any."""
    folder = os.environ.get("TESTS_PICTURES")
    if not folder:
        return
    parts = urlsplit(place)
    what = f"{parts.path.strip('/')}?{parts.query}".strip("?")
    if Path(folder).resolve() == STATIC:
        if (what, look) in SHOWN and page.locator("text=Mirrors").count():
            file, height = SHOWN[what, look]
            clip = {"x": 0, "y": 0, "width": 1280, "height": height}
            page.screenshot(path=STATIC / file, clip=clip, full_page=True)
        return
    name = re.sub(r"[^\w.-]+", "-", what or "top")[:80]
    page.screenshot(path=Path(folder) / f"{parts.port}-{name}-{look}.png", full_page=True)


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_a_page_fits_says_nothing_on_the_console_and_asks_no_other(
    browser: Any, places: list[str], scheme: str, width: int
) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page, faults = context.new_page(), list[str]()
    page.on("console", lambda item: faults.append(f"{page.url}: {item.text}"))
    page.on("pageerror", lambda item: faults.append(f"{page.url}: {item}"))
    origins = {f"{part.scheme}://{part.netloc}" for part in map(urlsplit, places)}
    ours = ("data:", *origins)
    page.on("request", lambda item: None if item.url.startswith(ours) else faults.append(item.url))
    for place in places:
        page.goto(place)
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            faults.append(f"{place}: {wide} wide, of {width}")
        draw(page, place, f"{scheme}-{width}")
    context.close()
    assert faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier(browser: Any, places: list[str], scheme: str) -> None:
    assert barriers(browser, places, color_scheme=scheme) == []


def test_the_checker_of_the_w3c_finds_no_fault(places: list[str], tmp_path: Path) -> None:
    for number, place in enumerate(places):
        with urlopen(place) as answer:
            (tmp_path / f"{number:03}.html").write_bytes(answer.read())

    assert {fault for fault in markup_faults(tmp_path) if not KNOWN.match(fault)} == set()
