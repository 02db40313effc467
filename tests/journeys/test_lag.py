"""Lag: how long nobody knows whether a mirror is in sync. A quiet Source adds nothing to it."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resourcesync.app.mirror_home import read_status
from resourcesync.destination.reports import MirrorState
from resourcesync.destination.scope_and_filters import Filters
from resourcesync.errors import SourceUnavailableError
from tests.support.worlds.network import BASE, Answer
from tests.support.worlds.published_source import PublishedSource
from tests.support.worlds.world import World

DAY = 86_400
LIST = f"{BASE}resourcesync/changelist.xml"


def lag(world: World[PublishedSource]) -> float | None:
    since = read_status(world.folder).in_sync_at
    return None if since is None else (world.clock.now() - since).total_seconds()


def refuse(world: World[PublishedSource]) -> None:
    error = SourceUnavailableError("down", uri=BASE)
    world.network.answers |= dict.fromkeys((LIST, f"{BASE}resourcesync/capabilitylist.xml"), error)
    world.network.answers[f"{BASE}.well-known/resourcesync"] = error


def test_other_filters_have_no_lag_until_the_mirror_was_in_sync_by_them(
    world: World[PublishedSource],
) -> None:
    world.pull()
    world.clock.advance(seconds=600)
    refuse(world)
    with pytest.raises(SourceUnavailableError):
        world.pull(filters=Filters(include=("/objects/**",)))
    assert lag(world) is None

    world.network.answers.clear()
    world.pull()
    assert lag(world) == pytest.approx(0, abs=60)


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(days=st.lists(st.sampled_from(["quiet", "change", "lost", "down"]), max_size=5))
def test_the_lag_starts_anew_with_each_run_that_ends_in_sync_and_with_no_other(
    tmp_path_factory: pytest.TempPathFactory, days: list[str]
) -> None:
    world = World(tmp_path_factory.mktemp("lag") / "mirror")
    world.source.publish_file("a.html", "a")
    world.pull()
    known = [read_status(world.folder).in_sync_at]
    for number, day in enumerate(days):
        world.clock.advance(seconds=DAY)
        world.network.answers.clear()
        if day in ("change", "lost"):
            world.source.publish_file(f"{number}.html", day)
        if day == "lost":
            world.network.answers[f"{BASE}{number}.html"] = Answer(status=404)
        if day == "down":
            refuse(world)
        began, good = world.clock.now(), False
        try:
            good = world.pull().state is MirrorState.IN_SYNC
        except SourceUnavailableError:
            assert day == "down"
        known.append(began if good else known[-1])
        assert read_status(world.folder).in_sync_at == known[-1]
        assert good == (day not in ("lost", "down"))
    assert all(
        moment is not None and other is not None and moment <= other
        for moment, other in pairwise(known)
    )
