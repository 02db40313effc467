"""A shared folder keeps what a store promises, among threads, processes and those that die."""

import hashlib
import os
import signal
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest

from resourcesync.backends.shared_folder import FolderStore, open_store
from resourcesync.backends.shared_folder.locations import FolderLocations
from resourcesync.backends.shared_folder.store import KeyLocks
from resourcesync.errors import (
    ConfigurationError,
    DiskFullError,
    LockedError,
    ResourceSyncError,
    StorageError,
)
from resourcesync.model.digests import Digest
from resourcesync.model.timestamps import parse_w3c
from resourcesync.ports.stores import ObjectContent, ParallelStore, Store
from tests.contracts.store_suite import StoreSuite
from tests.support.storage.sharing import COUNTERS, ENOUGH, KEYS

ROOT = Path(__file__).parents[2]
OURS = ".resourcesync/shared"


class TestSharedFolder(StoreSuite):
    checks_digests = True
    many = 300

    @pytest.fixture
    def store(self, tmp_path: Path) -> FolderStore:
        return FolderStore(tmp_path / "copies")

    def reopen(self, store: Store) -> FolderStore:
        assert isinstance(store, FolderStore)
        return FolderStore(store.root)

    def leave_stale_lock(self, store: Store) -> float:
        assert isinstance(store, FolderStore)
        holder = started("hold", store.root)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LockedError), store.lock("who waits"):
            pass
        holder.kill()
        holder.communicate()
        return 0.0

    def test_it_takes_several_calls_at_a_time(self, store: FolderStore) -> None:
        parallel: ParallelStore = store
        assert isinstance(parallel, ParallelStore)


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "copies", patience=0.2)


def put(store: FolderStore, key: str, body: bytes, replaces: str | None = None) -> str:
    version = store.put(key, ObjectContent(BytesIO(body), len(body), ()), replaces)
    assert version is not None
    return version


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and OURS not in str(path)
    }


def started(what: str, folder: Path) -> subprocess.Popen[str]:
    program = [sys.executable, "-m", "tests.support.storage.sharing", what, str(folder)]
    env = {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    return subprocess.Popen(program, stdout=subprocess.PIPE, env=env, text=True)


# --- many who write ---


def test_a_key_whose_folder_went_since_it_was_looked_for_is_not_there(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = put(store, "a/b.txt", b"first")
    there = store.stat("a/b.txt")
    store.remove("a/b.txt")
    monkeypatch.setattr(store, "stat", lambda _key: there)
    assert not (store.root / "a").exists()
    assert store.put("a/b.txt", ObjectContent(BytesIO(b"next"), 4, ()), version) is None
    assert store.move("a/b.txt", "c.txt", version) is False
    store.remove("a/b.txt")


def test_processes_that_put_replace_and_move_the_same_keys_lose_no_update(tmp_path: Path) -> None:
    shared = tmp_path / "copies"
    workers = [started(str(number), shared) for number in range(4)]
    while not (shared / COUNTERS[0]).exists():
        time.sleep(0.05)
    time.sleep(0.5)
    workers[0].kill()  # in the middle of whatever it does
    said = [worker.communicate(timeout=60)[0] for worker in workers]
    assert [worker.returncode for worker in workers[1:]] == [0, 0, 0], said

    store = FolderStore(shared)
    done: Counter[str] = Counter()
    for lines in said:
        done.update(line for line in lines.splitlines() if line.startswith("+"))
    for name in COUNTERS:
        count = int((shared / name).read_bytes().split()[0])
        # The one that was killed may have counted, and not have said so.
        assert done[f"+{name}"] <= count <= done[f"+{name}"] + 1
        assert count >= 3 * ENOUGH, "each of those that lived counted"
    kept = {key: body for key, body in files(shared).items() if key not in COUNTERS}
    assert set(kept) <= {f"{key}{side}" for key in KEYS for side in ("", "/moved", ".moved")}
    for body in kept.values():
        digest, _, rest = body.partition(b"\n")
        assert hashlib.sha256(rest).hexdigest().encode() == digest, "no file is half"
    with store.lock("afterwards"):
        pass


def test_a_process_that_was_forked_by_a_holder_does_not_keep_the_hold(store: FolderStore) -> None:
    holder = started("fork", store.root)
    assert holder.stdout is not None
    orphan = int(holder.stdout.readline())
    try:
        with pytest.raises(LockedError) as refused, store.lock("who waits"):
            pass
        assert ("who", "who is killed") in refused.value.evidence
        holder.kill()
        holder.wait()
        with store.lock("who comes next"):
            pass
    finally:
        os.kill(orphan, signal.SIGKILL)
        holder.stdout.close()


def test_a_forked_process_that_leaves_the_block_closes_nothing_of_its_own(
    store: FolderStore,
) -> None:
    leaving = store.lock("us")
    with leaving:
        child = os.fork()
        if not child:
            code = 1
            with suppress(OSError):
                own = os.open(os.devnull, os.O_RDONLY)  # gets the number that was free
                leaving.__exit__(None, None, None)
                os.close(own)
                code = 0
            os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        with pytest.raises(LockedError), FolderStore(store.root).lock("others"):
            pass


def test_who_waits_for_a_key_too_long_says_so_and_another_key_is_free(store: FolderStore) -> None:
    version = put(store, "a.txt", b"one")
    other = put(store, "b.txt", b"one")
    with KeyLocks(FolderLocations(store.root), 1.0).lock_keys("a.txt"):
        with pytest.raises(StorageError, match=r"a key of .* has been locked for 0 s"):
            put(store, "a.txt", b"two", version)
        assert put(store, "b.txt", b"two", other)
    assert files(store.root) == {"a.txt": b"one", "b.txt": b"two"}


# --- versions ---


def test_a_version_tells_the_date_of_the_source_and_never_comes_again(store: FolderStore) -> None:
    lastmod = parse_w3c("2020-03-01T10:20:30.75Z")
    seen, version = set(), None
    for _ in range(50):
        version = store.put("a.txt", ObjectContent(BytesIO(b"same"), 4, (), lastmod), version)
        assert version is not None
        seen.add(version)
    assert len(seen) == 50
    assert int((store.root / "a.txt").stat().st_mtime) == int(lastmod.timestamp())


def test_where_the_file_system_keeps_whole_seconds_the_date_is_drawn_by_lot(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.utime

    def coarse(file: int, *, ns: tuple[int, int]) -> None:
        real(file, ns=(ns[0] // 10**9 * 10**9, ns[1] // 10**9 * 10**9))

    monkeypatch.setattr(os, "utime", coarse)
    lastmod = parse_w3c("2020-03-01T10:20:30Z")
    seen, version = set(), None
    for _ in range(20):
        version = store.put("a.txt", ObjectContent(BytesIO(b"same"), 4, (), lastmod), version)
        assert version is not None
        seen.add(version)
    assert len(seen) == 20


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_date_that_no_file_can_have_is_none_to_stumble_over(
    store: FolderStore, moment: str
) -> None:
    assert store.put("a.txt", ObjectContent(BytesIO(b"x"), 1, (), parse_w3c(moment)), None)


# --- what is in the way, and what leads out ---


def test_a_key_that_is_a_folder_of_another_is_refused_and_the_other_way_round(
    store: FolderStore,
) -> None:
    put(store, "a/b", b"1")
    put(store, "c", b"2")
    for key in ("a", "c/d"):
        with pytest.raises(StorageError) as refused:
            put(store, key, b"3")
        assert refused.value.code == "path-in-the-way"
        assert store.stat(key) is None
        assert store.open(key) is None
    version = put(store, "e", b"4")
    for to in ("a", "c/d"):
        with pytest.raises(StorageError) as refused:
            store.move("e", to, version)
        assert refused.value.code == "path-in-the-way"
    assert files(store.root) == {"a/b": b"1", "c": b"2", "e": b"4"}


def test_a_folder_goes_with_the_last_that_is_in_it(store: FolderStore) -> None:
    put(store, "a/b/c/d", b"1")
    version = put(store, "e/f/g", b"2")
    store.remove("a/b/c/d")
    assert store.move("e/f/g", "g", version)
    assert {path.name for path in store.root.iterdir()} == {".resourcesync", "g"}
    assert put(store, "a", b"5")


def test_an_empty_folder_that_was_left_is_none_in_the_way(store: FolderStore) -> None:
    (store.root / "a").mkdir(parents=True)
    assert put(store, "a", b"1")


def test_no_link_is_followed_and_nothing_is_written_outside(
    store: FolderStore, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    store.root.mkdir()
    (store.root / "way").symlink_to(outside)
    (store.root / "link").symlink_to(outside / "secret")
    os.mkfifo(store.root / "pipe")
    for key in ("way/secret", "way/new", "link", "pipe"):
        assert store.stat(key) is None
        assert store.open(key) is None
        assert not store.move(key, "here", "6:0")
        store.remove(key)
        with pytest.raises(StorageError) as refused:
            put(store, key, b"x")
        assert refused.value.code == "path-in-the-way"
    assert list(store.keys("")) == []
    assert list(store.keys("way/")) == []
    assert files(outside) == {"secret": b"secret"}


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/etc/x",
        "../x",
        "a/../b",
        "a//b",
        "./a",
        "a/",
        "a\0b",
        f"{OURS}/hold.lock",
        OURS,
        unicodedata.normalize("NFD", "ü"),
        "a/.nfs0123456789abcdef01234567",
        "\udcff",
        "x" * 1_001,
    ],
)
def test_what_is_no_key_is_refused_and_nothing_is_there(store: FolderStore, key: str) -> None:
    with pytest.raises(StorageError) as refused:
        put(store, key, b"x")
    assert refused.value.code == "path-in-the-way"
    assert store.stat(key) is None
    assert store.open(key) is None
    version = put(store, "a.txt", b"x")
    with pytest.raises(StorageError):
        store.move("a.txt", key, version)
    assert list(store.keys("")) == ["a.txt"]


def test_names_that_are_no_keys_are_not_listed(store: FolderStore) -> None:
    put(store, "a.txt", b"x")
    for name in (b"\xff", "u\u0308".encode(), b".nfs0123456789abcdef01234567"):
        Path(os.fsdecode(bytes(store.root) + b"/" + name)).write_bytes(b"?")
    assert list(store.keys("")) == ["a.txt"]
    assert list(store.keys("../")) == []


def test_nothing_is_moved_over_something_else(store: FolderStore) -> None:
    version = put(store, "a.txt", b"one")
    put(store, "b.txt", b"two")
    with pytest.raises(StorageError, match=r"b\.txt exists already"):
        store.move("a.txt", "b.txt", version)
    assert files(store.root) == {"a.txt": b"one", "b.txt": b"two"}


def test_a_move_that_was_killed_in_between_is_ended_by_the_next(store: FolderStore) -> None:
    version = put(store, "a.txt", b"one")
    os.link(store.root / "a.txt", store.root / "b.txt")
    assert store.move("a.txt", "b.txt", version)
    assert files(store.root) == {"b.txt": b"one"}


# --- what fails, and what is left ---


def test_what_killed_writers_left_is_removed_by_who_holds_it_when_it_is_old(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "a.txt", b"x")
    way = store.root / OURS / "on-its-way"
    (way / "half").write_bytes(b"half")
    with store.lock("us"):
        assert [path.name for path in way.iterdir()] == ["half"], "it may still be written"
    monkeypatch.setattr("resourcesync.backends.shared_folder.store.ABANDONED_NANOSECONDS", -(10**9))
    with store.lock("us"):
        assert list(way.iterdir()) == []
    assert files(store.root) == {"a.txt": b"x"}


@pytest.mark.parametrize("body", [b"neW", b"newer", b"ne"])
def test_other_bytes_than_were_told_leave_nothing_behind(store: FolderStore, body: bytes) -> None:
    digest = Digest("sha-256", hashlib.sha256(b"new").hexdigest())
    with pytest.raises(StorageError, match="changed since they were fetched"):
        store.put("a.txt", ObjectContent(BytesIO(body), 3, (digest,)), None)
    assert files(store.root) == {}
    assert list((store.root / OURS / "on-its-way").iterdir()) == []


def test_a_full_disk_is_told_as_one(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    version = put(store, "a.txt", b"old")

    def full(_file: int, _block: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("resourcesync.backends.shared_folder.store.os.write", full)
    with pytest.raises(DiskFullError):
        put(store, "a.txt", b"new", version)
    monkeypatch.undo()
    assert files(store.root) == {"a.txt": b"old"}
    assert list((store.root / OURS / "on-its-way").iterdir()) == []


def test_where_the_file_system_is_not_mounted_nothing_is_made(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "not-mounted/copies")
    attempts: list[Callable[[], object]] = [
        lambda: store.stat("a.txt"),
        lambda: list(store.keys("")),
        lambda: put(store, "a.txt", b"x"),
        lambda: store.lock("us").__enter__(),
    ]
    for attempt in attempts:
        with pytest.raises(ConfigurationError, match="there is no folder"):
            attempt()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["state.db", "store"])
def test_the_folder_of_a_mirror_is_not_held(store: FolderStore, name: str) -> None:
    own = store.root / ".resourcesync"
    own.mkdir(parents=True)
    (own / name).write_bytes(b"")
    with pytest.raises(ConfigurationError, match="is the folder of a mirror"):
        store.lock("us").__enter__()
    assert [path.name for path in own.iterdir()] == [name]


@pytest.mark.parametrize(
    "address",
    [
        "file:relative",
        "file:/folder",
        "file://host/folder",
        "file:///",
        "file:///a?b",
        "file:///a#b",
        "file:///%FF",
        "file:///a%00b",
    ],
)
def test_what_is_no_address_of_a_folder_is_refused(address: str) -> None:
    with pytest.raises(ResourceSyncError, match="is not the address of a folder"):
        open_store(address)


def test_an_address_is_percent_decoded() -> None:
    assert open_store("file:///a%20b/%C3%BC").root == Path("/a b/ü")
