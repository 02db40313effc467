"""Every engine with real parts: a worker killed in the middle, a rate held, nothing left behind."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync import __version__
from resourcesync.adapters.system import SystemClock
from resourcesync.app.engines import open_engine
from resourcesync.cluster.politeness import HostLimits
from resourcesync.cluster.unit_runner import run_units
from resourcesync.errors import EngineError
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.engines import ExecutionEngine
from resourcesync.ports.engines import UnitOutcome as Became
from tests.support.cluster import engines
from tests.support.cluster.polite_work import Batch, busiest, fetch_batch
from tests.support.cluster.unit_work import do_a_little, do_nothing, pieces
from tests.support.commands.run import free_port
from tests.support.servers.nginx import installed, serving

RATE: Final = 50.0
BATCHES: Final = 12
BATCH: Final = 25
EXECUTOR: Final = "CoarseGrainedExecutorBackend"


def run(asked: Asked) -> Outcome:
    """Open each engine once, and hold it to its promises."""
    outcome = Outcome(missing=engines.spark_missing())
    if outcome.missing:
        return outcome
    for name, opened in _engines(asked.folder).items():
        began = time.monotonic()
        with opened() as engine:
            outcome.add(f"{name}: seconds to begin", time.monotonic() - began)
            _measure(name, engine, asked, outcome)
            _kill(name, engine, asked, outcome)
            if installed():
                _hold_the_rate(name, engine, asked.folder, outcome)
        left = engines.children("java") + engines.children("spawn_main")
        outcome.require(engines.gone(left), f"{name}: processes are left: {left}")
    _restart(asked, outcome)
    _misfits(asked.folder, outcome)
    return outcome


def _engines(folder: Path) -> dict[str, Callable[[], AbstractContextManager[ExecutionEngine]]]:
    return {
        "processes": lambda: open_engine("processes:2"),
        "threads of others": engines.threads,
        "Dask daemons": lambda: _dask(folder),
        "Spark local[2]": lambda: _spark("local[2]"),
        "Spark local-cluster": lambda: _spark("local-cluster[2,1,1024]"),
    }


@contextmanager
def _dask(folder: Path) -> Iterator[ExecutionEngine]:
    with engines.dask_cluster(folder, workers=3) as address, open_engine(address) as engine:
        yield engine


@contextmanager
def _spark(master: str) -> Iterator[ExecutionEngine]:
    with pytest.MonkeyPatch.context() as patch, engines.spark(master, patch) as engine:
        yield engine


def _measure(name: str, engine: ExecutionEngine, asked: Asked, outcome: Outcome) -> None:
    units = pieces(asked.folder, asked.size)
    list(
        run_units(
            engine, do_nothing, units[:4], limits=HostLimits(), cancel=CancelToken(SystemClock())
        )
    )
    began = time.monotonic()
    found = list(
        run_units(engine, do_nothing, units, limits=HostLimits(), cancel=CancelToken(SystemClock()))
    )
    outcome.add(f"{name}: ms for each unit", (time.monotonic() - began) * 1_000 / asked.size)
    outcome.require(len(found) == asked.size, f"{name}: {len(found)} outcomes")


def _kill(name: str, engine: ExecutionEngine, asked: Asked, outcome: Outcome) -> None:
    folder = asked.folder / name.replace(" ", "-")
    folder.mkdir()
    units, found = pieces(folder, asked.size), list[Became]()
    began = time.monotonic()
    for became in run_units(
        engine, do_a_little, units, limits=HostLimits(), cancel=CancelToken(SystemClock())
    ):
        found.append(became)
        if len(found) == asked.size // 2:
            for pid in _victims(name, became):
                os.kill(pid, signal.SIGKILL)
    outcome.add(f"{name}: seconds with a worker killed", time.monotonic() - began)
    wanted = sorted(unit.name for unit in units)
    outcome.require(
        sorted(outcome.name for outcome in found) == wanted, f"{name}: not each unit once"
    )
    outcome.require(not [outcome for outcome in found if outcome.failed], f"{name}: a unit failed")
    objects = sorted(path.stem for path in folder.glob("*.done"))
    outcome.require(objects == wanted, f"{name}: objects are missing")


def _victims(name: str, became: Became) -> list[int]:
    if name.startswith("threads"):
        return []
    executors = engines.children(EXECUTOR)
    return executors[:1] or [became.details["pid"]]


def _hold_the_rate(name: str, engine: ExecutionEngine, folder: Path, outcome: Outcome) -> None:
    tree, names = folder / "tree", [f"u{number}" for number in range(BATCHES)]
    for text in names:
        (tree / text).mkdir(parents=True, exist_ok=True)
        for number in range(BATCH):
            (tree / text / f"{number}").write_text("content\n")
    with serving(tree, folder / f"nginx-{name.replace(' ', '-')}") as server:
        units = [Batch(name, server.url.removeprefix("http://"), BATCH) for name in names]
        manners = HostLimits(units=4, rate=RATE)
        done = run_units(
            engine, fetch_batch, units, limits=manners, cancel=CancelToken(SystemClock())
        )
        rows = sum(outcome.rows for outcome in done)
        moments = server.moments()
    worst = busiest(moments, RATE, lanes=min(4, engine.slots))
    mean = len(moments) / (moments[-1][0] - moments[0][0])
    outcome.add(f"{name}: requests in the busiest second, of {RATE:.0f}", worst.asked)
    outcome.add(f"{name}: requests per second, mean", mean)
    outcome.require(rows == BATCHES * BATCH, f"{name}: {rows} rows")
    outcome.require(worst.asked <= worst.allowed, f"{name}: asked {worst}")
    outcome.require(mean <= RATE * 1.1, f"{name}: {mean} requests per second")


def _restart(asked: Asked, outcome: Outcome) -> None:
    """Have the scheduler and all workers of Dask die, and others begin in their place."""
    folder, port = asked.folder / "restart", free_port()
    folder.mkdir()
    found = list[Became]()
    began = time.monotonic()
    with ExitStack() as first, ExitStack() as second:
        address = first.enter_context(engines.dask_cluster(folder, port=port))
        engine = second.enter_context(open_engine(address))
        units = pieces(folder, asked.size)
        for became in run_units(
            engine, do_a_little, units, limits=HostLimits(), cancel=CancelToken(SystemClock())
        ):
            found.append(became)
            if len(found) == asked.size // 2:
                first.close()
                second.enter_context(engines.dask_cluster(folder, port=port))
    outcome.add("Dask begun anew: seconds", time.monotonic() - began)
    names = sorted(outcome.name for outcome in found if not outcome.failed)
    outcome.require(names == sorted(unit.name for unit in units), "Dask begun anew: not each once")


def _misfits(folder: Path, outcome: Outcome) -> None:
    """Meet clusters that cannot do our units; each must be told in one line, with what helps."""
    other = folder / "other" / "resourcesync"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text('__version__ = "0.0.1"\n')
    meetings = {
        "another version on Dask": engines.dask_cluster(folder, 1, path=other.parent),
        "Dask without workers": engines.dask_cluster(folder, 0),
    }
    for name, cluster in meetings.items():
        told = ""
        with cluster as address:
            try:
                with open_engine(address):
                    pass
            except EngineError as error:
                told = f"{error.message}; {error.hint}"
        outcome.add(name, told.replace(__version__, "VERSION")[:110])
        outcome.require(told and "\n" not in told, f"{name}: told {told!r}")


CAMPAIGN: Final = Campaign(run=run, size=100, unit="units for each engine")
