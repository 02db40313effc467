"""Lives of mirrors, step by step, whose Source is set back, and whose pulls are killed meanwhile.

Beside the worlds of `cursor` these are short, and made of what is seldom there: between any two
pulls a Source is what it was before, also when it had just told what a killed pull had begun with,
and caches have copies of what never was. Whoever calls itself in sync then must be so.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.errors import ResourceSyncError
from tests.support.crashes.preloaded import in_memory
from tests.support.simulated.regretting import live_regretting


def _begin() -> None:
    """A process that is killed loses nothing that it wrote: no life waits for the disk."""
    os.fsync = _not_waited_for


def _not_waited_for(fd: object) -> None:
    del fd


def _live(folder: Path, live: Callable[[Path, int], None], seed: int) -> str:
    """Return what did not hold in the life of a seed; empty when all did."""
    home = folder / f"{seed}"
    try:
        live(home, seed)
    except (AssertionError, ResourceSyncError) as error:
        return f"seed {seed}: {error}".splitlines()[0]
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return ""


def run(asked: Asked, live: Callable[[Path, int], None] = live_regretting) -> Outcome:
    """Live as many lives as asked."""
    outcome, seeds = Outcome(), range(asked.seed, asked.seed + asked.size)
    with (
        tempfile.TemporaryDirectory(dir=in_memory(asked.folder)) as home,
        ProcessPoolExecutor(max_workers=os.cpu_count(), initializer=_begin) as pool,
    ):
        work = partial(_live, Path(home), live)
        for seed, wrong in zip(seeds, pool.map(work, seeds, chunksize=8), strict=True):
            outcome.require(not wrong, wrong, again=(seed, 1))
    outcome.add("lives", asked.size)
    outcome.add("of which something did not hold", len(outcome.violations))
    return outcome


CAMPAIGN: Final = Campaign(run=run, size=2_000, unit="lives", exact=True)
