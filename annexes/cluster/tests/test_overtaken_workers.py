"""A worker that was taken for dead goes on while another does its unit: it changes nothing."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from resourcesync import Mirror
from resourcesync.mirror_state.database import SqliteMirrorState
from tests.support.servers.tiny_source import STAMP, Answer, TinySource

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
        """Do a unit at once."""
        future: Future[Any] = Future()
        self.first.append(self._pool.submit(fn, *words))
        assert self._late.is_on_its_way.wait(30)
        self._change()
        future.set_result(fn(*words))
        return future

    def arrive(self) -> None:
        """Let the first workers end."""
        self._late.may_arrive.set()
        self._pool.shutdown(wait=True)


def offer(source: TinySource, texts: dict[str, bytes]) -> None:
    """Serve resources, and lists that say nothing of their bytes."""
    source.offer_entries(
        [f"<url><loc>{source.url}{name}</loc><lastmod>{STAMP}</lastmod></url>" for name in texts]
    )
    for name, body in texts.items():
        source.put(name, body)


def files(mirror: Path) -> dict[str, bytes]:
    return {f"/{path.name}": path.read_bytes() for path in mirror.glob("*.txt")}


def rows(mirror: Path) -> list[Any]:
    with SqliteMirrorState(mirror / ".resourcesync" / "state.db", read_only=True) as state:
        return list(state.copies())


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
            before = rows(folder)
            executor.arrive()
            (ended,) = executor.first
            assert ended.result().rows == len(NAMES), "the late worker staged all"

        assert files(folder) == NEW
        assert rows(folder) == before
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
            before = rows(folder)

            executor.arrive()

            assert executor.first[0].result().rows == len(NAMES), "the late worker staged all"
            assert len(staged(folder)) == len(NAMES)
            assert rows(folder) == before
            assert files(folder) == newest
            again = mirror.pull(mode="baseline")
        assert (again.state, again.listed.unchanged) == ("in sync", len(NAMES))
        assert mirror.audit(method="hash").in_sync
        assert not staged(folder), "the next run removes what it staged"
