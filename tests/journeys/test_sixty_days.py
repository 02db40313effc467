"""Mirrors over sixty days, with missed ones, and over more than a year that nobody looks at."""

import random
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from resourcesync.source.paging import PageLimits
from resourcesync.source.publication_settings import Policy, decode_settings
from tests.support.simulated.days import live_days
from tests.support.worlds.daily_source import DailySource, Form
from tests.support.worlds.dated_server import DatedServer
from tests.support.worlds.world import World

SEEDS = 2
MISSED = 0.2


NIGHT = pytest.mark.night


@pytest.mark.founding(
    "D-Lib §3", "arXiv: daily Change Lists, a Resource List at intervals", "`pull` from cron"
)
@pytest.mark.parametrize(
    ("form", "missed"),
    [
        pytest.param("daily", 0, marks=NIGHT),
        ("daily", MISSED),
        ("window", 0),
        pytest.param("window", MISSED, marks=NIGHT),
        pytest.param("newest-first", 0, marks=NIGHT),
        ("newest-first", MISSED),
    ],
)
def test_no_copy_is_lost_in_sixty_days_and_no_day_is_called_in_sync_that_is_not(
    tmp_path: Path, form: Form, missed: float
) -> None:
    lives = [
        live_days(tmp_path / f"{seed}", DailySource(form), random.Random(f"{seed}"), missed=missed)
        for seed in range(SEEDS)
    ]

    days = Counter(day.state for life in lives for day in life.pulled)
    in_sync, behind = days[MirrorState.IN_SYNC], days[MirrorState.BEHIND]
    print(
        f"| {form} | {missed:.0%} missed | {in_sync} | {behind} | {sum(x.missed for x in lives)} |"
    )
    assert [life.lies for life in lives] == [[]] * SEEDS
    assert [life.late for life in lives] == [[]] * SEEDS
    if form != "daily":
        assert behind == 0


DAY = 86_400.0
CLOSING = Policy(rotate=DAY, keep=14 * DAY, rebase_every=7 * DAY)
DEFAULT = Policy(keep=decode_settings(None).keep_seconds / 36.5)
"""The default of a Source that is too large for a Resource List with each change; days, not years.
"""
WRONG = {10: 20_000, 14: -2, 18: -400}
"""Days on which our clock is so many days behind, and is right again in the next hour."""


@pytest.mark.parametrize(
    ("days", "pulls"), [(40, 1), pytest.param(400, 24, marks=[pytest.mark.night])]
)
@pytest.mark.parametrize("policy", [CLOSING, DEFAULT], ids=["closing", "default"])
@pytest.mark.timeout(3_600)
def test_what_is_stored_depends_on_the_resources_and_not_on_their_age(
    tmp_path: Path, days: int, pulls: int, policy: Policy
) -> None:
    luck, world = random.Random(days), World(tmp_path, DatedServer())
    source = world.source
    source.policy, source.limits = policy, PageLimits(max_entries=20)
    for number in range(50):
        source.put(f"{number}", f"{number}")
    sizes, begin = list[tuple[int, int, int]](), world.clock.now()
    for hour in range(24 * days):
        day = hour // 24
        world.clock.set(begin + timedelta(hours=hour))
        if hour % 6 == 0:
            source.put(f"{luck.randrange(50)}", f"{hour}")
            source.remove(f"{luck.randrange(50)}")
            source.publish()
        if hour % (24 // pulls):
            continue
        world.clock.advance(seconds=600)
        if wrong := timedelta(days=WRONG.get(day, 0) if hour % 24 == 0 else 0):
            right, world.source.ahead = world.clock.now(), wrong
            world.clock.set(right - wrong)
            assert world.pull(trash=7 * DAY).state is MirrorState.BEHIND
            world.source.ahead = timedelta()
            world.clock.set(right)
        else:
            assert world.pull(trash=7 * DAY).state is MirrorState.IN_SYNC
            assert world.in_sync()
        if hour % 24 == 0:
            with world.state() as state:
                documents = state.value(int, "SELECT count(*) FROM document") or 0
            trash = list((world.folder / ".resourcesync/trash").iterdir())
            sizes.append((documents, len(trash), len(list(source.documents.names()))))

    half = len(sizes) // 2
    for column in zip(*sizes, strict=True):
        assert max(column[half:]) <= 1.5 * max(column[:half])
    assert (world.folder / ".resourcesync/state.db").stat().st_size < 4 << 20
    assert not list((world.folder / ".resourcesync/tmp").iterdir())
    with world.state() as state:
        assert bool(state.change_bounds()[0]) == (days > 90)
