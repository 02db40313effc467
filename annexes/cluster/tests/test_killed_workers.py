"""A worker that is killed: its work is done again, and who runs the pull is told."""

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.mirrors.mirror_state import Home
from resourcesync.app.mirrors.opening import open_destination
from resourcesync.app.mirrors.workers import Workers
from resourcesync.destination.options import PullOptions
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.ports import CancelToken
from tests.support.cluster import engines
from tests.support.cluster.engines import children
from tests.support.servers.tiny_source import Answer, TinySource

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


def rows(mirror: Path) -> list[tuple[Any, ...]]:
    """Return what a mirror knows of its copies, but for when and as which file they came."""
    with SqliteMirrorState(mirror / ".resourcesync" / "state.db", read_only=True) as state:
        return [
            (copy.uri, copy.path, copy.length, copy.digests, copy.listed, copy.fixity)
            for copy in state.copies()
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
