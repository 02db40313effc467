"""Two changes a second, published every two seconds: what that takes of a day."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from benchmarks.bench import Bench, Skipped
from benchmarks.results import Contender, JobResult, Sample, at_most, interleave


def run(bench: Bench) -> Iterator[JobResult]:
    """Measure some minutes in which the open Change List is fullest, and is rotated."""
    if find_spec("resourcesync.source.publisher") is None:
        raise Skipped("resourcesync is not installed")
    count, minutes = bench.size(1_000_000, 50_000), bench.size(5, 2)
    script = Path(__file__).parent.parent / "live.py"
    told: list[dict[str, float]] = []

    def once() -> Sample:
        with bench.folder(bench.fast) as folder:
            outcome = bench.run([sys.executable, script, folder, str(count), str(minutes)])
        if outcome.sample.problem:
            return outcome.sample
        told.append(json.loads(outcome.stdout))
        return replace(outcome.sample, seconds=told[-1]["seconds"], cpu=told[-1]["cpu"])

    name = "resourcesync, every 2 s"
    rows = interleave(
        [Contender(name=name, role="ours", items=minutes * 120, once=once)], bench.runs
    )
    share = max((fields["share"] * 100 for fields in told), default=None)
    slowest = max((fields["slowest"] for fields in told), default=0.0)
    yield JobResult(
        name="live",
        title=f"2 changes/s of {count:,} resources, {minutes} simulated minutes, one rotation",
        rows=rows,
        targets=[at_most(share, 5, "%", "2 changes/s all day: < 5 % of one core")],
        notes=[f"slowest publication {slowest:.2f} s; the open list holds 50,000 changes at most"],
    )
