"""Every operation on the disk fails in its turn, once and from then on: no harm is left.

``pull``, ``publish``, ``audit`` and ``repair`` are run again and again, and each time another
operation fails, with each error that it may end with. After every fourth, the run that mends it
fails as well. Every end must be told as what it is, and the run after it must be right.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from campaigns.hosts import share
from campaigns.outcome import Asked, Campaign, Outcome
from tests.support.crashes.preloaded import CrashRuns, Failed, has_compiler, in_memory

_SCENES: Final = ("pull", "publish", "audit", "repair")
_ALL: Final = 100_000
_ENDS: Final = "ended so, all"

Job = tuple[str, int]


def _jobs(asked: Asked, sums: Counter[str]) -> Iterator[Job]:
    """Yield scenes and seeds until it is enough: each seed has each scene once."""
    number = 0
    while number < len(_SCENES) or sums[_ENDS] < asked.size:
        yield _SCENES[number % 4], asked.seed + number // 4
        number += 1


def run(asked: Asked) -> Outcome:
    """Let runs fail at each of their operations, until there were as many ends as asked for."""
    outcome, sums = Outcome(), Counter[str]()
    if not has_compiler():
        outcome.violations.append("no C compiler on Linux: operations cannot be made to fail")
        return outcome

    def work(runs: CrashRuns, job: Job) -> Failed:
        return runs.fail(*job, most=_ALL)

    with tempfile.TemporaryDirectory(dir=in_memory(asked.folder)) as home:
        for (scene, seed), failed in share(CrashRuns, Path(home), _jobs(asked, sums), work):
            sums.update({f"{scene}: ended by a failing disk": failed.tried})
            sums.update({_ENDS: failed.tried})
            sums.update({"of these, the run after it failed as well": failed.compound})
            sums.update({"operations that failed": failed.hits})
            outcome.require(
                not failed.wrong,
                f"{scene}, seed {seed}: {'; '.join(failed.wrong)}",
                again=(seed, 1),
            )
    for label, value in sorted(sums.items()):
        outcome.add(label, value)
    outcome.tried = sums[_ENDS]
    outcome.require(outcome.tried >= asked.size > 0, "fewer were tried")
    outcome.require(sums["operations that failed"], "nothing failed: nothing was proven")
    return outcome


CAMPAIGN: Final = Campaign(run=run, size=10_000, unit="runs that a failing disk ends", exact=True)
