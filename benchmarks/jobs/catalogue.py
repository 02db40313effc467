"""A catalogue of arXiv's size becomes a Source; then 1,800 resources change."""

import random
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from benchmarks import inputs, ours, processes
from benchmarks.bench import Bench, Skipped, settle
from benchmarks.jobs.documents import worker
from benchmarks.results import JobResult, Row, Sample

_URL = "https://museum.example"
_CHANGES = 1_800
_LISTED = 50_000
_LIMIT = 1_800
"""Seconds that a command may take."""


def run(bench: Bench) -> Iterator[JobResult]:
    """Measure each step: the first and the last once, for each takes its time."""
    if not ours.installed():
        raise Skipped("the resourcesync command is not installed")
    resources = bench.size(2_400_000, 120_000)
    with bench.folder() as folder:
        rows = list(_rows(bench, folder, resources))
    [empty] = [row for row in rows if row.name == "publish, nothing changed"]
    yield JobResult(
        name="catalogue",
        title=f"publish a catalogue of {resources:,} resources; {_CHANGES:,} of them change",
        rows=rows,
        notes=[
            f"{empty.name}: {empty.seconds or 0:.2f} s is mostly the start of Python",
            "resync cannot hold so many: its writer is given 50,000 values that are in memory",
        ],
    )


def _rows(bench: Bench, folder: Path, resources: int) -> Iterator[Row]:
    catalogue, out, lines = (folder / name for name in ("catalogue.db", "out", "lines"))

    def once(name: str, items: int, command: list[str | Path]) -> Row:
        settle()
        outcome = processes.run(command, cwd=bench.disk, env=bench.environment(), limit=_LIMIT)
        return Row(name=name, role="ours", items=items, samples=[outcome.sample])

    def publish(*more: str) -> list[str | Path]:
        return ours.publish_catalogue(catalogue, _URL, out, *more)

    inputs.make_lines(lines, range(resources))
    yield once("catalogue import", resources, ours.catalogue("import", catalogue, lines))
    yield once("publish, first", resources, publish())
    source = random.Random(20_170_202)
    updates, rebases = [], []
    for number in range(bench.runs):
        changed = sorted(source.sample(range(resources), _CHANGES))
        inputs.make_lines(lines, changed, version=number + 1, change="updated")
        bench.must(ours.catalogue("post", catalogue, lines))
        updates.append(bench.once(publish()))
        settle()
        rebases.append(bench.once(publish("--rebase")))
    yield _row("publish, 1,800 changed", _CHANGES, updates)
    yield _row("publish, nothing changed", _CHANGES, [bench.once(publish())])
    yield _row("publish --rebase, 1,800 changed", resources, rebases)
    if find_spec("resync") is not None:
        listed = folder / "list.xml"
        inputs.make_list(listed, _LISTED)
        samples = [worker(bench, "resync-write", listed) for _ in range(bench.runs)]
        row = _row("resync as_xml, 50,000 entries", _LISTED, samples)
        yield replace(row, role="peer")


def _row(name: str, items: int, samples: list[Sample]) -> Row:
    return Row(name=name, role="ours", items=items, samples=samples)
