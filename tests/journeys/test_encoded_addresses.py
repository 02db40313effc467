"""Addresses that no URI may be, and that every browser reads in one way, are read so."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.discovery.uris import normalise, percent_encode
from resourcesync.errors import OutOfScopeError
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.site_maps import urlset
from tests.support.worlds.world import World

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
