"""``feed:-``: what comes on standard input is taken when it can be recorded."""

import os
import threading
import time
from collections.abc import Iterator

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.backends.feeds import line_feeds
from resourcesync.backends.feeds.line_feeds import StandardInput
from resourcesync.documents.ndjson import MAX_LINE
from resourcesync.errors import ConfigurationError, StorageError
from resourcesync.ports import Clock
from tests.support.accounts.feeding import line, names, omissions
from tests.support.waiting import PlannedClock


class Pipe:
    """A pipe, with an account at its end."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.reads, self.writes = os.pipe()
        self.account = StandardInput(clock or SystemClock(), self.reads)

    def write(self, *lines: bytes) -> None:
        os.write(self.writes, b"".join(lines))

    def close(self) -> None:
        os.close(self.writes)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.reads)


def test_once_it_is_read_to_its_end_and_says_so(pipe: Pipe) -> None:
    pipe.write(line("a"), b"\n", b"{]\n", line("b"), line("c").rstrip())
    pipe.close()

    told = list(pipe.account.changes(pipe.account.position(), 0))

    assert names(told) == ["a", "b", "c"]
    assert omissions(told)[0][0] == "{]"
    assert [lot.is_last for lot in told] == [False] * (len(told) - 1) + [True]
    assert list(pipe.account.changes("", 0)) == []


def test_what_comes_is_told_in_small_lots_by_time_and_the_rest_stays_in_the_pipe() -> None:
    clock = PlannedClock()
    pipe = Pipe(clock)
    pipe.write(line("a"), line("b")[:7])
    clock.after(0.2, lambda: pipe.write(line("b")[7:], line("c")))
    telling = pipe.account.changes("", 3)
    assert names([next(telling)]) == ["a", "b", "c"]
    assert 0.4 < clock.monotonic() < 1.5

    pipe.write(line("d"))
    telling.close()  # type: ignore[attr-defined]

    assert os.read(pipe.reads, 1000) == line("d")
    pipe.close()
    os.close(pipe.reads)


def test_the_lots_of_a_busy_pipe_are_not_too_large(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    clock = SystemClock()
    monkeypatch.setattr(clock, "sleep", slept.append)
    account = StandardInput(clock, pipe.reads)
    short = b'{"uri":"a:","change":"deleted"}\n'

    def write() -> None:
        for _ in range(12):
            pipe.write(short * 2_000)
        pipe.close()

    writing = threading.Thread(target=write)
    writing.start()
    told = [len(lot.changes) for lot in account.changes("", 0)]
    writing.join()

    assert sum(told) == 24_000
    assert max(told) <= 10_000
    assert len(slept) < len(told)  # nothing is waited for where much is there


def test_who_waits_is_told_in_time_that_nothing_came(pipe: Pipe) -> None:
    began = time.monotonic()
    told = list(pipe.account.changes("", 0.3))

    assert (names(told), told[:1]) == ([], [])
    assert 0.25 < time.monotonic() - began < 1
    assert names([next(pipe.account.changes("", 0))]) == []  # a chance to stop, after a second
    pipe.close()


def test_a_line_that_is_too_long_is_passed_over(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_feeds, "GATHER_SECONDS", 0.01)

    def write() -> None:
        pipe.write(line("a"))
        for _ in range(20):
            pipe.write(b"y" * 65_536)
        pipe.write(b"\n", line("b"))
        pipe.close()

    writing = threading.Thread(target=write)
    writing.start()
    told = list(pipe.account.changes("", 0))
    writing.join()

    assert names(told) == ["a", "b"]
    assert omissions(told) == [("y" * 200, f"longer than {MAX_LINE:,} bytes")]


def test_a_descriptor_that_cannot_be_read_is_an_error() -> None:
    pipe = Pipe()
    pipe.close()
    os.close(pipe.reads)

    with pytest.raises(StorageError, match="standard input"):
        list(pipe.account.changes("", 0))
    with pytest.raises(ConfigurationError):
        list(pipe.account.resources())
