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
READ = {
    "\u00e4/\u00d6l.html": "%C3%A4/%C3%96l.html",
    "a b.html": "a%20b.html",
    'q?x="1"|{2}^': "q?x=%221%22%7C%7B2%7D%5E",
    "\u6c34%E6%B0%B4?\u6c34": "%E6%B0%B4%E6%B0%B4?%E6%B0%B4",
    "%7e\u00e9": "~%C3%A9",
    "a[1]/b.html?c[]=2": "a%5B1%5D/b.html?c%5B%5D=2",
}
NOT_READ = ("a\\b\u00e4", "100%\u00e4", "\u00e4/../b", "%00\u00e4")


@pytest.mark.parametrize(("written", "uri"), READ.items())
def test_a_page_is_fetched_and_known_by_its_encoded_address(
    tmp_path: Path, written: str, uri: str
) -> None:
    world = World(tmp_path / "mirror")
    world.source.put(uri, "body")
    world.network.answers[BASE + uri.replace("~", "%7e")] = Answer(body=b"body")
    for lists in ((written,), (uri, written)):  # the same resource, written in two ways
        world.network.answers[SITEMAP] = Answer(body=urlset(*((BASE + name, "") for name in lists)))

        report = world.pull(SITEMAP)

        assert (report.state, report.resources, report.listed.refused) == (
            MirrorState.IN_SYNC,
            1,
            0,
        )
        assert set(world.files()) == {BASE + uri}
        told = [
            mapping["message"]
            for mapping in world.told("warning")
            if mapping["code"] == "uris-encoded"
        ]
        assert [repr(BASE + written) in str(item) for item in told] == [True]


def test_such_addresses_are_read_among_many_others(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    plain = [f"{number}/\u00e4" if number % 50 == 7 else f"{number}.html" for number in range(400)]
    for name in plain:
        world.source.put(name.replace("\u00e4", "%C3%A4"), name)
    world.network.answers[SITEMAP] = Answer(body=urlset(*((BASE + name, "2026") for name in plain)))

    report = world.pull(SITEMAP)

    assert (report.created, report.listed.refused, report.state) == (400, 0, MirrorState.IN_SYNC)
    assert world.in_sync()


@pytest.mark.parametrize("written", NOT_READ)
def test_what_is_read_in_several_ways_is_refused(tmp_path: Path, written: str) -> None:
    world = World(tmp_path / "mirror")
    world.network.answers[SITEMAP] = Answer(body=urlset((BASE + written, "")))

    assert world.pull(SITEMAP).listed.refused == 1
    assert world.asked_resources() == []


@pytest.mark.parametrize(
    ("written", "uri"),
    [
        ("http://B\u00fccher.example/\u00e4", "http://xn--bcher-kva.example/%C3%A4"),
        ("https://\u4f8b\u3048.jp:8443/", "https://xn--r8jz45g.jp:8443/"),
        ("http://a.example/x", "http://a.example/x"),
        ("http://[2001:DB8::1]/[x]", "http://[2001:db8::1]/%5Bx%5D"),
        ("http://[2001:db8::1]:8080/x", "http://[2001:db8::1]:8080/x"),
    ],
)
def test_a_host_beyond_ascii_is_known_by_its_other_name(written: str, uri: str) -> None:
    assert normalise(percent_encode(written)) == uri
    assert percent_encode(uri) is uri


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
