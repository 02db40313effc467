"""A worker that is killed, or taken for dead: its work is done again, and it changes nothing."""

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from resourcesync import Mirror
from resourcesync.adapters.system import SystemClock
from resourcesync.app.mirror_home import Home
from resourcesync.app.mirror_opening import open_destination
from resourcesync.app.mirror_workers import Workers
from resourcesync.destination.options import PullOptions
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Copy
from resourcesync.ports import CancelToken
from tests.support.cluster import engines
from tests.support.cluster.engines import children
from tests.support.servers.tiny_source import STAMP, Answer, TinySource

MANY = {f"/{number:03}.bin": os.urandom(200) * (number % 7 * 50 + 1) for number in range(120)}
ROWS = 10


class Deadly(dict[str, Answer]):
    """Answers of a Source; a worker is killed when one of them is asked for the first time."""

    def __init__(self, answers: dict[str, Answer], path: str, word: str) -> None:
        super().__init__(answers)
        self._path = path
        self._word = word
        self.killed: list[int] = []

    def get(self, path: str, default: object = None) -> object:  # type: ignore[override]
        if path == self._path and not self.killed:
            self.killed = children(self._word)[-1:]
            for pid in self.killed:
                os.kill(pid, signal.SIGKILL)
        return super().get(path, default)


def files(mirror: Path) -> dict[str, bytes]:
    return {f"/{path.name}": path.read_bytes() for path in mirror.iterdir() if path.is_file()}


def copies(mirror: Path) -> list[Copy]:
    with SqliteMirrorState(mirror / ".resourcesync" / "state.db", read_only=True) as state:
        return list(state.copies())


def rows(mirror: Path) -> list[tuple[Any, ...]]:
    """Return what a mirror knows of its copies, but for when and as which file they came."""
    return [
        (copy.uri, copy.path, copy.length, copy.digests, copy.listed, copy.fixity)
        for copy in copies(mirror)
    ]


def pull(source: TinySource, folder: Path, engine: str | None, told: list[str]) -> str:
    workers = None if engine is None else Workers(engine=engine, unit_rows=ROWS)
    with open_destination(
        Home(folder, "", workers),
        source=source.url,
        report=lambda event, fields: told.append(f"{event} {fields}"),
        cancel=CancelToken(SystemClock()),
    ) as destination:
        return str(destination.pull(PullOptions()).state)


SLOW = pytest.mark.timeout(600)  # Java takes a minute where others keep the processors busy


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("processes:2", "spawn_main"),
        pytest.param("dask", "--no-nanny", marks=SLOW),
        pytest.param("spark:local[2]", "pyspark.daemon", marks=SLOW),
    ],
)
def test_the_copies_are_those_of_a_pull_by_one_process_although_a_worker_was_killed(
    name: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    with ExitStack() as stack:
        source = stack.enter_context(TinySource())
        source.offer(MANY)
        assert pull(source, tmp_path / "alone", None, told) == "in sync"
        if name == "dask":
            name = stack.enter_context(engines.dask_cluster(tmp_path, 2))
        elif name.startswith("spark"):
            engines.prepare_spark(monkeypatch)
        source.answers = deadly = Deadly(source.answers, "/060.bin", word)

        assert pull(source, tmp_path / "workers", name, told) == "in sync"

    assert deadly.killed
    if name.startswith("processes"):  # the others begin again by themselves
        assert sum("a worker died" in line for line in told) == 1, told
    assert files(tmp_path / "workers") == files(tmp_path / "alone") == MANY
    assert rows(tmp_path / "workers") == rows(tmp_path / "alone")
    assert not list((tmp_path / "workers" / ".resourcesync" / "tmp").iterdir())


NAMES = [f"/{number}.txt" for number in range(5)]
OLD = {name: f"{name} old".encode() for name in NAMES}
NEW = {name: f"{name} new".encode() for name in NAMES}
HELD = NAMES[2]


class Late(dict[str, Answer]):
    """Answers of a Source that changes while the first answer about one resource is on its way."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        super().__init__(answers)
        self.is_on_its_way = threading.Event()
        self.may_arrive = threading.Event()

    def get(self, path: str, default: object = None) -> object:  # type: ignore[override]
        answer = super().get(path, default)
        if path == HELD and not self.is_on_its_way.is_set():
            self.is_on_its_way.set()
            self.may_arrive.wait(30)
        return answer


class Overtaking(Executor):
    """Does each unit twice: the second worker begins and ends while the first waits."""

    def __init__(self, late: Late, change: Callable[[], None]) -> None:
        self._late = late
        self._change = change
        self._pool = ThreadPoolExecutor(1)
        self.first: list[Future[Any]] = []

    def submit(self, fn: Any, /, *words: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.first.append(self._pool.submit(fn, *words))
        assert self._late.is_on_its_way.wait(30)
        self._change()
        future.set_result(fn(*words))
        return future

    def arrive(self) -> None:
        self._late.may_arrive.set()
        self._pool.shutdown(wait=True)


def offer(source: TinySource, texts: dict[str, bytes]) -> None:
    source.offer_entries(
        [f"<url><loc>{source.url}{name}</loc><lastmod>{STAMP}</lastmod></url>" for name in texts]
    )
    for name, body in texts.items():
        source.put(name, body)


def staged(mirror: Path) -> list[Path]:
    return list((mirror / ".resourcesync" / "tmp").iterdir())


def test_a_worker_of_an_earlier_attempt_changes_no_copy_and_no_row(tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    with TinySource() as source:
        offer(source, OLD)
        source.answers = late = Late(source.answers)
        executor = Overtaking(late, lambda: offer(source, NEW))
        mirror = Mirror(source.url, folder, engine=executor)

        with mirror:
            assert mirror.pull().state == "in sync"
            before = copies(folder)
            executor.arrive()
            (ended,) = executor.first
            assert ended.result().rows == len(NAMES), "the late worker staged all"

        assert files(folder) == NEW
        assert copies(folder) == before
        assert not list((folder / ".resourcesync" / "quarantine").iterdir())
        assert mirror.audit().in_sync
        assert not staged(folder), "what it staged is removed"


def test_a_worker_of_an_earlier_run_changes_no_copy_and_no_row(tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    with TinySource() as source:
        offer(source, OLD)
        source.answers = late = Late(source.answers)
        executor = Overtaking(late, lambda: offer(source, NEW))
        assert Mirror(source.url, folder, engine=executor).pull().state == "in sync"
        newest = {name: body + b"est" for name, body in NEW.items()}
        source.offer(newest, at="2026-02-01T00:00:00Z")
        with ThreadPoolExecutor(2) as pool:
            mirror = Mirror(source.url, folder, engine=pool)
            assert mirror.pull().state == "in sync"
            before = copies(folder)

            executor.arrive()

            assert executor.first[0].result().rows == len(NAMES), "the late worker staged all"
            assert len(staged(folder)) == len(NAMES)
            assert copies(folder) == before
            assert files(folder) == newest
            again = mirror.pull(mode="baseline")
        assert (again.state, again.listed.unchanged) == ("in sync", len(NAMES))
        assert mirror.audit(method="hash").in_sync
        assert not staged(folder), "the next run removes what it staged"
