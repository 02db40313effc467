"""A worker that was taken for dead goes on while another does its unit: it is too late."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from resourcesync import Mirror
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
    """Does each unit that fetches twice: the second worker begins and ends while the first waits.

    Args:
        late: The Source's answers; the first worker waits for one of them.
        change: Changes the Source before the second worker begins.
    """

    def __init__(self, late: Late, change: Callable[[], None]) -> None:
        self._late = late
        self._change = change
        self.first: list[Any] = []

    def submit(self, fn: Any, /, *words: Any, **_: Any) -> Future[Any]:
        """Do a unit at once."""
        future: Future[Any] = Future()
        _, unit, _ = words
        if not hasattr(unit, "work"):
            future.set_result(fn(*words))
            return future
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(fn, *words)
            assert self._late.is_on_its_way.wait(30)
            self._change()
            second = fn(*words)
            self._late.may_arrive.set()
            self.first.append(first.result())
        future.set_result(second)
        return future


def offer(source: TinySource, texts: dict[str, bytes]) -> None:
    """Serve resources, and lists that say nothing of their bytes."""
    source.offer_entries(
        [f"<url><loc>{source.url}{name}</loc><lastmod>{STAMP}</lastmod></url>" for name in texts]
    )
    for name, body in texts.items():
        source.put(name, body)


def test_an_overtaken_worker_does_not_write_over_the_copies_of_the_other(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    with TinySource() as source:
        offer(source, OLD)
        source.answers = late = Late(source.answers)
        executor = Overtaking(late, lambda: offer(source, NEW))
        mirror = Mirror(source.url, f"file://{store}", state=tmp_path / "home", engine=executor)

        pulled = mirror.pull()

        assert pulled.state == "in sync"
        assert executor.first[0].failed[0] == "run-over"
        assert {f"/{path.name}": path.read_bytes() for path in store.glob("*.txt")} == NEW
        assert not list((store / ".resourcesync").rglob("quarantine/*"))
        assert mirror.audit().in_sync


class Disowned(Executor):
    """Does each unit once; another attempt at it begins just before the result is returned.

    Args:
        store: The folder of the store.
    """

    def __init__(self, store: Path) -> None:
        self._store = store

    def submit(self, fn: Any, /, *words: Any, **_: Any) -> Future[Any]:
        """Do a unit at once."""
        future: Future[Any] = Future()
        outcome = fn(*words)
        for mark in self._store.rglob("*.begun"):
            mark.write_text("another")
        future.set_result(outcome)
        return future


def test_the_result_of_an_attempt_that_does_not_own_its_unit_does_not_count(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    with TinySource() as source:
        offer(source, OLD)
        home, address = tmp_path / "home", f"file://{store}"

        disowned = Mirror(source.url, address, state=home, engine=Disowned(store)).pull()
        after = Mirror(source.url, address, state=home).pull()

    assert disowned.state != "in sync"
    assert after.state == "in sync"
