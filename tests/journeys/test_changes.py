"""Whoever follows a mirror's changes ends up with what the mirror has."""

import random
from pathlib import Path

import pytest

from resourcesync.adapters.mirror.consumer_positions import ConsumerFiles
from resourcesync.adapters.mirror.own_folder import STATE_FILE
from resourcesync.destination.change_log_reader import ChangeLogReader
from resourcesync.errors import ConfigurationError, DiscontinuityError
from resourcesync.mirror_state import change_log
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import ChangeLogPosition
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World


class Follower:
    """A program that keeps an index of the mirror: the digest of each resource."""

    def __init__(self) -> None:
        self.index: dict[str, str] = {}
        self.position: ChangeLogPosition | None = None

    def read(self, world: World[PublishedSource]) -> list[str]:
        told = []
        with world.destination() as destination:
            reader = ChangeLogReader(
                state=destination.read_only_session().state, position=self.position
            )
            for change in reader.read_new():
                told.append(f"{change.kind} {change.uri.removeprefix(BASE)}")
                if change.kind == "deleted":
                    del self.index[change.uri]
                else:
                    self.index[change.uri] = change.digests
        self.position = reader.position
        return told


def held(world: World[PublishedSource]) -> dict[str, str]:
    with world.destination() as destination:
        return {copy.uri: copy.digests for copy in destination.read_only_session().state.copies()}


@pytest.mark.parametrize("seed", range(6))
def test_a_follower_has_what_the_mirror_has_after_any_life(
    world: World[PublishedSource], seed: int
) -> None:
    chance = random.Random(seed)
    eager, lazy = Follower(), Follower()
    for _ in range(8):
        for _ in range(chance.randrange(6)):
            name = f"objects/{chance.randrange(45):04}.html"
            if chance.random() < 0.3 and BASE + name in world.source.originals.contents():
                world.source.remove(name)
            else:
                world.source.put(name, chance.choice(["one", "two", "three"]))
        world.network.answers = (
            {f"{BASE}objects/0007.html": Answer(status=404)} if chance.random() < 0.4 else {}
        )
        world.source.publish()
        mode = chance.choice(["auto", "auto", "baseline"])
        world.pull(mode=mode)
        if chance.random() < 0.4:
            next(path for path in world.folder.glob("objects/*.html")).unlink()
            world.repair()
        eager.read(world)
        assert eager.index == held(world)
        if chance.random() < 0.3:
            lazy.read(world)
    lazy.read(world)

    assert lazy.index == eager.index == held(world)


def test_who_stores_the_position_of_each_change_gets_none_twice(
    world: World[PublishedSource],
) -> None:
    position: ChangeLogPosition | None = None
    for told in (held, lambda _: {f"{BASE}objects/9999.html": ""}):
        world.source.publish()
        world.pull()
        with world.destination() as destination:
            state = destination.read_only_session().state
            reader, found = ChangeLogReader(state=state, position=position), []
            for change in reader.read_new():
                found.append(change.uri)
                position = reader.position
        assert found == sorted(told(world))
        world.source.put("objects/9999.html", "after all others")


def test_a_cursor_that_cannot_be_written_stays(tmp_path: Path) -> None:
    consumers = ConsumerFiles(tmp_path)
    consumers.acknowledge("index", ChangeLogPosition(7, 1))

    for name in ("", "a/b", "..", "x" * 65, "a\n"):
        with pytest.raises(ConfigurationError):
            consumers.acknowledge(name, ChangeLogPosition(9, 1))

    assert consumers.position("index") == ChangeLogPosition(7, 1)
    assert [path.name for path in (tmp_path / "consumers").iterdir()] == ["index.json"]


def test_changes_that_are_forgotten_while_they_are_read_are_missed_aloud(
    world: World[PublishedSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pull()
    path = world.folder / ".resourcesync" / STATE_FILE
    with SqliteMirrorState(path, read_only=True) as state:
        reader = ChangeLogReader(state=state, position=ChangeLogPosition(0))
        following = reader.read_new()
        told = [next(following).seq]
        monkeypatch.setattr(change_log, "MAX_CHANGES", 1)
        for text in ("one", "two", "three"):
            world.clock.advance(seconds=5)
            world.source.publish_file("objects/0001.html", text)
            world.pull()

        with pytest.raises(DiscontinuityError):
            told.extend(change.seq for change in following)
        assert told == list(range(1, len(told) + 1))
        assert reader.position is not None
        assert reader.position.number == told[-1]
