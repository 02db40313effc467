"""When something is due again, and how long an outage lasts by it."""

import re
from datetime import UTC, datetime, timedelta
from math import ceil
from pathlib import Path
from random import Random
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.errors import ConfigurationError
from resourcesync.watch.scheduler import (
    Cron,
    Every,
    JobKind,
    JobOutcome,
    JobStatus,
    MirrorJob,
    MirrorSchedule,
    Now,
    Scheduler,
)

_MONDAY = datetime(2026, 11, 16, tzinfo=UTC).timestamp()


class _Sharp(Random):
    def uniform(self, a: float, _b: float) -> float:
        return a


def _next(line: str, last: datetime, now: datetime) -> datetime:
    at = now.timestamp()
    due = Cron(line).next_due(last.timestamp() - at, Now(at, 0.0), _Sharp())
    return now + timedelta(seconds=due)


@given(
    seconds=st.floats(1, 1e6),
    last=st.floats(0, 1e6),
    gone=st.floats(0, 1e7),
    dice=st.randoms(use_true_random=False),
)
def test_an_interval_is_kept_and_never_longer_than_its_jitter(
    seconds: float, last: float, gone: float, dice: Random
) -> None:
    now = Now(_MONDAY + gone, last + gone)

    due = Every(seconds).next_due(last, now, dice)

    least = max(last + seconds, now.steady)
    assert least <= due <= least + min(seconds * 0.1, 300.0)


@given(minute=st.integers(0, 59), hour=st.integers(0, 23), gone=st.integers(0, 200_000))
def test_a_line_of_crontab_names_the_minute_and_what_was_missed_is_due_now(
    minute: int, hour: int, gone: int
) -> None:
    last = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    now = last + timedelta(seconds=gone)

    due = _next(f"{minute} {hour} * * *", last, now)

    first = last.replace(hour=hour, minute=minute)
    first += timedelta(days=first <= last)
    assert due == max(first, now)


@pytest.mark.parametrize(
    ("line", "begin", "nights"),
    [
        ("30 2 * * * Europe/Vienna", (3, 28), ["29 03:00", "30 02:30"]),
        ("30 2 * * * Europe/Vienna", (10, 24), ["25 02:30", "26 02:30"]),
        ("15 2 * * * Australia/Lord_Howe", (10, 3), ["04 02:30", "05 02:15"]),
        ("45 1 * * * Australia/Lord_Howe", (4, 4), ["05 01:45", "06 01:45"]),
    ],
)
def test_a_night_that_lacks_the_time_or_has_it_twice_has_one_pull(
    line: str, begin: tuple[int, int], nights: list[str]
) -> None:
    moment, zone = datetime(2026, *begin, 6, tzinfo=UTC), ZoneInfo(line.rsplit(maxsplit=1)[-1])
    found = [moment := _next(line, moment, moment) for _ in nights]

    assert [due.astimezone(zone).strftime("%d %H:%M") for due in found] == nights


def test_a_clock_that_was_set_back_does_not_postpone_for_days() -> None:
    tomorrow, now = datetime(2030, 1, 1, tzinfo=UTC), datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    assert _next("0 * * * *", tomorrow, now) == datetime(2026, 11, 16, 13, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "line", ["", "* * * *", "61 * * * *", "a b c d e", "0 0 30 2 *", "0 0 * * * Mars/Base", "\0"]
)
def test_a_line_that_makes_no_sense_is_refused(line: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Cron(line)
    assert caught.value.hint


# --- outages, as the second table of docs/how-to/outages.md has them ------------------------------


ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/outages.md"
ALERTS = (ROOT / "share/resourcesync/alerts.yml").read_text("utf-8")
EVERY, MAX_LAG = 900.0, 3_600.0
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
PULL = MirrorJob(mirror="m", kind=JobKind.PULL)
LIVES = 400


class Met(NamedTuple):
    """What one outage came to, in seconds."""

    noticed: float | None  # from its begin to the first failed pull, if it met one
    retries: int  # failed pulls after the first
    recovered: float  # from its end to the next good pull
    without: float  # from the last good pull before it to the first one after it


def meet(seed: int, length: float) -> Met:
    dice = Random(seed)
    rota = Scheduler(dice)
    rota.configure({"m": MirrorSchedule(pull=Every(EVERY))}, {}, Now(0.0, 0.0))
    begin = 10 * EVERY + dice.uniform(0, EVERY)
    end, now, good, failures = begin + length, 0.0, 0.0, list[float]()
    while True:
        assert rota.begin(Now(now, now), 1, 1) == [PULL]
        if begin <= now < end:
            failures.append(now)
            status = JobStatus.FAILED
        elif now >= end:
            noticed = failures[0] - begin if failures else None
            return Met(noticed, max(len(failures) - 1, 0), now - end, now - good)
        else:
            good, status = now, JobStatus.DONE
        rota.record_end(PULL, JobOutcome(status=status), Now(now, now))
        now = max(now, rota.next_moment())


def alerted(alert: str, factor: float) -> float:
    rule = ALERTS.partition(f"alert: {alert}")[2].partition("- alert:")[0]
    times = re.search(r"> (\d+) \*", rule)
    lasting = re.search(r"for: (\d+)m", rule)
    assert times is not None
    assert lasting is not None
    return int(times[1]) * factor + int(lasting[1]) * MINUTE


def words(seconds: float) -> str:
    return f"{ceil(seconds / MINUTE)} min" if seconds < 3 * HOUR else f"{ceil(seconds / HOUR)} h"


def is_sent(met: list[Met], after: float) -> str:
    sent = sum(one.without > after for one in met)
    return {0: "no", len(met): f"{words(after)} after the last good pull"}.get(sent, "sometimes")


def row(name: str, length: float) -> str:
    met = [meet(seed, length) for seed in range(LIVES)]
    noticed = [one for one in met if one.noticed is not None]
    first = f"within {words(max(one.noticed or 0.0 for one in noticed))}"
    if len(noticed) < len(met):
        first += f", or never: {len(met) - len(noticed)} of {len(met)} outages met no pull"
    retries = sorted({one.retries for one in noticed})
    cells = (
        name,
        first,
        str(retries[0]) if len(retries) == 1 else f"{retries[0]} to {retries[-1]}",
        f"within {words(max(one.recovered for one in noticed))}",
        is_sent(met, alerted("MirrorWithoutSuccess", EVERY)),
        is_sent(met, alerted("MirrorLate", MAX_LAG)),
    )
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize(("name", "length"), [("20 s", 20.0), ("1 h", HOUR), ("3 d", 3 * DAY)])
def test_the_page_says_how_long_an_outage_lasts(name: str, length: float) -> None:
    assert row(name, length) in PAGE.read_text()


def test_no_outage_lasts_twice_as_long_as_the_source_is_away() -> None:
    for seed in range(LIVES):
        length = 10.0 ** Random(seed).uniform(2, 6)
        assert meet(seed, length).recovered <= min(max(length, EVERY * 1.1), DAY)
