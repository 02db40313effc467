"""Runs of simulations for every value, repetition and Destination, and their results' folder."""

import csv
import gzip
import itertools
import math
import os
import random
import shutil
import signal
import statistics
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from resourcesync import __version__
from resourcesync.errors import ConfigurationError, EngineError, StorageError
from resourcesync_cluster.engines.processes import end_pool, new_pool, processors, run_in_worker
from resourcesync_simulator import bounds, scenario_files
from resourcesync_simulator.measures import Measurement
from resourcesync_simulator.scenario import Scenario
from resourcesync_simulator.simulation import simulate
from resourcesync_simulator.temporary_folders import TemporaryFolders, make_folders

_MOST_NAMED: Final = 5


@contextmanager
def results_folder(out: Path) -> Iterator[Path]:
    """Yield a folder to work in, which becomes ``out`` when the block ends without an error."""
    try:
        found = sorted(path.name for path in out.iterdir()) if out.exists() else []
        if found:
            more = ", ..." if len(found) > _MOST_NAMED else ""
            raise ConfigurationError(
                f"{out} is not empty",
                evidence=(("found", ", ".join(found[:_MOST_NAMED]) + more),),
                hint="name a folder that is empty, or does not exist",
            )
        work = out.absolute().with_name(f".{out.name}-{os.getpid()}")
        shutil.rmtree(work, ignore_errors=True)  # of a killed process with this number
        work.mkdir(parents=True)
    except OSError as error:
        raise _folder_error(out, error) from error
    try:
        yield work
        work.rename(out)
    except OSError as error:
        raise _folder_error(out, error) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _folder_error(out: Path, error: OSError) -> StorageError:
    return StorageError(f"cannot write into {out}: {error.strerror}")


_MOST_RUNS: Final = 100_000
_TERMINAL: Final = frozenset({signal.SIGINT, signal.SIGHUP})
FIGURES: Final = (
    *("consistency", "latency", "latency_95", "efficiency", "requests", "received", "useful"),
    *("changes", "synchronized", "pulls", "failed", "crashes", "lies", "outcome", "first"),
    *("first_requests", "first_received", "peak"),
)
"""The figures of each run, in this order."""


class SimulationRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one Destination."""

    values: Mapping[str, str]
    seed: int
    destination: str
    measured: Measurement


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The repetitions of one row of the sweep, for one Destination."""

    values: Mapping[str, str]
    destination: str
    runs: tuple[SimulationRun, ...]

    def known(self, figure: str) -> list[float]:
        """Return a figure of all runs that have it."""
        values = [getattr(run.measured, figure) for run in self.runs]
        return [value for value in values if value is not None]

    def mean(self, figure: str) -> float | None:
        """Return the mean of a figure over the runs that have it; ``None`` when none has."""
        values = self.known(figure)
        return statistics.fmean(values) if values else None

    def spread(self, figure: str) -> float:
        """Return the standard error of the mean of a figure; 0 of one run."""
        values = self.known(figure)
        return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


class PlannedSimulation(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was not simulated yet."""

    values: Mapping[str, str]
    scenario: Scenario
    destination: int


def plan_runs(
    written: Mapping[str, Any],
    swept: Mapping[str, Sequence[str]],
    *,
    repeat: int = 1,
    seed: int | None = None,
) -> list[PlannedSimulation]:
    """Return the runs of a scenario with all combinations of some values, all of them checked."""
    if "destination" in swept:
        raise ConfigurationError(
            "destinations cannot be swept as a whole",
            hint="sweep a key of them, such as destination.every; or give each of them a table",
        )
    count = math.prod(map(len, swept.values())) * repeat
    if count > _MOST_RUNS:
        raise ConfigurationError(
            f"these are {count:,} runs; at most {_MOST_RUNS:,} are possible",
            hint="sweep fewer values, or use fewer seeds",
        )
    return list(_tasks(dict(written), swept, repeat, seed))


def simulate_runs(
    tasks: Sequence[PlannedSimulation], *, events: Path | None = None, jobs: int | None = None
) -> Generator[SimulationRun, None, None]:
    """Simulate; yield the runs in order. No process is left when the iterator is closed."""
    logs = [
        None if events is None else events / f"{place:06d}.ndjson" for place in range(len(tasks))
    ]
    workers = min(len(tasks), jobs or processors())
    with ExitStack() as stack:
        with _deferred_signals(signal.SIGTERM):
            within = stack.enter_context(make_folders())
        if workers <= 1:
            for task, log in zip(tasks, logs, strict=True):
                yield _run_one(task, log, within)
        else:
            yield from _run_in_pool(workers, list(zip(tasks, logs, strict=True)), within)


def _run_in_pool(
    workers: int, runs: Sequence[tuple[PlannedSimulation, Path | None]], within: TemporaryFolders
) -> Iterator[SimulationRun]:
    pool = new_pool(workers)
    try:
        with _deferred_signals():
            promised = [
                pool.submit(run_in_worker, _run_one, task, log, within) for task, log in runs
            ]
        for future in promised:
            yield future.result()
    except BrokenProcessPool as error:
        raise EngineError(
            "a simulating process died",
            hint="perhaps it lacks memory: use fewer processes: --jobs 1",
        ) from error
    finally:
        end_pool(pool)


@contextmanager
def _deferred_signals(*more: signal.Signals) -> Iterator[None]:
    """Defer signals; processes that start meanwhile never get them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_TERMINAL, *more})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def summarise(runs: Sequence[SimulationRun]) -> list[Summary]:
    """Return the runs, grouped by everything but their seeds."""
    groups: dict[tuple[object, ...], list[SimulationRun]] = {}
    for run in runs:
        groups.setdefault((*run.values.items(), run.destination), []).append(run)
    return [
        Summary(values=group[0].values, destination=group[0].destination, runs=tuple(group))
        for group in groups.values()
    ]


def write_table(runs: Sequence[SimulationRun], path: Path) -> None:
    """Write all figures of all runs as CSV."""
    text = StringIO()
    keys = [key for key in (runs[0].values if runs else ()) if key != "seed"]
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*keys, "seed", "destination", *FIGURES, "version"])
    for run in runs:
        figures = [getattr(run.measured, name) for name in FIGURES]
        table.writerow(
            [*(run.values[key] for key in keys), run.seed, run.destination, *figures, __version__]
        )
    _write(path, lambda: path.write_text(text.getvalue(), encoding="utf-8"))


def join_events(folder: Path, path: Path) -> None:
    """Write the events of all runs into one compressed file; the same runs give the same bytes."""

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
    written: dict[str, Any], swept: Mapping[str, Sequence[str]], repeat: int, seed: int | None
) -> Iterator[PlannedSimulation]:
    for chosen in itertools.product(*swept.values()):
        values = dict(zip(swept, chosen, strict=True))
        table = written
        for key, value in values.items():
            table = scenario_files.with_value(table, key, value)
        try:
            scenario = scenario_files.scenario_of(table)
            first = scenario.seed if seed is None else seed
            for more in range(repeat):
                told = _with_seed(scenario, first + more)
                for place in range(len(told.destinations)):
                    yield PlannedSimulation(values=values, scenario=told, destination=place)
        except ConfigurationError as error:
            if not values:
                raise
            at = (("with", " ".join(f"{key}={value}" for key, value in values.items())),)
            raise ConfigurationError(
                error.message, evidence=(*error.evidence, *at), hint=error.hint
            ) from error


def _with_seed(scenario: Scenario, seed: int) -> Scenario:
    """Return a scenario with another seed, which also determines each Destination's phase."""
    luck = random.Random(f"phase {seed}")  # noqa: S311 - a simulation
    destinations = tuple(
        replace(destination, phase=luck.random()) for destination in scenario.destinations
    )
    seeded = replace(scenario, seed=seed, destinations=destinations)
    bounds.check(seeded)
    return seeded


def _run_one(task: PlannedSimulation, path: Path | None, within: TemporaryFolders) -> SimulationRun:
    scenario = task.scenario
    destination = scenario.destinations[task.destination]
    head = {**task.values, "seed": scenario.seed, "destination": destination.name}
    if path is None:
        measured = simulate(scenario, destination, within=within)
    else:
        with _log(path) as log:
            _line(log, {"event": "run.begin", **head, "version": __version__})

            def log_event(at: float, event: str, fields: Mapping[str, object]) -> None:
                _line(log, {"event": event, "at": round(at, 6), **fields})

            measured = simulate(scenario, destination, log_event, within)
            figures = {name: getattr(measured, name) for name in FIGURES}
            _line(log, {"event": "run.end", **head, **figures})
    return SimulationRun(
        values=task.values, seed=scenario.seed, destination=destination.name, measured=measured
    )


@contextmanager
def _log(path: Path) -> Iterator[TextIOWrapper]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as log:
            yield log
    except OSError as error:  # the disk may become full at any time
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def _line(log: TextIOWrapper, fields: Mapping[str, object]) -> None:
    log.write(msgspec.json.encode(fields).decode())
    log.write("\n")
