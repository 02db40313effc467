"""Packages and caches: one that comes cut short, and one that nothing proves to be new."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import PackageError
from resourcesync.ports import FetchRequest
from tests.support.worlds.dump_source import DumpSource, Packed, many, zipped
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.world import World


@pytest.fixture
def world(tmp_path: Path) -> World[DumpSource]:
    return World(tmp_path / "mirror", DumpSource())


@pytest.mark.parametrize("heals", [True, False])
def test_a_package_that_comes_cut_short_is_asked_for_once_more_past_all_caches(
    world: World[DumpSource], *, heals: bool
) -> None:
    told = many(100)
    body = zipped(told)
    world.source.dump(Packed(name="0.zip", body=body))
    asked: list[bool] = []

    def cut(request: FetchRequest) -> Answer:
        asked.append(request.uncached)
        return Answer(body=body if heals and request.uncached else body[: len(body) // 2])

    world.network.answers[f"{BASE}0.zip"] = cut
    if heals:
        assert world.pull().state is MirrorState.IN_SYNC
    else:
        with pytest.raises(PackageError):
            world.pull()
        assert world.files() == {}
    assert asked == [False, True]
