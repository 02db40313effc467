"""One pull of a Source that misbehaves in every way at once, told way by way; then its healing."""

import time
from collections import Counter
from typing import Final

from campaigns.outcome import Asked, Campaign, Outcome
from tests.support.commands.run import Ran, files_of, resourcesync
from tests.support.sources.torture import TortureSource

_BOUND: Final = 120.0
"""Seconds that one run may take."""
_NETWORK: Final = ("-o", "timeout=1s", "-o", "retries=1")


def run(asked: Asked) -> Outcome:
    """Pull as often as asked, heal, pull."""
    outcome, mirror, told = Outcome(), asked.folder / "mirror", Counter[str]()
    with TortureSource() as source:
        for number in range(max(1, asked.size)):
            began = time.monotonic()
            ran = resourcesync("pull", source.uri, mirror, "--json", *_NETWORK, cwd=asked.folder)
            seconds = time.monotonic() - began
            outcome.add(f"run {number + 1}, seconds", seconds)
            outcome.require(seconds < _BOUND, f"a run took {seconds:.0f} s")
            outcome.require(ran.code == 3, f"a run ended with {ran.code}: {ran.said[-500:]}")
            _check(outcome, source, ran)
            told = Counter(item["code"] for item in ran.events("item") if "code" in item)
        for code, count in sorted(told.items()):
            outcome.add(f"told as {code}", count)
        outcome.add("ways", len(source.ways) + len(source.refused))
        outcome.add("resources had", len(source.expected))
        bodies = sorted(source.expected.values())
        outcome.require(sorted(files_of(mirror).values()) == bodies, "a resource is not here")
        source.heal()
        healed = resourcesync("pull", mirror, "--json", cwd=asked.folder)
        outcome.require(healed.code == 0, f"a healed Source ended with {healed.code}")
        outcome.require(
            sorted(files_of(mirror).values()) == sorted(source.listed.values()),
            "a healed Source is not mirrored",
        )
    return outcome


def _check(outcome: Outcome, source: TortureSource, ran: Ran) -> None:
    listed = ran.end["listed"]
    offered = len(source.listed) + len(source.refused)
    outcome.require(sum(listed.values()) == offered, f"{offered} listed, but {listed}")
    broken = sum(1 for way in source.ways if way.code)
    outcome.require(listed["pending"] == broken, f"{listed['pending']} pending, not {broken}")
    outcome.require(source.forbidden.connections == 0, "a forbidden address was connected")


CAMPAIGN: Final = Campaign(run=run, size=2, unit="runs")
