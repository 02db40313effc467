"""A list of 50,000 entries is read into values and written from values."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from benchmarks import inputs
from benchmarks.bench import Bench, Skipped
from benchmarks.results import Contender, JobResult, Sample, interleave


def run(bench: Bench) -> Iterator[JobResult]:
    """Measure reading and writing; each sample is a fresh process, its imports not counted."""
    if find_spec("resourcesync.documents.reader") is None:
        raise Skipped("resourcesync is not installed")
    entries = bench.size(50_000, 10_000)
    resync = find_spec("resync") is not None
    with bench.folder(bench.fast) as folder:
        path = folder / "list.xml"
        inputs.make_list(path, entries)

        def work(name: str) -> Callable[[], Sample]:
            return lambda: worker(bench, name, path)

        reading = [
            Contender(
                name="entries as Resource values", role="ours", items=entries, once=work("read")
            ),
            Contender(name="entries as plain rows", role="ours", items=entries, once=work("rows")),
        ]
        writing = [
            Contender(name="resourcesync write", role="ours", items=entries, once=work("write"))
        ]
        if resync:
            reading.append(
                Contender(name="resync read", role="peer", items=entries, once=work("resync-read"))
            )
            writing.append(
                Contender(
                    name="resync as_xml", role="peer", items=entries, once=work("resync-write")
                )
            )
        reading.append(
            Contender(name="expat, no handlers", role="floor", items=entries, once=work("expat"))
        )
        rows = interleave(reading, bench.runs)
        size = path.stat().st_size / 1e6
        yield JobResult(
            name="read",
            title=f"read a Resource List of {entries:,} entries ({size:.1f} MB)",
            rows=rows,
        )
        rows = interleave(writing, bench.runs)
    yield JobResult(name="write", title=f"write a Resource List of {entries:,} entries", rows=rows)


def worker(bench: Bench, name: str, path: Path) -> Sample:
    """Run a piece of work in a process of its own; its imports are not counted."""
    script = Path(__file__).parent.parent / "workers.py"
    outcome = bench.run([sys.executable, script, name, path])
    if outcome.sample.problem:
        return outcome.sample
    told = json.loads(outcome.stdout)
    return replace(outcome.sample, seconds=told["seconds"], cpu=told["cpu"])
