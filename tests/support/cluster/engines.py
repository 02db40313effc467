"""Engines of our tests, each begun once: processes, threads, Dask's own daemons, Spark on Java."""

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Final

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.ports import CancelToken
from resourcesync_cluster.engines.executors import ExecutorEngine, open_engine
from resourcesync_cluster.politeness import HostLimits
from resourcesync_cluster.ports import ExecutionEngine, UnitOutcome
from resourcesync_cluster.unit_runner import run_units
from tests.support.cluster.unit_work import Piece, do_piece
from tests.support.commands.run import script
from tests.support.servers.second_try import Program, started

ROOT: Final = Path(__file__).parents[3]
"""Where the modules of tests are, which workers must import."""


def done(
    engine: ExecutionEngine, units: list[Piece], manners: HostLimits | None = None
) -> list[UnitOutcome]:
    return list(
        run_units(
            engine,
            do_piece,
            units,
            limits=manners or HostLimits(),
            cancel=CancelToken(SystemClock()),
        )
    )


@contextlib.contextmanager
def dask_cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    paths = [f"{ROOT}", *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    dask, host = (sys.executable, str(script("dask"))), ("--host", "127.0.0.1", "--no-dashboard")

    def scheduler(ports: Mapping[str, int]) -> list[str]:
        return [*dask, "scheduler", *host, "--port", f"{ports['']}"]

    with (
        started(scheduler, folder / "dask.log", ready=Program.accepts, env=env) as found,
        contextlib.ExitStack() as ending,
    ):
        ending.callback(found.kill)  # nothing of it is kept, and this takes no time
        own = (
            "--nthreads",
            "1",
            "--memory-limit",
            "0",
            "--no-nanny",
            "--local-directory",
            str(folder),
        )
        for number in range(workers):
            worker = [*dask, "worker", f"tcp://127.0.0.1:{found.port}", *host, *own]
            ending.callback(Program(worker, folder / f"worker-{number}.log", {}, {"env": env}).kill)
        yield f"dask://127.0.0.1:{found.port}"


def spark_missing() -> str:
    if shutil.which("java") is None:
        return "there is no Java here"
    if find_spec("pyspark") is None:
        return "Spark is not installed: pip install -r requirements/night.txt"
    return ""


def prepare_spark(patch: pytest.MonkeyPatch, **more: str) -> None:
    if reason := spark_missing():
        pytest.skip(reason)
    # What lives for seconds is not worth the second compiler's work: half of all it costs.
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
        **more,
    }
    options = " ".join(f"--conf {quote(f'{key}={value}')}" for key, value in conf.items())
    patch.setenv("PYSPARK_SUBMIT_ARGS", f"{options} pyspark-shell")
    patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    patch.setenv("PYTHONPATH", f"{ROOT}")
    patch.delenv("PYSPARK_PYTHON", raising=False)


@contextlib.contextmanager
def spark(master: str, patch: pytest.MonkeyPatch, **more: str) -> Iterator[ExecutionEngine]:
    """Open Spark on this machine's Java; skip when there is none of them."""
    prepare_spark(patch, **more)
    with open_engine(f"spark:{master}") as engine:
        yield engine


@contextlib.contextmanager
def threads() -> Iterator[ExecutionEngine]:
    with ThreadPoolExecutor(2) as executor:
        yield ExecutorEngine(executor, lambda _: 2)


def children(word: str) -> list[int]:
    parents, found = {}, []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            pid = int(entry.name)
            parents[pid] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if word.encode() in (entry / "cmdline").read_bytes():
                found.append(pid)
    return [pid for pid in found if _is_below(pid, os.getpid(), parents)]


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != ancestor:
        pid = parents[pid]
    return pid == ancestor


def gone(pids: list[int], seconds: float = 10) -> bool:
    for _ in range(int(seconds / 0.05)):
        if not any(_lives(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]) != "Z"
    return False
