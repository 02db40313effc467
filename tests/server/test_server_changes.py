"""Files that change: what is promised of them, and what is sent while they do."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from resourcesync.errors import OriginalChangedError, StorageError
from resourcesync.server.files import FileState, OpenFile
from tests.support.in_memory import ManualClock
from tests.support.servers.asgi import ask
from tests.support.servers.served_tree import BIG, YEAR_AGO, application, plant, settled


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return plant(tmp_path / "tree")


def test_equal_sizes_and_dates_do_not_make_equal_states(root: Path) -> None:
    path = root / "a" / "one.txt"
    app = application(root, settled())
    before = ask(app, "/a/one.txt").fields["etag"]

    path.write_bytes(b"9876543210")
    os.utime(path, (YEAR_AGO, YEAR_AGO))
    after = ask(app, "/a/one.txt", fields={"if-none-match": before})

    assert (after.status, after.body) == (200, b"9876543210")
    assert after.fields["etag"] != before


@pytest.mark.parametrize("is_set_back", [False, True], ids=["not settled", "a clock set back"])
def test_a_state_that_may_still_change_promises_nothing(root: Path, *, is_set_back: bool) -> None:
    now = datetime.fromtimestamp((root / "a" / "one.txt").stat().st_ctime, UTC)
    app = application(root, ManualClock(datetime(2001, 1, 1, tzinfo=UTC) if is_set_back else now))

    answer = ask(app, "/a/one.txt", fields={"if-none-match": '""', "range": "bytes=0-1"})

    assert answer.status == 206
    assert "etag" not in answer.fields
    assert "last-modified" not in answer.fields


def test_a_file_just_written_is_looked_at_again_until_it_has_settled(root: Path) -> None:
    path = root / "a" / "one.txt"
    app = application(root)
    tags = set()

    for number in range(20):
        path.write_bytes(b"%010d" % number)
        answer = ask(app, "/a/one.txt")
        assert answer.body == b"%010d" % number
        tags.add(answer.fields["etag"])

    assert len(tags) == 20


@pytest.mark.parametrize("content", [BIG[::-1], BIG[:1000]], ids=["rewritten", "cut short"])
def test_a_file_that_is_rewritten_while_it_is_sent_is_never_complete(
    root: Path, content: bytes
) -> None:
    path = root / "a" / "big.bin"

    def rewrite(_: int) -> None:
        path.write_bytes(content)

    answer = ask(application(root, settled()), "/a/big.bin", on_chunk=rewrite)

    assert isinstance(answer.error, OriginalChangedError)
    assert len(answer.body) < len(BIG)


def test_a_file_that_is_replaced_while_it_is_sent_is_sent_as_it_was(root: Path) -> None:
    path = root / "a" / "big.bin"

    def replace(_: int) -> None:
        other = root / "a" / "other"
        other.write_bytes(b"new")
        other.replace(path)

    answer = ask(application(root, settled()), "/a/big.bin", on_chunk=replace)

    assert answer.error is None
    assert answer.body == BIG


def test_nothing_more_is_read_for_a_client_that_has_gone(root: Path) -> None:
    with (root / "huge.bin").open("wb") as stream:
        stream.truncate(1 << 40)

    answer = ask(application(root, settled()), "/huge.bin", gone_after=2)

    assert answer.error is None
    assert answer.chunks < 10


def test_a_tree_that_is_not_there_is_a_fault_and_no_absence(tmp_path: Path) -> None:
    answer = ask(application(tmp_path / "unmounted"), "/a/one.txt")

    assert answer.status == 503
    assert answer.fields["retry-after"]


def test_a_file_that_may_not_be_read_is_refused_and_not_absent(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def denying(path: bytes, flags: int, *, dir_fd: int | None = None) -> int:
        if path == b"one.txt":
            raise PermissionError(13, "Permission denied")
        return real(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", denying)

    assert ask(application(root), "/a/one.txt").status == 403
    assert ask(application(root), "/a/big.bin").status == 200


def test_a_file_that_changes_as_fast_as_it_is_read_is_a_fault_that_passes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / "a" / "one.txt"
    real = os.pread

    def meddling(descriptor: int, length: int, offset: int) -> bytes:
        part = real(descriptor, length, offset)
        path.write_bytes(path.read_bytes() + b"x")
        return part

    monkeypatch.setattr(os, "pread", meddling)

    answer = ask(application(root, settled()), "/a/one.txt")

    assert answer.status == 503
    assert answer.fields["retry-after"]


def test_no_descriptor_is_left_open(root: Path) -> None:
    app = application(root, settled())
    (root / "link.txt").symlink_to("a/one.txt")
    os.mkfifo(root / "pipe")

    def count() -> int:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    ask(app, "/a/one.txt")
    before = count()
    for path in ("/a/one.txt", "/a/big.bin", "/link.txt", "/pipe", "/a", "/a/x/y", "/nope", "/"):
        ask(app, path)
        ask(app, path, method="HEAD")
    ask(app, "/a/big.bin", on_chunk=lambda _: os.truncate(root / "a" / "big.bin", 0))

    assert count() == before


def test_a_disk_that_does_not_give_the_bytes_is_told_of(root: Path) -> None:
    found = FileState.from_stat(root.stat())

    with OpenFile(os.open(root, os.O_RDONLY), found) as folder, pytest.raises(StorageError):
        folder.read(0, 10)
