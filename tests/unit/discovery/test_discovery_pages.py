"""What is read of a page and of robots.txt: links in the head, lines of sitemaps, no more."""

import time
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.discovery.document_fetcher import fetch
from resourcesync.discovery.links import MAX_PAGE, head_links, head_of, is_html, named_sitemaps
from resourcesync.discovery.uris import is_at_home, join, origin_if_any
from tests.support.worlds.discovering import HOST, Host

BASE = "https://h.example/docs/page.html"
LINK = '<link rel="resourcesync" href="/caps.xml">'
HERE = ("https://h.example/caps.xml",)
XHTML = (
    '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title></title>'
    '<meta name="x"/><link rel="resourcesync" href="/caps.xml"/></head></html>'
)
HOSTILE = (
    *("<b><p>", "<p><b><i><u>", "<a x=1><div>", "<table><tr><td>", "<a><table>", "<template>"),
    *("<", "<!", "<!--", "<!---->", "<?", "</", "<a ", "<a/", "<a b=", "<link rel='", '<link a="'),
    *("<link ", "<title>", "<title></title>", "<script></script", "<meta a=b'", "&", "&#", " "),
    *("<link rel=resourcesync href=/a>", "<meta =", "<html '", '<head "'),
)


@pytest.mark.founding(
    "0.9 §9.3.2", "A link in the head of a page leads to a Capability List", "`pull PAGE`"
)
@pytest.mark.parametrize(
    "page",
    [
        f"<html><head>{LINK}</head></html>",
        f"<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>{LINK}",
        "<HTML><HEAD><LINK REL=ResourceSync HREF=/caps.xml></HEAD>",
        "<link href='/caps.xml' rel='alternate resourcesync' type=application/xml>",
        XHTML,
        f"<html><head><title>a < b &amp; c</title><style>p {{}}</style>{LINK}",
        f"<head><script>if (a < b) document.write('</head>')</script>{LINK}",
        f"<!-- a > b --><!---->{LINK}",
        f"<head></head>{LINK}",
        f"<head><noscript>{LINK}</noscript></head>",
        f"{LINK}{LINK}",
        f'<base href="/other/"><link rel=resourcesync href="../caps.xml">{LINK}',
        '<base href="//evil.example/"><link rel=resourcesync href="/caps.xml">',
        '<link rel=resourcesync href="http://["><link rel=resourcesync href="">' + LINK,
        f"<meta content=\"'>\" name='x'><meta a=b/ c>{LINK}",
    ],
)
def test_links_in_the_head_count(page: str) -> None:
    assert head_links(page, BASE) == HERE


@pytest.mark.parametrize(
    "page",
    [
        "",
        "no page",
        f"<html><body>{LINK}",
        f"<head><p>{LINK}</head>",
        f"<head>text {LINK}</head>",
        f"<!-- {LINK} -->",
        f"<head><!-- {LINK}",
        f"<title>{LINK}</title>",
        f"<script>{LINK}</script>",
        f"<script>{LINK}",
        f"<template>{LINK}</template>",
        f'<meta content="{LINK.replace(chr(34), chr(39))}">',
        '<link rel="resourcesync">',
        '<link rel="resourcesyncs" href="/caps.xml">',
        '<a rel="resourcesync" href="/caps.xml">',
        '<link rel="resourcesync" href="/caps.xml"',
    ],
)
def test_what_others_may_write_does_not(page: str) -> None:
    assert head_links(page, BASE) == ()


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_page_is_read_in_bounded_time(piece: str) -> None:
    page = (piece * MAX_PAGE)[:MAX_PAGE]

    began = time.process_time()
    head_links(page, BASE)
    head_links(f"<html><head><link {page}", BASE)
    is_html(page)

    assert time.process_time() - began < 4.0


@given(st.text(alphabet="<>!-?/= '\"abhlinkrestml\n&;#x[]", max_size=200))
def test_no_page_breaks_the_reader(page: str) -> None:
    for target in head_links(page, BASE):
        assert join(BASE, target) == target
    assert is_html(page) in (True, False)


@pytest.mark.parametrize(
    "data",
    [
        f"<html>{LINK}".encode(),
        b"\xef\xbb\xbf" + f"<html>{LINK}".encode(),
        f"<html>{LINK}".encode("utf-16"),
        f"<html>\xe9{LINK}".encode("latin-1").replace(b"\xe9", b""),
    ],
)
def test_pages_are_read_in_their_encoding(data: bytes) -> None:
    head = head_of(BytesIO(data))

    assert is_html(head)
    assert head_links(head, BASE) == HERE


def test_a_page_of_any_length_is_read_as_far_as_its_head() -> None:
    stream = BytesIO(b"<html>" + b" " * (10 * MAX_PAGE) + LINK.encode())

    assert len(head_of(stream)) == MAX_PAGE
    assert head_links(head_of(stream), BASE) == ()


@given(st.binary(max_size=300))
def test_no_robots_file_breaks_the_reader(data: bytes) -> None:
    host = Host({"/robots.txt": data})
    with fetch(host.documents, f"{HOST}/robots.txt") as robots:
        targets = named_sitemaps(robots)

    assert len(targets) == len(set(targets))


@pytest.mark.parametrize(
    ("uri", "home", "expected"),
    [
        ("http://h/a", "http://h:80/b", True),
        ("https://h/a", "http://h/b", True),
        ("http://h/a", "https://h/b", False),
        ("https://h:444/a", "http://h/b", False),
        ("https://h/a", "http://h:8080/b", False),
        ("http://www.h/", "http://h/", False),
        ("http://h@evil/", "http://h/", False),
        ("http://H.:80/", "http://h/", True),
        ("ftp://h/", "ftp://h/", False),
        ("http://[", "http://[", False),
        ("http://h:x/", "http://h:x/", False),
    ],
)
def test_home_is_the_origin_and_its_twin_behind_tls(uri: str, home: str, expected: bool) -> None:
    assert is_at_home(uri, [home]) is expected


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_address_breaks_the_joining(base: str, target: str) -> None:
    joined = join(f"http://h.example/{base}", target)

    assert joined is None or origin_if_any(joined) == "" or "://" in joined
