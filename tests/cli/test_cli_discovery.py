"""The roads to a Source over real sockets: pages, robots.txt, other origins."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, MIRRORED, Said
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import TinySource

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
