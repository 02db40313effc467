"""Links of pages: which are found, which are not, and in what time."""

import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.validator.inbound_links import page_links
from resourcesync.validator.sample import MOST_READ

LINK = '<link rel="resourcesync" href="/c.xml">'
FOUND = [("/c.xml", True)]
BELOW = [("/c.xml", False)]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (f"<html><head>{LINK}</head></html>", FOUND),
        (LINK, FOUND),
        (f"\ufeff<!doctype html>\n<title>a < b {LINK}</title>\n{LINK}", FOUND),
        (f"<head><!-- {LINK} --><script>'{LINK}'</script>{LINK}</head>", FOUND),
        ("<LINK REL='Alternate ResourceSync' HREF=/c.xml />", FOUND),
        ("<link\nhref = '/c.xml'\trel\n=\nresourcesync>", FOUND),
        ('<link rel="resourcesync" title="a>b" href="/c.xml">', FOUND),
        ('<link rel="resourcesync" href=" /a?b&amp;c&#x3D;d ">', [("/a?b&c=d", True)]),
        (f'<base href="/d/">{LINK.replace("/c", "c")}', [("/d/c.xml", True)]),
        (f'<base href="http://[">{LINK}', FOUND),
        (f"<head></head>{LINK}", FOUND),
        (f"<head></head><body>{LINK}</body>", BELOW),
        (f"<p>{LINK}", BELOW),
        (LINK.replace("resourcesync", "resourcesyncs"), []),
        (LINK.replace("link", "a"), []),
        ('<link rel="resourcesync" href="">', []),
        (f"<!-- {LINK}", []),
        (f"<script>{LINK}", []),
        ("<link rel='resourcesync' href='/c.xml", []),
        (LINK * 11, FOUND * 10),
        (" " * MOST_READ + LINK, []),
    ],
)
def test_which_links_a_page_has(page: str, expected: list[tuple[str, bool]]) -> None:
    assert page_links(page.encode()) == expected


class Second(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(reversed(attrs))
        if tag == "link" and "resourcesync" in (told.get("rel") or "").lower().split():
            self.found += [href] if (href := (told.get("href") or "").strip()) else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)


WHOLE = [
    *("<head>", "</head>", "<body>", "<p class='x'>", "</p>", "text", " ", "<!-- - -->"),
    *("<title>a</title>", "<script>if (a<b) c</script>", "<meta charset=utf-8>", LINK),
    *("<link href=/d.xml rel=resourcesync>", "<link rel=up href='/e'/>", "<!doctype html>"),
]


@given(st.lists(st.sampled_from(WHOLE), max_size=9).map("".join))
def test_the_links_of_a_sound_page_are_those_that_another_reader_finds(page: str) -> None:
    second = Second()
    second.feed(page)
    second.close()

    assert [link.href for link in page_links(page.encode())] == second.found


PIECES = [*WHOLE, "<", ">", '"', "'", "=", "/", "<!", "<!--", "-->", "</", "<script", "\0", "é"]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_no_page_is_too_broken(page: str) -> None:
    for link in page_links(page.encode("utf-16" if len(page) % 5 == 0 else "utf-8")):
        assert link.href


@pytest.mark.parametrize(
    "piece", ["<a ", '<a "', "<a b='", "<", "<!--", "</script", "<link x=", "<x/", "&", "<a =\t"]
)
def test_no_page_takes_long(piece: str) -> None:
    page = (piece * MOST_READ).encode()
    began = time.process_time()

    page_links(page)

    assert time.process_time() - began < 1
