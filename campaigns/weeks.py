"""Three weeks of a Source in the form of the founding documents, and of a mirror of it.

Its Change Lists give no interval: each is of one day, or a window of the last changes, in either
order. Days are missed, older replicas answer, and clocks are ahead of each other. Who calls itself
in sync must be so, no copy is lost, and a new Resource List ends each doubt.
"""

import random
from typing import Final

from resourcesync_simulator.temporary_folders import make_folders
from tests.support.simulated.days import live_days
from tests.support.simulated.manners import Manners
from tests.support.worlds.daily_source import FORMS, DailySource
from tests.support.worlds.loose_source import CLOCKS

_DAYS: Final = 22


def live_weeks(seed: int) -> str:
    """Live the weeks of a seed; return ``converged``, or what was wrong."""
    luck = random.Random(f"weeks {seed}")
    source = DailySource(
        luck.choice(FORMS),
        own_times=luck.random() < 0.5,
        archive=luck.random() < 0.3,
        window=luck.choice((3, 12)),
    )
    manners = Manners(
        date=luck.choice((None, 0, *CLOCKS)),
        replica=luck.choice((0, 0, 0.2)),
        cut=luck.choice((0, 0, 0.05)),
    )
    missed = luck.choice((0, 0.2, 0.5))
    try:
        with make_folders() as folders:
            lived = live_days(
                folders.memory / "mirror", source, luck, days=_DAYS, missed=missed, manners=manners
            )
    except AssertionError as error:
        return str(error) or "an assertion"
    if lived.lies:
        return f"called in sync and was not, on the days {lived.lies}"
    if lived.late and not (manners.replica or manners.cut):
        return f"not in sync with new lists, on the days {lived.late}"
    return "converged"
