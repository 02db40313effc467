"""The roads to a Source over real sockets: pages, robots.txt, other origins."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, MIRRORED, Said
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import Answer, TinySource

WELL_KNOWN = "/.well-known/resourcesync"


@pytest.fixture
def hidden(source: TinySource) -> TinySource:
    """Give a Source that says nothing at its well-known URI."""
    del source.answers[WELL_KNOWN]
    return source


@pytest.fixture
def other() -> Iterator[TinySource]:
    """Run a Source on another origin."""
    with TinySource() as running:
        running.offer(FILES)
        yield running


def test_a_page_leads_by_the_link_in_its_head(hidden: TinySource, said: Said) -> None:
    page = b"<!DOCTYPE html><html lang=en><link rel=resourcesync href=capabilitylist.xml><p>Hi"
    hidden.put("/", page, "text/html")

    assert run(["pull", hidden.url, "museum", "-n"]) == 0
    assert f"Found by  HTML link of {hidden.url}\n" in said.readouterr().out
    assert run(["pull", hidden.url, "museum"]) == 0
    assert files_of(Path("museum")) == MIRRORED


def test_robots_lead_to_the_list_of_resourcesync_among_sitemaps(
    hidden: TinySource, said: Said
) -> None:
    plain = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"></urlset>'
    hidden.put("/plain.xml", plain)
    hidden.put("/robots.txt", b"User-agent: *\r\nSitemap: /plain.xml\r\nsitemap: /resourcelist.xml")

    assert run(["pull", hidden.url, "museum", "-n"]) == 0
    assert f"Found by  robots.txt of {hidden.url}\n" in said.readouterr().out
    assert run(["pull", hidden.url, "museum"]) == 0
    assert files_of(Path("museum")) == MIRRORED


def test_what_was_tried_is_told_as_the_evidence(hidden: TinySource, said: Said) -> None:
    hidden.put("/", b"<html>", "text/html")

    assert run(["pull", hidden.url, "museum"]) == 5

    tried = [line for line in said.readouterr().err.splitlines() if hidden.url in line][1:7]
    assert [line.replace("tried", "").split(hidden.url, 1)[1] for line in tried] == [
        f"{WELL_KNOWN}  404",
        '  HTML, no link rel="resourcesync"',
        "/robots.txt  404",
        "/sitemap.xml  404",
        "/sitemap_index.xml  404",
        "/sitemap.xml.gz  404",
    ]


@pytest.mark.parametrize("place", ["/", "/robots.txt"])
def test_another_origin_is_not_asked_unless_it_is_allowed(
    hidden: TinySource, other: TinySource, said: Said, place: str
) -> None:
    target = f"{other.url}/resourcelist.xml"
    text = f"Sitemap: {target}" if place != "/" else f"<link rel=resourcesync href={target}>"
    hidden.put(place, f"<html>{text}".encode() if place == "/" else text.encode())

    assert run(["pull", hidden.url, "museum"]) == 5
    assert other.asked == []
    told = said.readouterr().err
    assert f"{target}  not requested: another origin" in told
    assert f"allow the other origin: --allow-origin {other.url}/\n" in told

    assert run(["pull", hidden.url, "museum", "--allow-origin", other.url]) == 0
    assert files_of(Path("museum")) == MIRRORED


@pytest.mark.parametrize("again", [["pull", "museum"], ["audit", "museum", "--method", "lists"]])
def test_an_origin_that_was_allowed_is_asked_again_without_saying_so(
    hidden: TinySource, other: TinySource, said: Said, again: list[str]
) -> None:
    link = f"<html><link rel=resourcesync href={other.url}/resourcelist.xml>"
    hidden.put("/", link.encode())
    assert run(["pull", hidden.url, "museum", "--allow-origin", other.url]) == 0
    Path("museum/objects/0003.txt").unlink()

    assert run(["repair", "museum"]) == 0, said.readouterr().err
    assert run(again) == 0, said.readouterr().err
    assert files_of(Path("museum")) == MIRRORED


def test_a_robots_file_that_is_late_is_not_taken_for_none(hidden: TinySource) -> None:
    hidden.put("/sitemap.xml", b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>')
    hidden.answers["/robots.txt"] = Answer(status=503)

    assert run(["pull", hidden.url, "museum", "--retries", "0"]) == 4
    assert not Path("museum").exists()


@pytest.mark.parametrize(
    "command",
    [("explore", "{}"), ("validate", "{}")],
    ids=lambda command: command[0],
)
def test_who_looks_at_a_source_is_led_to_an_allowed_origin_too(
    hidden: TinySource, other: TinySource, said: Said, command: tuple[str, ...]
) -> None:
    hidden.put("/robots.txt", f"Sitemap: {other.url}/resourcelist.xml".encode())
    words = [word.format(hidden.url) for word in command]

    assert run(words) == 5
    assert other.asked == []
    said.readouterr()

    assert run([*words, "--allow-origin", other.url]) in (0, 1)
    assert "/resourcelist.xml" in {asked.target for asked in other.asked}
    assert said.readouterr().err == ""


RSS_1 = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"></rdf:RDF>'


@pytest.mark.parametrize("command", [["pull", "museum"], ["explore"]])
def test_a_feed_in_a_format_that_is_not_read_is_named(
    hidden: TinySource, said: Said, command: list[str]
) -> None:
    hidden.put("/feed/", RSS_1)
    verb, *rest = command

    assert run([verb, f"{hidden.url}/feed/", *rest]) == 5

    error = said.readouterr().err
    assert "The document is an RSS 1.0 feed, which is not supported yet" in error
    assert "give the address of a sitemap (XML, text, RSS 2.0 or Atom)" in error
    assert "list.xml" not in error


def test_robots_that_name_such_a_feed_alone_lead_on_to_the_usual_places(
    hidden: TinySource, said: Said
) -> None:
    hidden.put("/robots.txt", b"Sitemap: /feed/")
    hidden.put("/feed/", RSS_1)
    hidden.put("/", b"<html>", "text/html")

    assert run(["pull", hidden.url, "museum"]) == 5
    error = said.readouterr().err
    assert "The document is an RSS 1.0 feed, which is not supported yet" in error

    hidden.put("/sitemap.xml", hidden.answers["/resourcelist.xml"].body)
    assert run(["pull", hidden.url, "museum"]) == 0
    assert files_of(Path("museum")) == MIRRORED


def test_a_text_that_is_no_sitemap_is_told_as_one_and_leads_nowhere_else(
    hidden: TinySource, said: Said
) -> None:
    hidden.put("/sitemap.txt", b"www.museum.example/a.html\n")

    assert run(["pull", f"{hidden.url}/sitemap.txt", "museum"]) == 5

    error = said.readouterr().err
    assert "The document is neither XML nor a text sitemap" in error
    assert "one absolute address on each line" in error
    assert {asked.target for asked in hidden.asked} <= {"/sitemap.txt", "/robots.txt"}


@pytest.mark.parametrize("path", ["/sitemap.xml", "/sitemap.txt"])
def test_a_page_in_the_place_of_a_sitemap_is_told_with_the_next_step(
    hidden: TinySource, said: Said, path: str
) -> None:
    hidden.put(path, b"<!doctype html><title>log in</title>", "text/html")

    assert run(["pull", hidden.url + path, "museum"]) == 5

    error = said.readouterr().err
    assert "open the address in a browser" in error
    assert "log in" in error


def test_of_feeds_and_sitemaps_in_robots_the_sitemaps_are_followed(
    hidden: TinySource, said: Said
) -> None:
    pages = "".join(f"{hidden.url}{path}\n" for path in ("/a.html",))
    hidden.put("/robots.txt", b"Sitemap: /feed.xml\nSitemap: /sitemap.txt\n")
    hidden.put("/feed.xml", b'<rss version="2.0"><channel/></rss>')
    hidden.put("/sitemap.txt", pages.encode())
    hidden.put("/", b"<html>", "text/html")

    run(["pull", hidden.url, "museum", "--dry-run"])

    told = said.readouterr().out
    assert f"{hidden.url}/sitemap.txt" in told
    assert "its feeds list recent pages only" in " ".join(told.split())


@pytest.mark.parametrize(
    "body",
    [
        b"Read https://museum.example/a.html",
        b"<feeds/>",
        b"",
    ],
)
def test_what_is_none_of_these_formats_is_not_called_one(
    hidden: TinySource, said: Said, body: bytes
) -> None:
    hidden.put("/page", body)

    assert run(["pull", f"{hidden.url}/page", "museum"]) == 5
    assert "which is not read" not in said.readouterr().err


def test_the_lists_of_the_whole_site_are_named_where_a_page_leads_to_none(
    source: TinySource, said: Said
) -> None:
    source.put("/about/", b"<html><title>About</title></html>", "text/html")

    assert run(["pull", f"{source.url}/about/", "museum"]) == 0
    warning = said.readouterr().err
    assert "warning[whole-site]: no list was found at the address" in warning
    assert f"(well-known URI of {source.url})" in warning
    assert "select what is below the address: --include '/about/**'" in warning

    assert run(["pull", "museum"]) == 0
    assert "whole-site" not in said.readouterr().err
    assert run(["pull", source.url, "other"]) == 0
    assert "whole-site" not in said.readouterr().err


@pytest.mark.parametrize("path", ["/no/such/", "/no/such"])
def test_the_whole_site_is_not_mirrored_for_an_address_that_it_does_not_have(
    path: str, source: TinySource, said: Said
) -> None:
    assert run(["pull", f"{source.url}{path}", "museum"]) == 5

    lines = said.readouterr().err.splitlines()
    assert lines[0] == f"error[source-not-found]: the server does not have {source.url}{path}"
    assert lines[-2].endswith(
        f"check the address, or follow the whole site: resourcesync pull {source.url}/"
    )
    assert not Path("museum/.resourcesync/state.db").exists()
