"""Three Sources of the founding documents over sixty days, pulled daily and with missed days."""

import random
from collections import Counter
from pathlib import Path

import pytest

from resourcesync.destination.reports import MirrorState
from tests.support.simulated.days import live_days
from tests.support.worlds.daily_source import DailySource, Form

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
