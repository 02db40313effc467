"""How long an outage of a Source lasts for a mirror that is pulled each quarter of an hour.

Time is simulated; the figures are those of the second table of docs/how-to/outages.md.
"""

import re
from math import ceil
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from resourcesync.watch.scheduler import (
    Every,
    JobKind,
    JobOutcome,
    JobStatus,
    MirrorJob,
    MirrorSchedule,
    Now,
    Scheduler,
)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/outages.md"
ALERTS = (ROOT / "share/resourcesync/alerts.yml").read_text("utf-8")
EVERY, MAX_LAG = 900.0, 3_600.0
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
PULL = MirrorJob(mirror="m", kind=JobKind.PULL)
LIVES = 400


class Met(NamedTuple):
    """What one outage came to, in seconds.

    Attributes:
        noticed: From its begin to the first failed pull; ``None`` if it met none.
        retries: Failed pulls after the first.
        recovered: From its end to the next good pull.
        without: From the last good pull before it to the first one after it.
    """

    noticed: float | None
    retries: int
    recovered: float
    without: float


def meet(seed: int, length: float) -> Met:
    """Live through an outage of so many seconds that begins at any time."""
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
    """Return the seconds without a good pull after which an alert is sent."""
    rule = ALERTS.partition(f"alert: {alert}")[2].partition("- alert:")[0]
    times = re.search(r"> (\d+) \*", rule)
    lasting = re.search(r"for: (\d+)m", rule)
    assert times is not None
    assert lasting is not None
    return int(times[1]) * factor + int(lasting[1]) * MINUTE


def words(seconds: float) -> str:
    """Return a time that is not exceeded, in whole minutes or hours."""
    return f"{ceil(seconds / MINUTE)} min" if seconds < 2 * HOUR else f"{ceil(seconds / HOUR)} h"


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
        met = meet(seed, length)
        assert met.recovered <= min(max(length, EVERY * 1.1), DAY)
