"""A large mirror, pulled and killed on the way, then audited byte by byte and by lists."""

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
from campaigns.measured import Measured, command
from campaigns.outcome import Asked, Campaign, Outcome

PEAK_MIB: Final = 200.0
_FILLER: Final = "So that a resource has some 700 bytes, as small records have.\n" * 11


def run(asked: Asked) -> Outcome:
    """Pull, kill, pull on, audit."""
    outcome, luck = Outcome(), random.Random(asked.seed)
    if not installed():
        outcome.missing = "nginx is not here"
        return outcome
    mirror, killed, seconds, cpu, peak = asked.folder / "mirror", 0, 0.0, 0.0, 0.0
    with generated_source(asked.folder / "source", _FILLER) as source:
        source.offer(asked.size, at="2026-01-02T00:00:00Z")
        pull = ("pull", source.url, mirror, "--quiet")
        for number in range(1, asked.kills + 1):
            share = (number - 0.5 + luck.random() / 2) / (asked.kills + 1)
            enough = _has(mirror, int(asked.size * share))
            part = command(*pull, home=asked.folder, until=enough)
            killed += part.code == -signal.SIGKILL
            seconds, cpu = seconds + part.seconds, cpu + part.cpu
            peak = max(peak, part.peak_mib)
        last = command(*pull, home=asked.folder)
        state = sum(path.stat().st_size for path in (mirror / ".resourcesync").glob("state.db*"))
        again = command(*pull, home=asked.folder)
        lists = command("audit", mirror, "--method", "lists", "--quiet", home=asked.folder)
        audit = command("audit", mirror, "--quiet", home=asked.folder)
    files = sum(len(names) for _, _, names in os.walk(mirror / "r"))
    outcome.add("killed", killed)
    outcome.add("pull, seconds of all runs", seconds + last.seconds)
    outcome.add("pull, seconds of processor time", cpu + last.cpu)
    outcome.add("pull, peak MiB", max(peak, last.peak_mib))
    outcome.add("state, bytes of each resource", state / asked.size)
    outcome.require(killed == asked.kills, f"killed {killed} times, not {asked.kills}")
    outcome.require(peak < PEAK_MIB, f"pulls that were killed held up to {peak:,.0f} MiB")
    _judge(outcome, "last pull", last)
    _judge(outcome, "pull, nothing new", again)
    _judge(outcome, "audit by lists", lists)
    _judge(outcome, "audit, every byte", audit)
    outcome.require(files == asked.size, f"{files} files, not {asked.size}")
    left = list(mirror.glob(".resourcesync/tmp/*"))
    outcome.require(not left, f"{len(left)} files were left half-written")
    return outcome


def _judge(outcome: Outcome, name: str, ended: Measured) -> None:
    outcome.add(f"{name}, seconds", ended.seconds)
    outcome.add(f"{name}, seconds of processor time", ended.cpu)
    outcome.add(f"{name}, peak MiB", ended.peak_mib)
    outcome.require(ended.code == 0, f"{name} ended with {ended.code}: {ended.said[-500:]}")
    outcome.require(ended.peak_mib < PEAK_MIB, f"{name} held {ended.peak_mib:,.0f} MiB")


def _has(mirror: Path, wanted: int) -> Callable[[], bool]:
    """Return what tells whether the mirror remembers so many copies; it looks now and then."""
    path, due = mirror / ".resourcesync/state.db", 0.0

    def enough() -> bool:
        nonlocal due
        if time.monotonic() < due or not path.exists():
            return False
        began = time.monotonic()
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as state,
        ):
            count: int = state.execute("SELECT count(*) FROM copy").fetchone()[0]
            due = time.monotonic() + 10 * (time.monotonic() - began)
            return count >= wanted
        return False

    return enough


CAMPAIGN: Final = Campaign(run=run, size=500_000, unit="resources")
