"""Inputs made to hurt, for everything that reads what others wrote: all fuzz targets in one run.

Each seed makes a round of inputs, shared among the targets.
"""

import os
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Final

from campaigns.outcome import Asked, Campaign, Outcome
from fuzz.campaign import Outcome as Fuzzed
from fuzz.campaign import campaign
from fuzz.targets import TARGETS

SHARES: Final = {
    "documents": 100,
    "validator": 10,
    "long-lists": 10,
    "datetimes": 180,
    "hashes": 110,
    "link-fields": 110,
    "zips": 90,
    "tars": 25,
    "paths": 145,
    "oai": 10,
    "lines": 50,
    "json-patches": 40,
    "xml-patches": 40,
    "forms": 40,
    "http-fields": 40,
}
"""Of a thousand inputs, how many each target gets: fewer where one takes long."""
ROUND: Final = 50_000
"""Inputs of one seed."""


def shared(size: int) -> Mapping[str, int]:
    """Return how many of so many inputs each target gets, one at least."""
    return {name: max(1, size * share // 1_000) for name, share in SHARES.items()}


def one_round(job: tuple[int, int]) -> dict[str, Fuzzed]:
    """Run the inputs of one seed."""
    seed, size = job
    return {
        name: campaign(TARGETS[name], count=count, seed=seed)
        for name, count in shared(size).items()
    }


def run(asked: Asked) -> Outcome:
    """Run as many inputs as asked, round by round."""
    outcome, counts = Outcome(), Counter[str]()
    size, slowest = min(asked.size, ROUND), 0.0
    jobs = [(asked.seed + number, size) for number in range(-(-asked.size // ROUND))]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for job, ran in zip(jobs, pool.map(one_round, jobs), strict=True):
            for name, fuzzed in ran.items():
                counts[name] += fuzzed.count
                slowest = max(slowest, fuzzed.slowest)
                for finding in fuzzed.findings:
                    told = f"{name}, seed {job[0]}: {finding.what}: {finding.data!r}"
                    outcome.require(holds=False, otherwise=told, again=job)
    for name, count in counts.items():
        outcome.add(f"{name}: inputs", count)
    outcome.add("inputs, all", counts.total())
    outcome.add("slowest, ms", slowest * 1_000)
    outcome.require(asked.size > 0, "nothing was tried")
    return outcome


CAMPAIGN: Final = Campaign(run=run, size=1_000_000, unit="inputs", exact=True)
