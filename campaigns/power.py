"""The power is cut while a run pulls, moves or publishes, everywhere: the next run must be right.

What each run does to the disk is recorded as it is done, SQLite's own writes too. Of what was not
synced when the power is cut, any part may be lost, and what is left is given to the real code. In
a third of the runs, it is the next run that is recorded, and the power is cut again. Ways of
writing that are known to be wrong must be found: else the campaign proves nothing.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from campaigns.hosts import share
from campaigns.outcome import Asked, Campaign, Outcome
from tests.support.crashes.power_mutants import MUTANTS
from tests.support.crashes.preloaded import Cut, PowerCuts, has_compiler, in_memory

_SCENES: Final = ("pull", "rename", "publish")
_EACH: Final = 800
"""States of one recorded run."""
_SEEDS: Final = 8
"""Runs in which a wrong way of writing must be found."""
_MUTATED: Final = 150
"""States of each of these runs."""

Job = tuple[str, int, int, bool]


def caught(cuts: PowerCuts, mutant: str, scene: str, *, seed: int) -> int | None:
    """Return how many states it took to find a wrong way of writing; ``None`` when nobody did."""
    states = 0
    for number in range(_SEEDS):
        cut = cuts.cut(scene, seed + number, most=_MUTATED, mutant=mutant)
        states += cut.states
        if cut.wrong:
            return states
    return None


def _jobs(asked: Asked, sums: Counter[str]) -> Iterator[Job]:
    """Yield scenes, seeds, how many states, and whether the power is cut twice, until it is enough.

    The seed alone decides: ``--seed SEED --size 1`` does first what was found with that seed.
    """
    number = 0
    while number < len(_SCENES) or sum(sums[f"{scene}: states"] for scene in _SCENES) < asked.size:
        seed = asked.seed + number // len(_SCENES)
        yield _SCENES[number % len(_SCENES)], seed, _EACH, seed % 3 == 2
        number += 1


def run(asked: Asked) -> Outcome:
    """Try as many states as asked, then all wrong ways of writing."""
    outcome = Outcome()
    if not has_compiler():
        outcome.violations.append("no C compiler on Linux: nothing can be recorded")
        return outcome
    with tempfile.TemporaryDirectory(dir=in_memory(asked.folder)) as home:
        _try_states(outcome, asked, Path(home) / "states")
        _try_mutants(outcome, asked.seed, Path(home) / "mutants")
    return outcome


def _try_mutants(outcome: Outcome, seed: int, home: Path) -> None:
    jobs = [(mutant, scene) for mutant, (scenes, _) in MUTANTS.items() for scene in scenes]

    def work(cuts: PowerCuts, job: tuple[str, str]) -> int | None:
        return caught(cuts, *job, seed=seed)

    for (mutant, scene), found in share(PowerCuts, home, jobs, work):
        told = "unnoticed" if found is None else f"state {found}"
        outcome.add(f"{scene}: {mutant}", told)
        outcome.require(found, f"{scene}: nobody notices that {mutant}")


def _try_states(outcome: Outcome, asked: Asked, home: Path) -> None:
    sums = Counter[str]()

    def work(cuts: PowerCuts, job: Job) -> Cut:
        return cuts.cut(job[0], job[1], most=job[2], twice=job[3])

    for (scene, seed, _, twice), cut in share(PowerCuts, home, _jobs(asked, sums), work):
        sums.update(
            {
                f"{scene}: runs recorded": 1,
                f"{scene}: operations": cut.operations,
                f"{scene}: states": cut.states,
                f"{scene}: states that say something of their own": cut.judged,
            }
        )
        again = ", cut again" if twice else ""
        outcome.require(
            not cut.wrong, f"{scene}, seed {seed}{again}: {'; '.join(cut.wrong)}", again=(seed, 1)
        )
    for label, value in sorted(sums.items()):
        outcome.add(label, value)
    outcome.tried = sum(sums[f"{scene}: states"] for scene in _SCENES)
    outcome.require(outcome.tried >= asked.size > 0, "fewer states were tried")


CAMPAIGN: Final = Campaign(run=run, size=20_000, unit="states of a disk", exact=True)
