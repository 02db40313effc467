"""Files have the names that their URIs say; only where two clash, one yields."""

import random
from pathlib import Path

import pytest

from resourcesync.destination.change_log_reader import ChangeLogReader
from resourcesync.destination.reports import MirrorState
from resourcesync.errors import StorageError
from resourcesync.mirror_state.rows import ChangeLogPosition
from tests.support.crashes.killing import killed
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import OwnWorld, World


@pytest.fixture
def world(tmp_path: Path) -> OwnWorld:
    return World(tmp_path / "mirror")


def paths(world: OwnWorld) -> dict[str, str]:
    """The path of each copy, by the rest of its URI, as the files on the disk prove it."""
    owner = {body: uri.removeprefix(BASE) for uri, body in world.files().items()}
    return {owner[body]: path for path, body in world.home.files_on_disk().items()}


def publish(world: OwnWorld, *names: str) -> None:
    for name in names:
        world.source.put(name, f"content of /{name}")
    world.source.publish()


def contents(world: OwnWorld) -> set[str]:
    """The resources whose copies have their own content, which must be all that are here."""
    files = world.files()
    assert all(body.decode() == f"content of /{name(uri)}" for uri, body in files.items())
    return set(map(name, files))


def name(uri: str) -> str:
    return uri.removeprefix(BASE)


def aside(world: OwnWorld) -> list[str]:
    folder = world.folder / ".resourcesync/quarantine"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_file_of_somebody_else_at_the_new_name_is_kept_aside(world: OwnWorld) -> None:
    publish(world, "a")
    world.pull()
    (world.folder / "a!9").write_text("mine")
    publish(world, "a/b")

    world.pull()

    assert paths(world) == {"a": "a!9", "a/b": "a/b"}
    quarantine = world.folder / ".resourcesync/quarantine"
    assert "mine" in [(quarantine / name).read_text() for name in aside(world)]


def test_an_edited_copy_that_yields_keeps_its_edits(world: OwnWorld) -> None:
    publish(world, "a")
    world.pull()
    (world.folder / "a").write_text("edited")
    publish(world, "a/b")

    world.pull()

    assert (world.folder / "a!9").read_text() == "edited"
    assert not world.audit(method="stat").in_sync


@pytest.mark.parametrize(("here", "later"), [("a", "a/b"), ("a+b", "a%2Bb")])
@pytest.mark.parametrize("mode", ["auto", "baseline"])
def test_nothing_takes_the_path_of_a_copy_that_cannot_be_moved(
    world: OwnWorld, here: str, later: str, mode: str
) -> None:
    publish(world, here)
    world.pull()
    foreign = world.folder / f"{here}!9/mine"
    foreign.parent.mkdir()
    foreign.write_text("mine")
    publish(world, later)

    for _ in range(2):
        with pytest.raises(StorageError, match="a folder is in the way of a copy"):
            world.pull(mode=mode)
    before = (world.folder / here).read_text()
    foreign.unlink()
    foreign.parent.rmdir()
    world.pull(mode=mode)

    assert before == f"content of /{here}"
    assert contents(world) == {here, later}
    assert paths(world)[here] == f"{here}!9"
    assert not aside(world)
    assert world.in_sync()


def test_a_name_that_is_taken_by_a_folder_of_others_is_given_back_later(world: OwnWorld) -> None:
    publish(world, "a", "a/b")
    world.pull()
    (world.folder / "a/mine").write_text("mine")
    world.source.publish_deletion("a/b")
    world.pull(mode="baseline")

    assert world.pull(mode="baseline").state is MirrorState.IN_SYNC
    assert [fields["code"] for fields in world.told("warning")] == ["path-in-the-way"]
    assert not any(fields["status"] == "error" for fields in world.told("item"))
    before = world.home.files_on_disk()
    (world.folder / "a/mine").unlink()
    world.pull(mode="baseline")

    assert set(before) == {"a!9", "a/mine"}
    assert paths(world) == {"a": "a"}


def test_what_still_waits_to_be_fetched_yields_too(world: OwnWorld) -> None:
    publish(world, "a", "x")
    world.network.answers[BASE + "a"] = Answer(status=500)
    world.pull()
    publish(world, "a/b")
    world.pull()
    del world.network.answers[BASE + "a"]

    world.pull()

    assert paths(world) == {"a": "a!9", "a/b": "a/b", "x": "x"}
    assert world.in_sync()


def test_a_dry_run_moves_nothing_and_says_what_would_move(world: OwnWorld) -> None:
    publish(world, "a")
    world.pull()
    publish(world, "a/b")

    world.pull(dry_run=True)

    moved = [fields for fields in world.told("item") if fields["action"] == "move"]
    assert [(fields["was"], fields["path"]) for fields in moved] == [("a", "a!9")]
    assert paths(world) == {"a": "a"}


def test_the_moves_can_be_killed_at_any_moment(tmp_path: Path) -> None:
    deaths = 0
    for fuse in range(1, 40):
        world = World(tmp_path / f"m{fuse}")
        publish(world, "README", "a", "docs/", "v+", "x.html")
        world.pull()
        publish(world, "a/b", "docs/index.html", "v%2B")
        with killed(world.home, fuse, how=fuse % 3) as burnt:
            world.pull()
        deaths += burnt.is_burnt
        world.pull()
        assert paths(world) == {
            "README": "README",
            "a": "a!9",
            "a/b": "a/b",
            "docs/": "docs/!9",
            "docs/index.html": "docs/index.html",
            "v%2B": "v+",
            "v+": "v+!9",
            "x.html": "x.html",
        }
        assert world.audit().in_sync
        world.pull(mode="baseline")
        assert world.in_sync()
        if deaths != fuse:
            break
    assert deaths > 5


class Replica:
    """Another tree that gets the changes only, and keeps the digests of each path."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self._position: ChangeLogPosition | None = None

    def follow(self, world: OwnWorld) -> dict[str, str]:
        with world.destination() as destination:
            state = destination.read_only_session().state
            reader = ChangeLogReader(state=state, position=self._position)
            for change in reader.read_new():
                if change.was:
                    del self.files[change.was]
                if change.kind == "deleted":
                    del self.files[change.path]
                else:
                    is_here = change.kind == "updated" and not change.was
                    assert (change.path in self.files) is is_here
                    self.files[change.path] = change.digests
            self._position = reader.position
            return {copy.path: copy.digests for copy in state.copies()}


PIECES = ["a", "b", "a+b", "a%2Bb", "index.html", "%C3%A9", "a-b"]


@pytest.mark.parametrize("seed", range(12))
def test_names_depend_on_the_set_of_uris_and_not_on_what_came_when(
    tmp_path: Path, seed: int
) -> None:
    luck = random.Random(seed)
    world, replica = World(tmp_path / "mirror"), Replica()
    for round_ in range(6):
        some = [luck.choices(PIECES, k=luck.randint(1, 3)) for _ in range(luck.randint(1, 5))]
        for name in {"/".join(pieces) + luck.choice(["", "", "/"]) for pieces in some}:
            world.source.put(name, f"content of /{name}")
        if round_ and luck.random() < 0.5:
            for uri in luck.sample(sorted(world.source.originals.contents()), 1):
                world.source.remove(uri.removeprefix(BASE))
        world.source.publish()
        with killed(world.home, luck.randint(1, 60), how=luck.randrange(3)):
            world.pull()
        if luck.random() < 0.7:
            world.pull()
            assert world.in_sync()
            assert replica.follow(world) == replica.files
    world.pull()
    assert world.in_sync()
    assert replica.follow(world) == replica.files
    assert world.audit().in_sync
    assert len(world.home.files_on_disk()) == len(world.source.originals.contents())

    world.pull(mode="baseline")
    other = World(tmp_path / "other")
    for uri, body in world.source.originals.contents().items():
        other.source.put(uri.removeprefix(BASE), body)
    other.source.publish()
    other.pull()

    assert world.in_sync()
    assert paths(world) == paths(other)
    assert replica.follow(world) == replica.files
    assert not aside(world)
