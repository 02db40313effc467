"""Many simulated runs: every value of a sweep, every repetition, every Destination."""

import csv
import gzip
import itertools
import os
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, Final

import msgspec

from resourcesync import __version__
from resourcesync.errors import StorageError
from resourcesync.simulator.measures import Measured
from resourcesync.simulator.scenario import Scenario
from resourcesync.simulator.world import simulate
from resourcesync.wiring import scenarios

_FIGURES: Final = (
    *("consistency", "latency", "latency_95", "efficiency", "requests", "received", "useful"),
    *("changes", "synchronized", "pulls", "failed", "crashes", "lies", "outcome", "first"),
    *("first_requests", "first_received"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of one Destination.

    Attributes:
        values: The values of the sweep, by their keys.
        seed: Its seed.
        destination: The Destination's name.
        measured: What came of it.
    """

    values: Mapping[str, str]
    seed: int
    destination: str
    measured: Measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The repetitions of one row of the sweep, for one Destination.

    Attributes:
        values: The values of the sweep, by their keys.
        destination: The Destination's name.
        runs: Of all seeds.
    """

    values: Mapping[str, str]
    destination: str
    runs: tuple[Run, ...]

    def mean(self, figure: str) -> float:
        """Return the mean of a figure."""
        return statistics.fmean(getattr(run.measured, figure) for run in self.runs)

    def spread(self, figure: str) -> float:
        """Return the standard error of the mean of a figure; 0 of one run."""
        values = [getattr(run.measured, figure) for run in self.runs]
        return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    values: Mapping[str, str]
    scenario: Scenario
    destination: int
    log: str


def sweep(
    written: Mapping[str, Any],
    swept: Mapping[str, Sequence[str]],
    *,
    repeat: int = 1,
    seed: int | None = None,
    out: Path | None = None,
    jobs: int | None = None,
) -> Iterator[Run]:
    """Simulate a scenario with all combinations of some values; yield the runs in order.

    Args:
        written: The scenario, as it is written.
        swept: Keys, and the values that each of them takes in turn.
        repeat: With so many seeds, one after the other.
        seed: The first of them; ``None`` takes that of the scenario.
        out: Where the events of each run go, as ``events/NUMBER.ndjson``; ``None`` for nowhere.
        jobs: Processes; ``None`` for as many as there are processors.

    Raises:
        ConfigurationError: A scenario cannot be simulated; nothing was.
    """
    tasks = list(_tasks(dict(written), swept, repeat, seed, out))
    if len(tasks) == 1 or jobs == 1:
        yield from map(_run, tasks)
        return
    with ProcessPoolExecutor(max_workers=jobs or os.cpu_count() or 1) as pool:
        yield from pool.map(_run, tasks)


def summarise(runs: Sequence[Run]) -> list[Summary]:
    """Return the runs, those together that differ in nothing but their seeds."""
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault((*run.values.items(), run.destination), []).append(run)
    return [
        Summary(values=it[0].values, destination=it[0].destination, runs=tuple(it))
        for it in groups.values()
    ]


def write_table(runs: Sequence[Run], path: Path) -> None:
    """Write all figures of all runs as CSV.

    Raises:
        StorageError: It cannot be written.
    """
    text = StringIO()
    keys = list(runs[0].values) if runs else []
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*keys, "seed", "destination", *_FIGURES, "version"])
    for run in runs:
        figures = [getattr(run.measured, name) for name in _FIGURES]
        table.writerow([*run.values.values(), run.seed, run.destination, *figures, __version__])
    _write(path, lambda: path.write_text(text.getvalue(), encoding="utf-8"))


def join_events(folder: Path, path: Path) -> None:
    """Write the events of all runs into one compressed file; the same runs give the same bytes.

    Raises:
        StorageError: It cannot be written.
    """

    def write() -> None:
        with (
            path.open("wb") as raw,
            gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
        ):
            for part in sorted(folder.iterdir()):
                packed.write(part.read_bytes())
                part.unlink()
        folder.rmdir()

    _write(path, write)


def _write(path: Path, write: Callable[[], object]) -> None:
    try:
        write()
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def _tasks(
    written: dict[str, Any],
    swept: Mapping[str, Sequence[str]],
    repeat: int,
    seed: int | None,
    out: Path | None,
) -> Iterator[_Task]:
    numbers = itertools.count()
    for chosen in itertools.product(*swept.values()):
        values = dict(zip(swept, chosen, strict=True))
        table = written
        for key, value in values.items():
            table = scenarios.with_value(table, key, value)
        scenario = scenarios.scenario_of(table)
        first = scenario.seed if seed is None else seed
        for more in range(repeat):
            for place in range(len(scenario.destinations)):
                log = "" if out is None else str(out / "events" / f"{next(numbers):06d}.ndjson")
                told = _with_seed(scenario, first + more)
                yield _Task(values=values, scenario=told, destination=place, log=log)


def _with_seed(scenario: Scenario, seed: int) -> Scenario:
    """Return a scenario with another seed, of which each Destination's phase follows."""
    luck = random.Random(f"phase {seed}")  # noqa: S311 - a simulation
    destinations = tuple(replace(it, phase=luck.random()) for it in scenario.destinations)
    return replace(scenario, seed=seed, destinations=destinations)


def _run(task: _Task) -> Run:
    scenario = task.scenario
    destination = scenario.destinations[task.destination]
    head = {**task.values, "seed": scenario.seed, "destination": destination.name}
    if not task.log:
        measured = simulate(scenario, destination)
    else:
        with _log(Path(task.log)) as log:
            _line(log, {"event": "run.begin", **head, "version": __version__})

            def tell(at: float, event: str, fields: Mapping[str, object]) -> None:
                _line(log, {"event": event, "at": round(at, 6), **fields})

            measured = simulate(scenario, destination, tell)
            figures = {name: getattr(measured, name) for name in _FIGURES}
            _line(log, {"event": "run.end", **head, **figures})
    return Run(
        values=task.values, seed=scenario.seed, destination=destination.name, measured=measured
    )


def _log(path: Path) -> TextIOWrapper:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def _line(log: TextIOWrapper, fields: Mapping[str, object]) -> None:
    log.write(msgspec.json.encode(fields).decode())
    log.write("\n")
