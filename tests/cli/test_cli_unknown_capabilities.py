"""Capabilities that this version does not know: named, and in the way of nothing."""

from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import MIRRORED
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import TinySource

WELL_KNOWN = "/.well-known/resourcesync"


@pytest.fixture
def gifted(source: TinySource) -> TinySource:
    """Offer what nobody knows beside the Resource List: announced, unannounced, and broken."""
    source.put_document("/telepathy.xml", '<rs:md capability="telepathy"/>', [])
    source.put("/levitation.xml", b"no document at all")
    entries = [
        source.pointer("/telepathy.xml", "telepathy"),
        source.pointer("/levitation.xml", "levitation"),
        source.pointer("/resourcelist.xml", "resourcelist"),
        f"<url><loc>{source.url}/telepathy.xml</loc></url>",
        '<url><loc>http://[</loc><rs:md capability="telekinesis"/></url>',
    ]
    source.put_document("/capabilitylist.xml", '<rs:md capability="capabilitylist"/>', entries)
    return source


def test_in_an_index_of_descriptions_they_are_passed_over(gifted: TinySource) -> None:
    gifted.answers["/sd.xml"] = gifted.answers[WELL_KNOWN]
    parts = "".join(
        f"<sitemap><loc>{gifted.url}{name}</loc></sitemap>"
        for name in ("/telepathy.xml", "/sd.xml")
    )
    gifted.put(
        WELL_KNOWN,
        b'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        b' xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="description"/>'
        + parts.encode()
        + b"</sitemapindex>",
    )

    assert run(["pull", gifted.url, "museum"]) == 0

    assert files_of(Path("museum")) == MIRRORED
