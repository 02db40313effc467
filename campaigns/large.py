"""A large mirror, pulled and killed ten times on the way, then audited byte by byte."""

import contextlib
import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from campaigns.generated import generated_source, installed
from campaigns.measured import command
from campaigns.outcome import Asked, Campaign, Outcome

KILLS: Final = 10


def run(asked: Asked) -> Outcome:
    """Pull, kill, pull on, audit."""
    outcome, luck = Outcome(), random.Random(asked.seed)
    if not installed():
        outcome.violations.append("nginx is not here")
        return outcome
    mirror, killed, seconds, cpu, peak = asked.folder / "mirror", 0, 0.0, 0.0, 0.0
    with generated_source(asked.folder / "source") as source:
        source.offer(asked.size, at="2026-01-02T00:00:00Z")
        pull = ("pull", source.url, mirror, "--quiet")
        for number in range(1, KILLS + 1):
            share = (number - 0.5 + luck.random() / 2) / (KILLS + 1)
            enough = _has(mirror, int(asked.size * share))
            part = command(*pull, home=asked.folder, until=enough)
            killed += part.code == -signal.SIGKILL
            seconds, cpu = seconds + part.seconds, cpu + part.cpu
            peak = max(peak, part.peak_mib)
        last = command(*pull, home=asked.folder)
        audit = command("audit", mirror, "--quiet", home=asked.folder)
        again = command(*pull, home=asked.folder)
    files = sum(len(names) for _, _, names in os.walk(mirror / "r"))
    outcome.add("killed", killed)
    outcome.add("pull, seconds of all runs", seconds + last.seconds)
    outcome.add("pull, seconds of processor time", cpu + last.cpu)
    outcome.add("pull, peak MiB", max(peak, last.peak_mib))
    outcome.add("last run, seconds", last.seconds)
    outcome.add("audit, every byte, seconds", audit.seconds)
    outcome.add("audit, seconds of processor time", audit.cpu)
    outcome.add("audit, peak MiB", audit.peak_mib)
    outcome.add("pull, nothing new, seconds", again.seconds)
    outcome.require(killed == KILLS, f"killed {killed} times, not {KILLS}")
    for name, ended in (("pull", last), ("audit", audit), ("second pull", again)):
        outcome.require(ended.code == 0, f"{name} ended with {ended.code}: {ended.said[-500:]}")
    outcome.require(files == asked.size, f"{files} files, not {asked.size}")
    left = list(mirror.glob(".resourcesync/tmp/*"))
    outcome.require(not left, f"{len(left)} files were left half-written")
    return outcome


def _has(mirror: Path, wanted: int) -> Callable[[], bool]:
    """Return what tells whether the mirror remembers so many copies; it looks twice a second."""
    path, due = mirror / ".resourcesync/state.db", 0.0

    def enough() -> bool:
        nonlocal due
        if time.monotonic() < due or not path.exists():
            return False
        due = time.monotonic() + 0.5
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as state,
        ):
            count: int = state.execute("SELECT count(*) FROM copy").fetchone()[0]
            return count >= wanted
        return False

    return enough


CAMPAIGN: Final = Campaign(run=run, size=500_000, unit="resources")
