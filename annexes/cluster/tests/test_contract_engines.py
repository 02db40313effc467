"""Every engine does every unit once, loses none with a worker, and leaves nothing behind."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest

from resourcesync import __version__
from resourcesync.adapters.system import SystemClock
from resourcesync.errors import EngineError
from resourcesync.ports import CancelToken
from resourcesync_cluster.engines.executors import (
    ExecutorEngine,
    check_version,
    open_engine,
    run_unit,
)
from resourcesync_cluster.engines.spark import SparkExecutor, cause_of
from resourcesync_cluster.politeness import HostLimits
from resourcesync_cluster.ports import ExecutionEngine, HostShare
from resourcesync_cluster.unit_runner import run_units
from tests.support.cluster import engines
from tests.support.cluster.polite_work import Batch, busiest, fetch_batch
from tests.support.cluster.unit_work import Piece, begun, do_piece, pieces
from tests.support.servers.nginx import installed, serving
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with engines.dask_cluster(tmp_path_factory.mktemp("dask")) as address:
        yield address


def opened(name: str, request: pytest.FixtureRequest) -> AbstractContextManager[ExecutionEngine]:
    if name == "threads":
        return engines.threads()
    if name == "spark":
        return engines.spark("local[2]", request.getfixturevalue("monkeypatch"))
    return open_engine(request.getfixturevalue("dask") if name == "dask" else "processes:2")


SLOW = pytest.mark.timeout(600)  # Java takes a minute where others keep the processors busy


@pytest.mark.parametrize(
    "name",
    [
        "threads",
        "processes",
        pytest.param("dask", marks=SLOW),
        pytest.param("spark", marks=[SLOW, pytest.mark.night]),
    ],
)
def test_every_unit_is_done_once_and_what_goes_wrong_is_told_in_one_line(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    special = {"n3": "raises", "n5": "exits"} | ({} if name == "threads" else {"n7": "dies first"})
    units = pieces(tmp_path, 12, **special)
    with opened(name, request) as engine:
        assert engine.slots >= 1
        found = {outcome.name: outcome for outcome in engines.done(engine, units)}
        after = engines.done(engine, [Piece("after", str(tmp_path))])

    failed = {name: outcome.failed for name, outcome in found.items() if outcome.failed}
    assert found.keys() == {unit.name for unit in units}
    assert failed == {
        "n3": ("engine", "ValueError: no such thing as this"),
        "n5": ("engine", "SystemExit: 3"),
    }
    assert all(found[unit.name].rows == len(unit.name) for unit in units if unit.name not in failed)
    assert {path.stem for path in tmp_path.glob("*.done")} == found.keys() - failed.keys() | {
        "after"
    }
    assert [outcome.name for outcome in after] == ["after"]
    assert len(begun(units[0])) == 1
    if name != "threads":
        assert len(begun(units[7])) >= 2
    assert engines.gone(engines.children("java") + engines.children("spawn_main"))


def test_an_engine_that_is_closed_gives_up_what_is_under_way_and_leaves_no_process(
    tmp_path: Path,
) -> None:
    with open_engine("processes:2") as engine:
        unit = Piece("long", str(tmp_path), "lasts")
        promise = engine.submit(do_piece, unit, HostShare())
        while not begun(unit):
            pass
        pids = engines.children("spawn_main")
        assert begun(unit)[0] in pids

        following = [engine.submit(do_piece, Piece(n, str(tmp_path)), HostShare()) for n in "abcde"]

    assert engines.gone(pids)
    assert (tmp_path / "long.tidy").exists()
    with pytest.raises(BrokenExecutor):
        promise.result()
    for other in following:
        with suppress(Exception):
            other.result()
    assert not (tmp_path / "e.begun").exists()
    with pytest.raises(EngineError):
        engine.submit(do_piece, unit, HostShare())


CODE = """
import sys, time
from pathlib import Path
from resourcesync_cluster.engines.executors import open_engine
from resourcesync_cluster.ports import HostShare
from tests.support.cluster.unit_work import Piece, begun, do_piece
if __name__ == "__main__":
    unit = Piece("long", sys.argv[1], "lasts")
    with open_engine("processes:1") as engine:
        engine.submit(do_piece, unit, HostShare())
        while not begun(unit):
            time.sleep(0.02)
        print(*begun(unit), flush=True)
        time.sleep(60)
"""


def test_processes_end_with_the_one_that_began_them_even_if_that_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "coordinator.py"
    program.write_text(CODE)
    with subprocess.Popen(
        [sys.executable, program, tmp_path],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{engines.ROOT}"},
    ) as process:
        assert process.stdout is not None
        worker = int(process.stdout.readline())
        assert not engines.gone([worker], 0.1)
        process.kill()

    assert engines.gone([worker])
    assert (tmp_path / "long.tidy").exists()


def test_an_executor_of_others_stays_theirs(tmp_path: Path) -> None:
    with engines.threads() as engine:
        assert isinstance(engine, ExecutorEngine)
        engine.close()
        assert not engine.restart_workers()
        assert len(engines.done(engine, pieces(tmp_path, 3))) == 3

    with pytest.raises(EngineError, match="accepts no more work"):
        engine.submit(do_piece, Piece("late", str(tmp_path)), HostShare())


def test_a_worker_with_another_version_does_no_unit(tmp_path: Path) -> None:
    unit = Piece("one", str(tmp_path))

    with pytest.raises(EngineError, match=r"and the pull has 0\.0\.1"):
        run_unit(do_piece, unit, HostShare(), "0.0.1")

    assert not begun(unit)
    assert run_unit(do_piece, unit, HostShare(), __version__).failed is None


RATE = 40.0


@pytest.mark.skipif(not installed(), reason="nginx is not here")
def test_two_processes_together_ask_no_more_than_the_rate(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    names = [f"u{number}" for number in range(6)]
    for name in names:
        (tree / name).mkdir(parents=True)
        for number in range(15):
            (tree / name / f"{number}").write_text("content\n")

    with serving(tree, tmp_path / "nginx") as server, open_engine("processes:2") as engine:
        units = [Batch(name, server.url.removeprefix("http://"), 15) for name in names]
        found = list(
            run_units(
                engine,
                fetch_batch,
                units,
                limits=HostLimits(units=4, rate=RATE, jobs=4),
                cancel=CancelToken(SystemClock()),
            )
        )
        wait_until(lambda: len(server.moments()) >= 90)  # it logs after it answered
        moments = server.moments()

    worst = busiest(moments, RATE, lanes=2)
    assert [outcome.rows for outcome in found] == [15] * 6
    assert len(moments) == 90
    assert worst.asked <= worst.allowed
    assert len(moments) / (moments[-1][0] - moments[0][0]) <= RATE * 1.2


HEAD = """\
An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 1 times
"""
JAVA = "\tat org.apache.spark.rdd.RDD.iterator(RDD.scala:338)\n" * 100


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            HEAD + JAVA + "Traceback (most recent call last):\n  raise EngineError(x)\n"
            "resourcesync.errors.EngineError: ValueError: no such thing\n\n" + JAVA,
            "ValueError: no such thing",
        ),
        (
            HEAD + JAVA + "ModuleNotFoundError: No module named 'resourcesync'\n" + JAVA,
            "ModuleNotFoundError: No module named 'resourcesync'",
        ),
        (
            HEAD
            + JAVA
            + "Caused by: org.apache.spark.SparkException: Python worker exited\n"
            + JAVA
            + "Caused by: java.io.EOFException\n"
            + JAVA,
            "Python worker exited",
        ),
        (HEAD + JAVA, "Job aborted due to stage failure: Task 0 failed 1 times"),
        ("Answer from Java side is empty", "Answer from Java side is empty"),
        ("", "no cause"),
        ("x" * 2_000, "x" * 500),
    ],
)
def test_the_cause_is_told_in_one_line(text: str, cause: str) -> None:
    assert cause_of(text) == cause


class Busy:
    """A context of Spark's, as far as we use it, whose workers do the work of others."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def setJobGroup(self, group: str, name: str, *, interruptOnCancel: bool) -> None:  # noqa: N803
        pass

    def cancelJobGroup(self, group: str) -> None:
        self.cancelled.set()

    def parallelize(self, items: list[object], parts: int) -> "Busy":
        return self

    def map(self, function: Callable[[object], object]) -> "Busy":
        return self

    def collect(self) -> list[object]:
        self.cancelled.wait()
        raise RuntimeError("it was cancelled")


def test_a_cluster_that_begins_nothing_is_given_up() -> None:
    executor = SparkExecutor(Busy())
    with pytest.raises(EngineError, match=r"no Spark worker started the task within 0.05 s"):
        check_version(executor, "Spark", 0.05)
    executor.shutdown()
