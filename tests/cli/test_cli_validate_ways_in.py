"""``validate --live``: what leads to a Source from its pages, its answers and robots.txt."""

from dataclasses import replace

import pytest

from resourcesync.validator.rule import RULES
from resourcesync.validator.sample import SampleSize, Unreached
from tests.support.commands.command_line import FILES
from tests.support.rules.judged import broken, judged, offer
from tests.support.servers.tiny_source import TinySource

HTML = "text/html; charset=utf-8"


def linking(source: TinySource, target: str, *, in_head: bool = True) -> bytes:
    link = f'<link rel="resourcesync" href="{target}">'
    head, body = (link, "") if in_head else ("", link)
    return f"<!DOCTYPE html><html><head>{head}</head><body>{body}hello</body></html>".encode()


def put_page(source: TinySource, path: str, body: bytes, link: str = "") -> None:
    source.put(path, body, HTML)
    if link:
        answer = source.answers[path]
        source.answers[path] = replace(answer, headers={**answer.headers, "Link": link})


def offer_with_page(source: TinySource, path: str = "/page.html") -> None:
    put_page(source, path, linking(source, "/capabilitylist.xml"))
    body = source.answers[path].body
    offer(source)
    text = source.answers["/resourcelist.xml"].body.decode()
    entry = source.entry(path, body)
    source.put(
        "/resourcelist.xml",
        text.replace("</urlset>", f"{entry}</urlset>").encode(),
        "application/xml",
    )


@pytest.mark.parametrize("path", ["/page.html", "/"])
def test_a_page_of_the_set_that_leads_to_it_is_right(path: str, source: TinySource) -> None:
    offer_with_page(source, path)

    events = judged(source.url + path.rstrip("/"), live=True)

    assert broken(events, *RULES) == []
    assert path in {asked.target for asked in source.asked}


@pytest.mark.parametrize(
    ("target", "in_head"),
    [
        ("/capabilitylist.xml", False),
        ("/resourcelist.xml", True),
        ("/no-such.xml", True),
        ("/objects/0001.txt", True),
    ],
)
def test_a_page_that_leads_elsewhere_or_not_from_its_head_is_found(
    target: str, in_head: bool, source: TinySource
) -> None:
    offer_with_page(source)
    put_page(source, "/page.html", linking(source, target, in_head=in_head))

    events = judged(f"{source.url}/page.html", live=True)

    assert broken(events, "DI01", "DI02") == [("DI01", f"{source.url}/page.html")]


def test_a_page_that_the_set_does_not_hold_is_found(source: TinySource) -> None:
    offer(source)
    put_page(source, "/other.html", linking(source, "/capabilitylist.xml"))

    events = judged(f"{source.url}/other.html", live=True)

    assert broken(events, "DI01") == [("DI01", f"{source.url}/other.html")]


def test_a_link_whose_target_is_late_is_not_judged_but_named(source: TinySource) -> None:
    offer_with_page(source)
    put_page(source, "/page.html", linking(source, "/late.xml", in_head=False))
    source.put("/late.xml", b"")
    source.answers["/late.xml"] = replace(source.answers["/late.xml"], status=503)

    events = judged(f"{source.url}/page.html", live=True)

    assert broken(events, "DI01") == []
    assert [event.uri for event in events if isinstance(event, Unreached)] == [
        f"{source.url}/late.xml"
    ]


@pytest.mark.parametrize(
    ("target", "expected"),
    [("capabilitylist.xml", []), ("resourcelist.xml", ["DI02"]), ("nothing.xml", ["DI02"])],
)
def test_the_headers_of_sampled_resources_lead_to_their_set(
    target: str, expected: list[str], source: TinySource
) -> None:
    offer(source)
    path = next(iter(FILES))
    link = f'<{source.url}/{target}>; rel="resourcesync"'
    answer = source.answers[path]
    source.answers[path] = replace(answer, headers={**answer.headers, "Link": link})

    events = judged(source.url, sample=SampleSize(percent=100.0))

    assert [rule for rule, _ in broken(events, "DI01", "DI02")] == expected
    assert [uri for _, uri in broken(events, "DI02")] == [source.url + path] * len(expected)


@pytest.mark.parametrize("target", ["http://[", "ftp://h.example/x", "javascript:x()", "\u20ac:"])
def test_a_link_to_what_is_no_address_is_no_crash(target: str, source: TinySource) -> None:
    offer_with_page(source)
    put_page(source, "/page.html", linking(source, target))

    events = judged(f"{source.url}/page.html", live=True)

    assert len(broken(events, "DI01")) + sum(isinstance(event, Unreached) for event in events) == 1


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("Sitemap: {}/resourcelist.xml", []),
        ("sitemap : {}/capabilitylist.xml", ["DI03"]),
        ("User-agent: *\nDisallow:\n\nSitemap: {}/plain.xml", []),
        ("Sitemap: {}/no-way-up.xml\nSitemap: {}/.well-known/resourcesync", ["DI03", "DI03"]),
        ("# Sitemap: {}/capabilitylist.xml", []),
    ],
)
def test_the_documents_that_robots_txt_names_are_judged(
    lines: str, expected: list[str], source: TinySource
) -> None:
    offer(source)
    source.put_document("/plain.xml", "", [])
    source.put_document(
        "/no-way-up.xml", '<rs:md capability="resourcelist" at="2026-01-02T00:00:00Z"/>', []
    )
    source.put("/robots.txt", lines.replace("{}", source.url).encode(), "text/plain")

    events = judged(source.url, live=True)

    assert [rule for rule, _ in broken(events, "DI03")] == expected
    assert not [event for event in events if isinstance(event, Unreached)]
