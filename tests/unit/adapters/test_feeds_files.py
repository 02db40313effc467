"""``feed:FILE``: lines in a file that grows, is renamed, copied, emptied and cut."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.adapters.system import SystemClock
from resourcesync.backends.feeds import line_feeds
from resourcesync.backends.feeds.line_feeds import GrowingFile
from resourcesync.documents.ndjson import MAX_LINE
from resourcesync.errors import (
    ConfigurationError,
    DiscontinuityError,
    Remedy,
    StateError,
    StorageError,
)
from resourcesync.ports import Clock
from resourcesync.ports.accounts import ChangeBatch
from tests.contracts.account_suite import AccountSuite
from tests.support.accounts.feeding import line, names, omissions
from tests.support.waiting import PlannedClock


class TestGrowingFile(AccountSuite):
    can_list_resources = False
    path: Path

    @pytest.fixture
    def account(self, tmp_path: Path) -> GrowingFile:
        self.path = tmp_path / "feed"
        self.path.touch()
        return GrowingFile(self.path, SystemClock())

    def put(self, name: str, content: bytes) -> str:
        add(self.path, line(name, "created", content))
        return f"https://h/{name}"

    def remove(self, name: str) -> None:
        add(self.path, line(name, "deleted"))

    def outage(self) -> AbstractContextManager[None]:
        return _elsewhere(self.path)

    def expire_changes(self) -> bool:
        self.path.write_bytes(b"")
        return False  # its position was before the first line: nothing of what was read is lost


@contextmanager
def _elsewhere(path: Path) -> Iterator[None]:
    path.rename(path.parent.parent / "elsewhere")
    yield
    (path.parent.parent / "elsewhere").rename(path)


def add(path: Path, *lines: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(b"".join(lines))


def aged(path: Path, seconds: float = 60) -> Path:
    """Let a file be one that nobody wrote to for a while."""
    moment = time.time() - seconds
    os.utime(path, (moment, moment))
    return path


class Reader:
    """A reader that goes on from where it was."""

    def __init__(self, path: Path, clock: Clock | None = None, **options: bool) -> None:
        self.path = path
        self._account = GrowingFile(path, clock or SystemClock(), **options)
        self.position = self._account.position()

    def read(self, wait: float = 0) -> list[ChangeBatch]:
        told = list(GrowingFile.changes(self._account, self.position, wait))
        if told:
            self.position = told[-1].position
        return told


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_feeds, "POLL_SECONDS", 0.05)


@pytest.fixture
def clock() -> PlannedClock:
    return PlannedClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "changes.ndjson"
    path.touch()
    return path


def test_each_line_is_told_once_and_a_last_line_waits_for_its_end(path: Path) -> None:
    reader = Reader(path)
    add(path, line("a"), line("b"), line("c")[:-9])
    assert names(reader.read()) == ["a", "b"]
    assert names(reader.read()) == []

    add(path, line("c")[-9:], b"\n", line("d"))

    assert names(reader.read()) == ["c", "d"]


class Writer:
    """Writes lines of its own, whole and in parts, and puts the file away."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written: list[str] = []
        self.rest = b""
        self._put_away = 0

    def add(self, count: int) -> None:
        self.end()
        for _ in range(count):
            self.written.append(f"n{len(self.written)}{'x' * (len(self.written) % 90)}")
            add(self.path, line(self.written[-1]))

    def begin(self, size: int) -> None:
        self.end()
        self.written.append(f"n{len(self.written)}")
        whole = line(self.written[-1])
        add(self.path, whole[:size])
        self.rest = whole[size:]

    def end(self) -> None:
        add(self.path, self.rest)
        self.rest = b""

    def rename(self) -> None:
        self.end()
        self.path.rename(self._next())
        aged(self._next(), 1_000 - self._put_away)
        self.path.touch()
        self._put_away += 1

    def copy(self) -> None:
        self.end()
        shutil.copy(self.path, self._next())
        aged(self._next(), 1_000 - self._put_away)
        os.truncate(self.path, 0)
        self._put_away += 1

    def _next(self) -> Path:
        return self.path.with_name(f"{self.path.name}.{self._put_away}")


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "begin", "read", "rename", "copy"]), st.integers(1, 40)),
        max_size=14,
    )
)
def test_whatever_becomes_of_the_file_every_line_is_told_in_order(
    tmp_path_factory: pytest.TempPathFactory, deeds: list[tuple[str, int]]
) -> None:
    path = tmp_path_factory.mktemp("any") / "feed"
    path.touch()
    reader, writer, told = Reader(path), Writer(path), list[str]()
    for deed, count in deeds:
        if deed == "add":
            writer.add(count)
        elif deed == "begin":
            writer.begin(count)
        elif deed == "rename":
            writer.rename()
        elif deed == "copy":
            if not told:  # a place before the first byte is in any file
                writer.add(1)
                told += names(reader.read())
            writer.copy()
        else:
            told += names(reader.read())
    writer.end()
    told += names(reader.read())

    assert told == writer.written


def test_a_reader_that_was_away_for_two_rotations_misses_nothing(path: Path) -> None:
    reader = Reader(path)
    add(path, line("a"))
    assert names(reader.read()) == ["a"]
    add(path, line("b"))
    aged(path.rename(path.with_name("changes.ndjson.2")), 300)
    add(path, line("c"))
    aged(path.rename(path.with_name("changes.ndjson.1")), 200)
    add(path.with_name("changes.ndjson.lock"), b"not a log\n")
    add(path, line("d"))

    told = reader.read()

    assert names(told) == ["b", "c", "d"]
    assert omissions(told) == []


def test_what_is_written_to_a_renamed_file_soon_after_is_told(
    path: Path, clock: PlannedClock
) -> None:
    reader = Reader(path, clock)
    add(path, line("a"))
    reader.read()
    with path.open("ab", buffering=0) as writer:
        old = path.rename(path.with_name("changes.ndjson.1"))
        add(path, line("new"))

        def write_late() -> None:
            writer.write(line("late"))
            os.utime(old, (clock.now().timestamp(),) * 2)

        clock.after(0.4, write_late)
        told = reader.read(wait=0.2)  # goes on for a while

    assert names(told) == ["late"]  # the writer may still be there; next time it is not
    aged(old)
    assert names(reader.read()) == ["new"]


def test_a_last_line_without_end_in_a_file_that_was_put_away_is_taken(path: Path) -> None:
    reader = Reader(path)
    add(path, line("a"), line("b").rstrip())
    aged(path.rename(path.with_name("changes.ndjson.1")))
    add(path, line("c"))

    assert names(reader.read()) == ["a", "b", "c"]


def test_a_file_that_is_copied_and_emptied_is_read_on_in_its_copy(path: Path) -> None:
    reader = Reader(path)
    add(path, line("a"), line("b"))
    reader.read()
    add(path, line("c"))
    aged(Path(shutil.copy(path, path.with_name("changes.ndjson-20261121"))))
    os.truncate(path, 0)
    add(path, line("d"), *(line(f"longer than it was {n}") for n in range(9)))

    told = names(reader.read())

    assert told[:2] == ["c", "d"]
    assert len(told) == 11


@pytest.mark.parametrize("grown", [0, 50])
def test_a_file_that_was_cut_is_told_and_nothing_is_passed_over(path: Path, grown: int) -> None:
    reader = Reader(path)
    add(path, line("a"), line("b"))
    reader.read()
    os.truncate(path, 0)
    add(path, *(line(f"n{number}") for number in range(grown)))

    with pytest.raises(DiscontinuityError) as gap:
        reader.read()
    assert gap.value.code == "feed-gap"
    assert gap.value.remedy == Remedy("set-option", value="gaps=accept")

    accepting = Reader(path, accept_gaps=True)
    accepting.position = reader.position
    assert len(names(accepting.read())) == grown


@pytest.mark.parametrize("is_first", [True, False])
def test_a_file_in_place_of_one_that_was_alike_is_not_taken_for_it(
    path: Path, is_first: bool
) -> None:
    same = [line("same")] * 200
    reader = Reader(path)
    add(path, *([line("this"), *same] if is_first else [*same, line("this")]))
    reader.read()
    path.write_bytes(b"")
    add(path, *([line("that"), *same] if is_first else [*same, line("that")]), line("new"))

    with pytest.raises(DiscontinuityError):
        reader.read()


def test_a_copy_that_somebody_made_is_not_taken_for_the_file_that_was_put_away(
    path: Path,
) -> None:
    reader = Reader(path)
    add(path, line("a"))
    reader.read()
    aged(Path(shutil.copy(path, path.with_name("changes.ndjson.bak"))), 100)
    add(path, line("b"))
    aged(path.rename(path.with_name("changes.ndjson.1")), 300)
    add(path, line("c"))

    assert names(reader.read()) == ["b", "c"]


def test_a_file_that_is_cut_while_it_is_read_is_told(path: Path, clock: PlannedClock) -> None:
    reader = Reader(path, clock)
    add(path, line("a"), line("b"))
    clock.after(0.1, lambda: os.truncate(path, 5))

    with pytest.raises(DiscontinuityError):
        reader.read(wait=5)


def test_a_last_line_that_is_taken_back_while_it_is_waited_for_leaves_no_trace(
    path: Path, clock: PlannedClock
) -> None:
    reader = Reader(path, clock)
    add(path, line("a"), line("half")[:30])
    size = len(line("a"))
    clock.after(0.15, lambda: os.truncate(path, size))
    clock.after(0.35, lambda: add(path, line("b")))

    told = reader.read(wait=0.9)

    assert (names(told), omissions(told)) == (["a", "b"], [])


def test_a_line_that_says_nothing_is_left_out_and_the_rest_is_told(path: Path) -> None:
    reader = Reader(path)
    add(path, line("a"), b"{]\n", b'{"uri": "https://h/x"}\n', b"\xff\xfe\n", b"\n", line("b"))

    told = reader.read()

    assert names(told) == ["a", "b"]
    assert [name for name, _ in omissions(told)] == ["{]", "https://h/x", "\ufffd\ufffd"]
    assert "created, updated or deleted" in omissions(told)[1][1]
    assert names(reader.read()) == []


def test_a_line_that_is_too_long_is_passed_over_in_bounded_memory(path: Path) -> None:
    reader = Reader(path)
    add(path, line("a"), b"y" * (3 * MAX_LINE) + b"\n", line("b"))

    told = reader.read()
    assert names(told) == ["a", "b"]
    assert omissions(told) == [("y" * 200, "longer than 1,048,576 bytes")]
    assert names(reader.read()) == []

    add(path, b"z" * (2 * MAX_LINE))
    assert reader.read() == []
    add(path, b"\n", line("c"))
    assert names(reader.read()) == ["c"]


def test_many_lines_are_told_in_lots_of_bounded_size(path: Path) -> None:
    reader = Reader(path)
    add(path, *(line(f"n{number}") for number in range(12_000)))

    told = reader.read()

    assert names(told) == [f"n{number}" for number in range(12_000)]
    assert max(len(lot.changes) for lot in told) < 3_000
    add(path, *(line("long", type="t" * 100_000) for _ in range(100)))
    assert max(len(lot.changes) for lot in reader.read()) < 50


def test_news_are_told_within_a_second_while_it_waits_and_it_ends_in_time(
    path: Path, clock: PlannedClock
) -> None:
    reader = Reader(path)
    clock.after(0.3, lambda: add(path, line("a")))
    came = 0.0
    for lot in GrowingFile(path, clock).changes(reader.position, 0.9):
        assert names([lot]) == ["a"]
        came = clock.monotonic()

    assert 0.3 <= came < 0.4
    assert 0.9 <= clock.monotonic() < 1


def test_a_file_that_is_gone_is_no_empty_one(path: Path) -> None:
    reader = Reader(path)
    path.unlink()

    with pytest.raises(StorageError, match="no file"):
        reader.read()
    with pytest.raises(StorageError):
        GrowingFile(path, SystemClock()).position()
    os.mkfifo(path)
    for other in (path, path.parent):
        with pytest.raises(StorageError):
            Reader(other)


def test_a_position_that_is_none_is_told(path: Path) -> None:
    for position in ("", "{}x", '{"inode": "a"}', '{"nothing": 1}'):
        with pytest.raises(StateError):
            list(GrowingFile(path, SystemClock()).changes(position, 0))


def test_it_does_not_know_what_there_is(path: Path) -> None:
    with pytest.raises(ConfigurationError):
        list(GrowingFile(path, SystemClock()).resources())
