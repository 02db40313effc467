"""Simulated worlds with all faults at once: none may end silently wrong, and nobody may lie.

Each seed makes a Source with a way of its own (how it lists, how often, for how long), a
Destination with a pace of its own, and faults with rates of their own; both run the real code. In
every fourth world the Source packs dumps, too; in every third it writes a small Resource List again
with each change; in every second one both sides also die while they write, disks are full, lists
are dropped or have holes, and storms of errors pass. When all is quiet
again, the run has *converged*, or the Destination *waits* and says so, or it is *silently wrong*.

Beside every fourth world there is a short life of a Source whose lists are not ours, and beside
every other fourth one three weeks of a Source in the form of the founding documents.
"""

import os
import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Final

from msgspec.structs import replace

from campaigns.dated import live_dated
from campaigns.outcome import Asked, Campaign, Outcome
from campaigns.weeks import live_weeks
from resourcesync_simulator.measures import Measurement
from resourcesync_simulator.scenario import (
    HOUR,
    DestinationSettings,
    Faults,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
)
from resourcesync_simulator.simulation import simulate

_RATES: Final = (
    *("lost", "refused", "failed", "late", "cut", "altered", "stale", "wrong_hash", "undated"),
    "changed_while_listed",
)
_FURTHER: Final = ("doubled", "wrong_length", "dropped", "holes")

_PACKAGE: Final = 20_000
"""Bytes of a package at most: a hundred resources or so."""


def scenario_of(seed: int) -> Scenario:
    """Return the world of a seed."""
    luck = random.Random(f"campaign {seed}")
    hours = luck.choice((8, 16, 30))
    every = luck.choice((0.1, 0.5, 1.0, 3.0)) * HOUR
    return Scenario(
        seed=seed,
        duration=hours * HOUR,
        origin=OriginSettings(
            resources=luck.choice((10, 30, 80)),
            sizes=Sizes(median=200, spread=1.0, most=2_000),
            per_second=luck.choice((1, 4, 12)) / HOUR,
            create=luck.choice((0.1, 0.3)),
            delete=luck.choice((0.05, 0.2)),
        ),
        publish=PublishSettings(
            strategy=luck.choice(("changes",) * 5 + ("lists",)),
            every=every,
            rotate=luck.choice((0.0, 1.0, 3.0)) * HOUR,
            rebase=luck.choice((0.0, 4.0, 9.0)) * HOUR,
            keep=luck.choice((0.0, 2.0, 8.0)) * HOUR,
            push=luck.random() < 0.3,
            max_entries=luck.choice((5, 20, 50_000)),
        ),
        destinations=(_destination(luck, hours),),
        faults=_faults(luck, hours),
    )


def _destination(luck: random.Random, hours: int) -> DestinationSettings:
    away = luck.uniform(0, hours)
    return DestinationSettings(
        every=luck.choice((0.3, 1.0, 4.0)) * HOUR,
        jobs=luck.choice((1, 4, 8)),
        latency=luck.choice((0.01, 0.5)),
        offline=((away * HOUR, (away + hours / 3) * HOUR),) if luck.random() < 0.3 else (),
    )


def _faults(luck: random.Random, hours: int) -> Faults:
    worst = luck.choice((0.0, 0.02, 0.1, 0.3))
    rates: dict[str, Any] = {name: luck.uniform(0, worst) for name in _RATES if luck.random() < 0.5}

    def times(most: int) -> list[float]:
        return sorted(luck.uniform(0, hours) * HOUR for _ in range(luck.randrange(most + 1)))

    return Faults(
        **rates,
        outages=tuple((at, at + luck.uniform(0, 3) * HOUR) for at in times(2)),
        clock_steps=tuple((at, luck.uniform(-1, 1) * HOUR) for at in times(2)),
        restarts=tuple(times(1)),
        rollbacks=tuple((at, luck.uniform(0, 5) * HOUR) for at in times(1)),
        crash=luck.choice((0.0, 0.005, 0.03)),
        push_lost=0.2,
        push_doubled=0.2,
        push_forged=0.2,
    )


def with_dumps(scenario: Scenario) -> Scenario:
    """Return a world in which the Source packs dumps, of several packages, in its own time."""
    luck = random.Random(f"dumps {scenario.seed}")
    of, (follower,) = scenario.publish, scenario.destinations
    many = luck.choice((1, 4, 24))
    return replace(
        scenario,
        publish=replace(of, dumps=True, dump_every=of.every * many, max_package=_PACKAGE),
        destinations=(replace(follower, dumps=luck.choice(("auto", "always"))),),
    )


def with_deaths(scenario: Scenario) -> Scenario:
    """Return a world in which both sides also die while they write, and disks are full."""
    luck, most = random.Random(f"deaths {scenario.seed}"), scenario.duration
    rates: dict[str, Any] = {
        name: luck.uniform(0, luck.choice((0.0, 0.02, 0.2))) for name in _FURTHER
    }

    def times() -> tuple[tuple[float, float], ...]:
        since = luck.uniform(0, most)
        return ((since, since + luck.uniform(0, 3) * HOUR),) if luck.random() < 0.4 else ()

    return replace(
        scenario,
        faults=replace(
            scenario.faults,
            **rates,
            storms=times(),
            disk_full=times(),
            source_disk_full=times(),
            source_crash=luck.choice((0.0, 0.005, 0.05)),
            crash_writing=luck.choice((0.0, 0.002, 0.02)),
            power_cut=luck.choice((0.0, 0.01, 0.1)),
        ),
    )


def with_rewritten_lists(scenario: Scenario) -> Scenario:
    """Return a world in which the Source writes a small Resource List again with each change."""
    most = random.Random(f"lists {scenario.seed}").choice((30, 50_000))
    return replace(scenario, publish=replace(scenario.publish, rebase_up_to=most))


def world_of(seed: int) -> Scenario:
    """Return the world of a seed.

    Every fourth is with dumps, every second with deaths, and of each three groups of four the
    second with Resource Lists that are written again.
    """
    scenario = scenario_of(seed)
    if seed // 4 % 3 == 1:
        scenario = with_rewritten_lists(scenario)
    if seed % 4 == 0:
        scenario = with_dumps(scenario)
    return with_deaths(scenario) if seed % 4 in {0, 1} else scenario


def _live_nothing(seed: int) -> str:
    del seed
    return ""


def live(seed: int) -> tuple[int, Measurement, str]:
    """Live the world of a seed, and how the short life beside it ended, if there is one."""
    scenario = world_of(seed)
    beside = {2: live_weeks, 3: live_dated}.get(seed % 4, _live_nothing)(seed)
    return seed, simulate(scenario, scenario.destinations[0]), beside


def run(asked: Asked) -> Outcome:
    """Live as many worlds as asked, one after the other seed."""
    outcome, ended, waiting = Outcome(), Counter[str](), list[str]()
    sums = Counter[str]()
    seeds = range(asked.seed, asked.seed + asked.size)
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        for seed, measured, beside in pool.map(live, seeds, chunksize=4):
            ended[measured.outcome] += 1
            if measured.outcome == "waiting":
                waiting.append(str(seed))
            sums.update(
                lives=bool(beside),
                pulls=measured.pulls,
                changes=measured.changes,
                crashes=measured.crashes,
                failed=measured.failed,
                hours=round(scenario_of(seed).duration / HOUR),
            )
            again = (seed, 1)
            told = f"seed {seed}: called in sync and was not"
            outcome.require(not measured.lies, told, again=again)
            told = f"seed {seed}, the life beside it: {beside}"
            outcome.require(beside in {"", "converged"}, told, again=again)
            is_wrong = measured.outcome == "silently wrong"
            outcome.require(not is_wrong, f"seed {seed}: silently wrong", again=again)
    for name in ("converged", "waiting", "silently wrong"):
        outcome.add(name, ended[name])
    if waiting:
        outcome.add("seeds that waited", ", ".join(waiting))
    outcome.add("short lives beside them", sums["lives"])
    for name in ("hours", "changes", "pulls", "failed", "crashes"):
        outcome.add(f"{name}, all runs", sums[name])
    outcome.require(ended, "nothing was lived")
    return outcome


CAMPAIGN: Final = Campaign(run=run, size=1_000, unit="worlds", exact=True)
