"""No Source reaches a mirror's own folder, wherever it is, and no mirror is in another one."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync import Mirror, MirrorState
from resourcesync.adapters.mirror.mirror_folder import MirrorFolder
from resourcesync.cli.main import run
from resourcesync.errors import ConfigurationError, StorageError
from resourcesync.ports import CopyMove, CopyRemoval
from tests.support.servers.tiny_source import TinySource
from tests.support.sources.embedding import EARLY, FILES
from tests.support.sources.several_sets import SETS, offer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World


@pytest.fixture
def source() -> Iterator[TinySource]:
    with TinySource() as running:
        running.offer(FILES, at=EARLY)
        yield running


def filled(folder: Path, *names: str) -> World[PublishedSource]:
    world = World(folder)
    for name in names:
        world.source.put(name, f"content of {name}")
    world.source.publish()
    return world


def forged(folder: Path, place: str) -> dict[str, bytes]:
    """The own files of a mirror with a file in its trash that is somewhere else."""
    world = filled(folder, "a", "b")
    world.pull()
    world.source.remove("a")
    world.source.publish()
    assert world.pull().deleted == 1
    own = folder / ".resourcesync"
    database = sqlite3.connect(own / "state.db")
    with database:
        database.execute("UPDATE trash SET place = ?", (place,))
    database.close()
    return {name: (own / name).read_bytes() for name in ("state.db", "marker")}


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

    report = world.pull(mapper="{a}/{b} => {b}/.ReSourceSync/{a}")

    assert report.state is MirrorState.IN_SYNC
    assert set(world.home.files_on_disk()) == {
        "state.db!8/!2eReSourceSync/x!9",
        "!2eresourcesync/!2eReSourceSync/y!9",
    }


def test_a_source_cannot_replace_the_state_of_a_mirror_in_its_mirror(tmp_path: Path) -> None:
    outer, inner = World(tmp_path / "outer"), filled(tmp_path / "outer/inner", "a")
    inner.pull()  # made before mirrors in mirrors were refused
    victim = tmp_path / "victim"
    victim.write_text("of somebody else")
    own = {path.name: path.read_bytes() for path in inner.folder.glob(".resourcesync/*.*")}
    for name, content in forged(tmp_path / "forged", "../../../../victim").items():
        outer.source.put(f"inner/.resourcesync/{name}", content)
        outer.source.put(f"inner/.resourcesync./{name}", content)
    outer.source.publish()

    assert outer.pull().created == 4

    now = {path.name: path.read_bytes() for path in inner.folder.glob(".resourcesync/*.*")}
    assert now == own
    inner.clock.advance(hours=24 * 40)
    assert inner.pull().state is MirrorState.IN_SYNC
    assert victim.exists()
    assert not list((outer.folder / ".resourcesync/quarantine").iterdir())


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


@pytest.mark.parametrize("name", ["inner/.resourcesync/tmp", "../beside"])
def test_no_folder_is_removed_where_no_copy_can_be(tmp_path: Path, name: str) -> None:
    world = filled(tmp_path / "mirror", "a")
    world.pull()
    folder = world.folder / name
    folder.mkdir(parents=True)

    with MirrorFolder(world.folder, world.clock) as mirror:
        assert mirror.copies is not None
        (removed,) = mirror.copies.remove([CopyRemoval(path=f"{name}/x", signature="")], "")
        mirror.copies.move([CopyMove(path=f"{name}/x", to="y", signature="")])

    assert isinstance(removed, StorageError)
    assert folder.is_dir()


# --- a mirror in a mirror --------------------------------------------------------------------


@pytest.mark.parametrize("below", ["inner", "a/b/inner"])
def test_no_mirror_is_made_in_another_one(source: TinySource, tmp_path: Path, below: str) -> None:
    outer = Mirror(source.url, tmp_path / "outer")
    outer.pull()
    inner = outer.folder / below

    for folder in (inner, link_to(outer.folder, tmp_path / "link") / below):
        with pytest.raises(ConfigurationError, match="is in another mirror") as caught:
            Mirror(source.url, folder).pull()
        assert caught.value.code == "nested-mirror"
        assert str(outer.folder) in caught.value.message
    assert not inner.exists()
    assert outer.pull().state is MirrorState.IN_SYNC


def link_to(folder: Path, link: Path) -> Path:
    link.symlink_to(folder)
    return link


def test_a_mirror_that_is_in_another_one_goes_on_when_it_is_moved_out(
    source: TinySource, tmp_path: Path
) -> None:
    inner = tmp_path / "outer/inner"
    Mirror(source.url, inner).pull()
    Mirror(source.url, tmp_path / "beside").pull()
    (tmp_path / "beside/.resourcesync").rename(tmp_path / "outer/.resourcesync")

    with pytest.raises(ConfigurationError, match="is in another mirror") as caught:
        Mirror(None, inner).pull()
    assert "moved out" in caught.value.hint
    assert Mirror(None, tmp_path / "outer").pull().state is MirrorState.IN_SYNC

    moved = inner.rename(tmp_path / "moved")
    assert Mirror(None, moved).pull().listed.unchanged == len(FILES)


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


def test_mirrors_beside_each_other_and_full_folders_are_no_matter(
    source: TinySource, tmp_path: Path
) -> None:
    (tmp_path / "a/deep/folder").mkdir(parents=True)
    (tmp_path / "a/loop").symlink_to(tmp_path)
    (tmp_path / "a/file").write_text("ours")
    Mirror(source.url, tmp_path / "b").pull()

    assert Mirror(source.url, tmp_path / "a").pull().state is MirrorState.IN_SYNC
    assert Mirror(source.url, tmp_path / "ab").pull().state is MirrorState.IN_SYNC


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
