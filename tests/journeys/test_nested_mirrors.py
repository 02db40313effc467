"""No Source reaches a mirror's own folder, wherever it is, and no mirror is in another one."""

import sqlite3
from pathlib import Path

import pytest

from resourcesync import Mirror, MirrorState
from resourcesync.cli.main import run
from resourcesync.errors import ConfigurationError
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.embedding import tiny_source
from tests.support.sources.several_sets import SETS, offer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

source = tiny_source


def filled(folder: Path, *names: str) -> World[PublishedSource]:
    world = World(folder)
    for name in names:
        world.source.put(name, f"content of {name}")
    world.source.publish()
    return world


@pytest.mark.parametrize("rule", ["", "{rest*} => deep/{rest*}"])
def test_what_looks_like_an_own_folder_is_stored_beside_it_at_any_depth(
    tmp_path: Path, rule: str
) -> None:
    names = ["a/.resourcesync/state.db", "A/.ReSourceSync/x", ".resourcesync/x", "b/.resourcesync"]
    world = filled(tmp_path / "mirror", *names)

    report = world.pull(mapper=rule)

    assert (report.state, report.created) == (MirrorState.IN_SYNC, len(names))
    here = {path.lower() for path in world.home.files_on_disk()}
    assert len(here) == len(names)
    assert not any(name == ".resourcesync" for path in here for name in path.split("/"))
    assert world.in_sync()
    assert world.audit().in_sync
    assert world.pull(mode="baseline").listed.unchanged == len(names)


def test_a_rule_that_names_the_own_folder_gives_another_one(tmp_path: Path) -> None:
    world = filled(tmp_path / "mirror", "x/state.db", "y/.resourcesync")

    assert world.pull(mapper="{a}/{b} => {b}/.ReSourceSync/{a}").state is MirrorState.IN_SYNC
    assert set(world.home.files_on_disk()) == {
        "state.db!8/!2eReSourceSync/x!9",
        "!2eresourcesync/!2eReSourceSync/y!9",
    }


@pytest.mark.parametrize("path", ["a/.resourcesync/x", "a/.ReSourceSync", "../beside/x"])
def test_a_path_of_a_forged_state_costs_its_resource_alone(tmp_path: Path, path: str) -> None:
    world = filled(tmp_path / "mirror", "a/able", "a/bad")
    world.pull()
    database = sqlite3.connect(world.folder / ".resourcesync/state.db")
    with database:
        database.execute("UPDATE copy SET path = ? WHERE uri LIKE '%bad'", (path,))
    database.close()
    world.source.put("a/able", "newer")
    world.source.put("a/bad", "newer")
    world.source.publish()

    report = world.pull()

    assert (report.updated, report.failed) == (1, 1)
    failed = [row for row in world.told("item") if row["status"] == "error"]
    assert [row["code"] for row in failed] == ["path-in-the-way"]
    assert (world.folder / "a/able").read_text() == "newer"
    assert not (world.folder / path).exists()


@pytest.mark.parametrize("below", ["inner", "a/b/inner"])
def test_no_mirror_is_made_around_another_one(
    source: TinySource, tmp_path: Path, below: str
) -> None:
    inner = Mirror(source.url, tmp_path / "outer" / below)
    inner.pull()

    with pytest.raises(ConfigurationError, match="there is a mirror in") as caught:
        Mirror(source.url, tmp_path / "outer").pull()

    assert caught.value.code == "nested-mirror"
    assert str(inner.folder) in caught.value.message
    assert not (tmp_path / "outer/.resourcesync").exists()
    assert inner.pull().state is MirrorState.IN_SYNC


@pytest.mark.founding(
    "0.9 §9.1", "A Destination takes some or all of several sets", "`pull --set`, `--all-sets`"
)
def test_the_mirrors_of_sets_are_in_no_mirror_and_nothing_is_made_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with TinySource() as source:
        offer(source, SETS)
        assert run(["pull", source.url, "museum", "--set", "texts", "--set", "maps"]) == 0
        assert run(["pull", source.url, "museum", "--all-sets"]) == 0
        assert run(["pull", "museum"]) == 0
        assert run(["pull", "museum/maps"]) == 0
        assert run(["pull", source.url, "museum/maps/more", "--all-sets"]) == 2
        assert run(["pull", source.url, "museum/maps/more", "--set", "maps"]) == 2
    assert not Path("museum/maps/more").exists()
