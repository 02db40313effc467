"""Entries that lead out of the mirror, or clash in it."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from tests.support.documents.written import listed
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World


def resource_list(*locs: str) -> Answer:
    urls = (f"<url><loc>{loc}</loc></url>" for loc in locs)
    return Answer(body=listed("resourcelist", "2026-01-01T00:00:00Z", urls))


@pytest.mark.parametrize(
    "loc",
    [
        BASE + "../../x/evil.txt",
        BASE + "d/%2e%2e/%2e%2e/evil.txt",
        BASE + "..%5c..%5cevil.txt\\..\\x",
        BASE + "a%00b",
        "http://other.example/evil.txt",
        "file:///etc/passwd",
        "https://source.example/evil.txt",
        "//other.example/relative",
        "http://user:secret@source.example/x",
    ],
)
def test_an_entry_that_leads_elsewhere_is_refused_and_the_rest_is_fetched(
    tmp_path: Path, loc: str
) -> None:
    world = World(tmp_path / "in" / "mirror")
    world.source.put("good.html", "good")
    world.network.answers[BASE + "list.xml"] = resource_list(loc, BASE + "good.html")

    report = world.pull(BASE + "list.xml")

    assert (report.created, report.listed.refused, report.state) == (1, 1, MirrorState.BEHIND)
    assert (
        world.asked_resources() == ["list.xml", "good.html"]
        or world.asked_resources()[-1] == "good.html"
    )
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} >= {"good.html"}
    assert not list(tmp_path.rglob("*evil*"))


def test_names_that_clash_in_a_folder_all_find_a_place(tmp_path: Path) -> None:
    world = World(tmp_path / "mirror")
    names = ["a", "a/", "a/b", "A", "dir/", "x?y", "x%3Fy", "CON", "a//b"]
    for name in names:
        world.source.put(name, f"content of {name}")
    world.network.answers[BASE + "list.xml"] = resource_list(*(BASE + name for name in names))

    report = world.pull(BASE + "list.xml")

    assert (report.created, report.listed.refused, report.failed) == (len(names), 0, 0)
    assert world.in_sync()
