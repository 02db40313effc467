"""Measuring files: digests of bytes that rest, and fingerprints that can be trusted."""

import hashlib
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from resourcesync.adapters.files import FileTreeOriginals, tree
from resourcesync.adapters.system import SystemClock
from resourcesync.errors import OriginalChangedError, StorageError
from resourcesync.model.digests import Digest
from tests.support.in_memory import ManualClock
from tests.support.sources.trees import BASE, LATER, originals, put


@pytest.mark.parametrize("size", [0, 1, 1_000, 262_143, 262_144, 262_145, 700_000])
def test_length_and_digests_are_those_of_the_bytes(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    put(tmp_path, "a.html", content=content)
    os.utime(tmp_path / "a.html", ns=(0, 1_600_000_000_900_000_001))
    found = FileTreeOriginals(
        tmp_path, BASE, clock=ManualClock(LATER), algorithms=("sha-256", "md5", "sha-1")
    )

    (original,) = found.scan()
    resource, fingerprint = found.measure(original)

    assert resource.digests == (
        Digest("sha-256", hashlib.sha256(content).hexdigest()),
        Digest("md5", hashlib.md5(content).hexdigest()),
        Digest("sha-1", hashlib.sha1(content).hexdigest()),
    )
    assert resource.length == original.length == size
    assert resource.lastmod == original.lastmod == datetime.fromtimestamp(1_600_000_000, UTC)
    assert resource.media_type == "text/html"
    assert fingerprint == original.fingerprint != ""
    assert resource.uri == original.uri == BASE + "a.html"


@pytest.mark.parametrize("times", [2, 100])
def test_a_file_that_never_rests_is_left_for_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    put(tmp_path, "a", content=b"first")
    found = originals(tmp_path)
    (original,) = found.scan()
    writes = [b"more" * (number + 2) for number in range(times)]
    read, reads = os.read, list[int]()

    def interrupted(descriptor: int, size: int) -> bytes:
        chunk = read(descriptor, size)
        if writes:
            reads.append(size)
            (tmp_path / "a").write_bytes(writes.pop(0))
        return chunk

    monkeypatch.setattr(os, "read", interrupted)

    if times == 2:  # it rests, and is read again
        resource, _ = found.measure(original)
        digest = hashlib.sha256(b"more" * 3).hexdigest()
        assert (resource.length, resource.digests) == (12, (Digest("sha-256", digest),))
    else:
        with pytest.raises(OriginalChangedError, match="changed each time"):
            found.measure(original)
        assert len(reads) == 3


def test_a_folder_that_cannot_be_opened_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a", "d/b")

    def denied(_: int, names: tuple[str, ...]) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tree, "open_below", denied)

    with pytest.raises(StorageError, match="'d' cannot be read: Permission denied") as caught:
        list(originals(tmp_path).scan())
    assert caught.value.code == "unreadable-folder"


def test_an_unreadable_file_is_told_of_with_a_code_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a")
    found = originals(tmp_path)
    (original,) = found.scan()

    def denied(*_: object, **__: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", denied)

    with pytest.raises(StorageError, match="Input/output error") as caught:
        found.measure(original)
    assert caught.value.code == "unreadable-file"


def test_what_vanishes_during_the_scan_is_simply_gone(tmp_path: Path) -> None:
    put(tmp_path, "a", "b/a", "b/b", "c/d", "e")
    found = originals(tmp_path)
    listed = []

    for original in found.scan():
        listed.append(original)
        if original.uri == BASE + "a":
            (tmp_path / "b/b").unlink()
            (tmp_path / "c/d").unlink()
            (tmp_path / "c").rmdir()
            (tmp_path / "e").unlink()

    assert [original.uri for original in listed] == [BASE + "a", BASE + "b/a"]
    assert found.omissions() == ()


def seen(path: Path, *, age: timedelta, modified: int = 1_700_000_000_123_456_789) -> str:
    os.utime(path, ns=(modified, modified))
    now = datetime.fromtimestamp(modified // 1_000_000_000, UTC)
    now += timedelta(microseconds=modified % 1_000_000_000 // 1_000)
    (original,) = FileTreeOriginals(path.parent, BASE, clock=ManualClock(now + age)).scan()
    return original.fingerprint


WHOLE = 1_700_000_000_000_000_000


@pytest.mark.parametrize(
    ("age", "modified", "trusted"),
    [
        (timedelta(seconds=1), WHOLE + 5, True),
        (timedelta(milliseconds=21), WHOLE + 5, True),
        (timedelta(milliseconds=19), WHOLE + 5, False),
        (timedelta(0), WHOLE + 5, False),
        (timedelta(milliseconds=-500), WHOLE + 5, False),
        (timedelta(hours=-1), WHOLE + 5, True),
        (timedelta(milliseconds=1_900), WHOLE, False),
        (timedelta(milliseconds=2_100), WHOLE, True),
    ],
)
def test_a_file_that_may_still_change_within_its_timestamp_is_not_trusted(
    tmp_path: Path, age: timedelta, modified: int, *, trusted: bool
) -> None:
    put(tmp_path, "a")

    assert (seen(tmp_path / "a", age=age, modified=modified) != "") is trusted


@pytest.mark.parametrize("is_replaced", [True, False])
def test_other_bytes_of_the_same_size_and_time_show_in_the_fingerprint(
    tmp_path: Path, *, is_replaced: bool
) -> None:
    put(tmp_path, "a", content=b"aa")
    found = originals(tmp_path)
    (before,) = found.scan()
    modified = (tmp_path / "a").stat().st_mtime_ns
    time.sleep(0.02)  # a tick of the kernel's file times
    written = tmp_path / ("b" if is_replaced else "a")
    written.write_bytes(b"bb")
    os.utime(written, ns=(modified, modified))
    written.rename(tmp_path / "a")

    (after,) = found.scan()

    assert before.fingerprint != after.fingerprint
    assert found.measure(before)[1] == after.fingerprint


@pytest.mark.parametrize("is_old", [True, False])
def test_a_file_that_was_just_written_or_touched_is_not_trusted_by_the_real_clock(
    tmp_path: Path, is_old: bool
) -> None:
    put(tmp_path, "a")
    if is_old:
        os.utime(tmp_path / "a", ns=(WHOLE, WHOLE))
    found = FileTreeOriginals(tmp_path, BASE, clock=SystemClock())

    (original,) = found.scan()

    assert original.fingerprint == ""
