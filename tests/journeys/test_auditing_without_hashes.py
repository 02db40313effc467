"""An audit claims no more than it proved: without a hash in the list, accuracy is not known."""

import re
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said, rows
from tests.support.servers.tiny_source import TinySource
from tests.support.worlds.dated_server import DatedServer
from tests.support.worlds.site_maps import urlset
from tests.support.worlds.world import World

PAGES = ("a", "b", "c")


@pytest.fixture
def world(tmp_path: Path) -> World[DatedServer]:
    world = World(tmp_path / "mirror", DatedServer())
    for name in PAGES:
        world.source.edit(name, "1")
    world.clock.advance(hours=1)
    world.source.sitemap = dict.fromkeys(PAGES, "2025-01-01")
    world.pull()
    return world


def test_a_damaged_copy_bounds_what_is_accurate(world: World[DatedServer]) -> None:
    place = next(path for path in world.folder.iterdir() if path.is_file())
    place.write_bytes(b"damaged")
    report = world.audit()
    assert report.accuracy == pytest.approx(2 / 3)
    assert report.unproven == 2


@pytest.mark.founding("0.9 §2.2.2", "Without hashes, an audit tells coverage only", "`audit`")
def test_an_audit_of_a_plain_sitemap_says_that_its_accuracy_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    with TinySource() as source:
        uris = [f"{source.url}/{name}.html" for name in PAGES]
        for name in PAGES:
            source.put(f"/{name}.html", b"page", "text/html")
        source.put("/sitemap.xml", urlset(*((uri, "2025-01-01") for uri in uris)), "text/xml")
        assert run(["pull", source.url, "m"]) == 0
        source.put("/b.html", b"edited", "text/html")
        capsys.readouterr()
        assert run(["audit", "m"]) == 0
        said = capsys.readouterr().out
        assert run(["audit", "m", "--json"]) == 0
        end = rows(capsys)[-1]
        assert run(["audit", "m", "--method", "remote"]) == 1
    unknown = (
        "accuracy not known: the Source lists no hash; check them at the server: --method remote"
    )
    assert re.search(rf"In sync   coverage 100 % \(3 of 3\), {unknown}  ", said)
    assert (end["accuracy"], end["unproven"], end["in_sync"]) == (None, 3, True)
    assert "accuracy 66.7 % (2 of 3)" in capsys.readouterr().out


def test_a_list_with_some_hashes_says_of_how_many_it_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    with TinySource() as source:
        bodies = {f"/{name}.html": b"page" for name in PAGES}
        source.offer(bodies)
        entries = [source.entry(target, body) for target, body in bodies.items()]
        entries[0] = re.sub(' hash="[^"]*"', "", entries[0])
        source.offer_entries(entries)
        assert run(["pull", source.url, "m"]) == 0
        capsys.readouterr()
        assert run(["audit", "m"]) == 0
    said = capsys.readouterr().out
    assert (
        "accuracy not known: 1 of 3 not verifiable (the Source lists no hash);"
        " check them at the server: --method remote" in said
    )
