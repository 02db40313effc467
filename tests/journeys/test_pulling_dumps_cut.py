"""A package that comes cut short: once more past all caches, and then it is unusable."""

from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.errors import PackageError
from resourcesync.ports import Request
from tests.support.dump_world import DumpWorld, Packed, many, zipped
from tests.support.memory_fetcher import Answer
from tests.support.world import BASE


@pytest.fixture
def world(tmp_path: Path) -> DumpWorld:
    return DumpWorld(tmp_path / "mirror")


@pytest.mark.parametrize("heals", [True, False])
def test_a_package_that_comes_cut_short_is_asked_for_once_more_past_all_caches(
    world: DumpWorld, *, heals: bool
) -> None:
    told = many(100)
    body = zipped(told)
    world.dump(Packed(name="0.zip", body=body))
    asked: list[bool] = []

    def cut(request: Request) -> Answer:
        asked.append(request.uncached)
        return Answer(body=body if heals and request.uncached else body[: len(body) // 2])

    world.answers[f"{BASE}0.zip"] = cut
    if heals:
        assert world.pull().state is MirrorState.IN_SYNC
    else:
        with pytest.raises(PackageError):
            world.pull()
        assert world.files() == {}
    assert asked == [False, True]
