"""Files that change though nothing shows it: they are read again, a bounded part each time."""

import mmap
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from resourcesync.adapters.files import RereadSchedule
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.source.publication_options import PublicationResult
from tests.support.in_memory import ManualClock

DAY = 24 * 3_600 * 1_000_000
SIZE = 4_096


@contextmanager
def mapped(path: Path) -> Iterator[mmap.mmap]:
    """Map a file and write to it once: further writes do not move its times."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(SIZE))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), SIZE) as memory:
        memory[0] = 1
        yield memory


def publish(tree: Path, clock: ManualClock) -> PublicationResult:
    return publish_tree(tree, {"url": "https://museum.example"}, clock=clock)


def is_listed(tree: Path, content: bytes) -> bool:
    listed = (tree / "resourcesync/resourcelist.xml").read_text()
    changes = tree / "resourcesync/changelist.xml"
    listed += changes.read_text() if changes.exists() else ""
    return sha256(content).hexdigest() in listed


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime.now(UTC) + timedelta(seconds=10))


def test_a_file_written_through_memory_just_before_a_scan_is_read_again_a_minute_later(
    tmp_path: Path, clock: ManualClock
) -> None:
    with mapped(tmp_path / "a.db") as memory:
        publish(tmp_path, clock)
        before = (tmp_path / "a.db").stat()
        memory[0] = 2
        assert (tmp_path / "a.db").stat() == before
        clock.advance(seconds=61)
        again = publish(tmp_path, clock)
        assert (again.scan.hashed, again.scan.updated) == (1, 1)
        assert is_listed(tmp_path, bytes(memory))
        clock.advance(seconds=61)
        assert publish(tmp_path, clock).scan.hashed == 0


def test_within_days_each_file_is_read_again(tmp_path: Path, clock: ManualClock) -> None:
    with mapped(tmp_path / "a.db") as memory:
        publish(tmp_path, clock)
        clock.advance(seconds=61)
        publish(tmp_path, clock)
        memory[0] = 2
        read = []
        for _ in range(31):
            clock.advance(hours=24)
            read.append(publish(tmp_path, clock).scan.hashed)
        assert sum(read) in (1, 2)
        assert is_listed(tmp_path, bytes(memory))


def test_bytes_that_are_as_listed_are_no_news(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "a").write_bytes(b"1")
    publish(tmp_path, clock)
    clock.advance(seconds=61)
    again = publish(tmp_path, clock)
    assert (again.scan.hashed, again.scan.touched, again.scan.updated) == (1, 0, 0)
    assert again.publication.written == ()


@pytest.mark.parametrize("hours", [1, 24, 24 * 30])
def test_a_round_reads_each_file_once_and_each_scan_no_more_than_its_part(hours: int) -> None:
    files, now, note = range(1_000_000, 1_003_000), 0, None
    counts: Counter[int] = Counter()
    scans = 30 if hours >= 24 else 30 * 24
    for scan in range(scans + 1):
        due = RereadSchedule.since(note, now)
        found = [files[at] for at in due.due(files, [-DAY * 1_000] * len(files))]
        assert len(found) <= 2 * len(files) // scans, "it is spread over the round"
        assert scan or not found, "the first scan reads all anyway"
        counts.update(found)
        note, now = due.note(), now + hours * 3_600 * 1_000_000
    assert len(counts) >= len(files) - 3, "but for what lies on the seam of the round"
    assert max(counts.values()) <= 2


@pytest.mark.parametrize("note", [None, "", "nonsense", '{"at":1}', "[]"])
def test_what_is_not_remembered_begins_a_round(note: str | None) -> None:
    due = RereadSchedule.since(note, 9 * DAY)
    assert not due.due(range(100), [9 * DAY * 1_000 - 1] * 100)
    assert RereadSchedule.since(due.note(), 10 * DAY).width > 0


def test_a_clock_that_steps_back_makes_nothing_due() -> None:
    kept = RereadSchedule(now=9 * DAY, place=7).note()
    due = RereadSchedule.since(kept, 8 * DAY)
    assert due.width == 0
    assert not due.due(range(100), [8 * DAY * 1_000] * 100)
    assert RereadSchedule.since(due.note(), 9 * DAY).place == 7
