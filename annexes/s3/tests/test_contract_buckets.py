"""Originals, documents, copies and a store in a bucket of a real server keep what each must."""

import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any

import pytest

from resourcesync.adapters.store_copies import StoredCopies
from resourcesync.adapters.store_documents import StoredDocuments
from resourcesync.errors import ConfigurationError, LockedError, StorageError
from resourcesync.ports.originals import OriginalsOptions
from resourcesync.ports.stores import ObjectContent, Store
from resourcesync_s3.bucket import Bucket, ObjectReader
from resourcesync_s3.originals import BucketOriginals
from resourcesync_s3.store import BucketStore, Lease, open_store
from tests.contracts.copies_suite import CopiesSuite, copies_in
from tests.contracts.document_suite import DocumentStoreSuite
from tests.contracts.originals_suite import OriginalsSuite
from tests.contracts.store_suite import StoreSuite
from tests.support.commands.run import free_port
from tests.support.commands.started import python
from tests.support.in_memory import ManualClock
from tests.support.servers.interposed import Answer, Interposed, interposed
from tests.support.servers.object_server import ObjectServer

BASE = "https://museum.example/files/"


class TestBucketOriginals(OriginalsSuite):
    many = 30

    @pytest.fixture
    def originals(
        self, object_server: ObjectServer, bucket: str, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[BucketOriginals]:
        self.bucket = Bucket(bucket, patience=5)
        options = OriginalsOptions(
            address=bucket, base_uri=BASE, algorithms=("sha-256", "md5"), values={}
        )
        with interposed(object_server.port) as self.between, ThreadPoolExecutor(2) as pool:
            monkeypatch.setenv("AWS_ENDPOINT_URL", self.between.url)
            yield BucketOriginals(Bucket(bucket, patience=0.2), options, pool)

    def put(self, name: str, content: bytes) -> str:
        self.bucket.put(name, content)
        return f"{BASE}{name}"

    def remove(self, name: str) -> None:
        self.bucket.remove(name)

    def outage(self) -> AbstractContextManager[None]:
        return spoiled(self.between, Answer(0, b""))

    def partial_failure(self) -> AbstractContextManager[None]:
        return spoiled(self.between, None)

    def add_unpublished(self) -> str:
        name = "/".join(["é" * 90] * 5)  # a key that may be, and a URI that is too long
        self.bucket.put(name, b"")
        return name


@contextmanager
def spoiled(between: Interposed, answer: Answer | None) -> Iterator[None]:
    """Give this answer to all that is asked; without one, half of what is right."""
    between.spoil_answer = lambda method, target, body: (
        answer or Answer(200, body[: len(body) // 2], len(body))
    )
    try:
        yield
    finally:
        between.spoil_answer = lambda method, target, body: None


class TestBucketDocuments(DocumentStoreSuite):
    many = 30

    @pytest.fixture
    def documents(self, bucket: str) -> StoredDocuments:
        return StoredDocuments(open_store(bucket))


class TestBucketCopies(CopiesSuite):
    has_folders = False
    many = 20

    @pytest.fixture
    def copies(self, tmp_path: Path, bucket: str) -> Iterator[StoredCopies]:
        self.store: BucketStore = open_store(bucket)
        self.bucket = Bucket(bucket, patience=5)
        self.clock = ManualClock()
        with copies_in(tmp_path / "home") as folder:
            yield StoredCopies(self.store, folder.stage, self.clock)

    def tamper(self, path: str, content: bytes) -> None:
        self.clock.advance(seconds=1)
        self.bucket.put(path, content)

    def read_trashed(self, place: str) -> bytes:
        return self._read(f".resourcesync/trash/{place}")

    def read_quarantined(self, place: str) -> bytes:
        return self._read(f".resourcesync/quarantine/{place}")

    def _read(self, key: str) -> bytes:
        stream = self.store.open(key)
        return b"" if stream is None else stream.read()


_SECONDS = 1.0


def opened(address: str) -> BucketStore:
    return BucketStore(Bucket(address, patience=5), Bucket(address, patience=1), _SECONDS)


DIES = """
import os, sys
from resourcesync_s3.bucket import Bucket
from resourcesync_s3.store import BucketStore

address, holder, seconds = sys.argv[1:]
buckets = (Bucket(address, patience=patience) for patience in (5, 1))
with BucketStore(*buckets, float(seconds)).lock("who is killed", holder):
    os._exit(9)
"""


class TestBucket(StoreSuite):
    @pytest.fixture(autouse=True)
    def place(self, bucket: str, tmp_path: Path) -> None:
        self.address, self.home = bucket, tmp_path

    @pytest.fixture
    def store(self, bucket: str) -> BucketStore:
        return opened(bucket)

    def reopen(self, store: Store) -> BucketStore:
        return opened(self.address)

    def leave_stale_lock(self) -> float:
        self.die_holding("")
        return _SECONDS + 3  # dates have whole seconds

    def die_holding(self, holder: str) -> None:
        secrets: dict[str, Any] = {
            name: value for name, value in os.environ.items() if name.startswith("AWS_")
        }
        died = python(DIES, self.address, holder, f"{_SECONDS}", home=self.home, **secrets)
        assert died.returncode == 9, died.stderr


class TestBucketInParts(TestBucket):
    """The same where each body is larger than what one request takes."""

    @pytest.fixture(autouse=True)
    def only_of_bodies(self, request: pytest.FixtureRequest) -> None:
        if not any(word in request.node.name for word in ("put", "replaced", "opened", "spoiled")):
            pytest.skip("it does not depend on how bodies are put")

    @pytest.fixture
    def store(self, bucket: str) -> BucketStore:
        store = opened(bucket)
        store.largest_whole = -1
        return store

    def reopen(self, store: Store) -> BucketStore:
        other = super().reopen(store)
        other.largest_whole = -1
        return other


def test_a_server_that_is_away_is_asked_again_until_it_is_back(
    bucket: str, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    patient, hasty = (Bucket(bucket, patience=item, pauses=(0.001, 0.02)) for item in (60, 0.2))
    store = BucketStore(patient, hasty, seconds=60)

    def hold() -> bool:
        with store.lock("who"):
            return store.stat("a.bin") is None

    with ThreadPoolExecutor() as pool:
        asked: list[Future[object]] = [
            pool.submit(store.put, "b.bin", ObjectContent(BytesIO(b"b"), 1, ()), None),
            pool.submit(store.stat, "a.bin"),
            pool.submit(lambda: list(store.keys("a"))),
            pool.submit(hold),
        ]
        done, _ = wait(asked, timeout=1)  # dozens of tries
        assert not done
        with interposed(object_server.port, at=port):
            put, looked, listed, held = [future.result(60) for future in asked]
    assert put
    assert (looked, listed, held) == (None, [], True)


def test_a_request_whose_answer_is_lost_is_sent_again_and_does_what_it_should_once(
    bucket: str, object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = Answer(0, b"")
    with interposed(object_server.port) as between:
        monkeypatch.setenv("AWS_ENDPOINT_URL", between.url)
        patient = Bucket(bucket, patience=20, pauses=(0.001, 0.02))
        store = BucketStore(patient, patient, 60)

        def lose(method: str, *, executed: bool) -> None:
            """Lose the next three answers; the server executed the requests, or not."""
            left = iter([lost, Answer(503, b""), lost])
            between.spoil = lambda asked, target: None
            between.spoil_answer = lambda asked, target, body: None
            if executed:
                between.spoil_answer = lambda asked, *_: (
                    next(left, None) if asked == method else None
                )
            else:
                between.spoil = lambda asked, *_: next(left, None) if asked == method else None

        for executed in (False, True):
            with store.lock("who"):
                lose("PUT", executed=executed)
                first = store.put("a.txt", ObjectContent(BytesIO(b"1"), 1, ()), None)
                assert first
                lose("PUT", executed=executed)
                second = store.put("a.txt", ObjectContent(BytesIO(b"2"), 1, ()), first)
                assert second
                assert store.put("a.txt", ObjectContent(BytesIO(b"3"), 1, ()), first) is None
                lose("POST", executed=executed)
                store.remove("a.txt")
                assert store.stat("a.txt") is None
                lose("PUT", executed=executed)  # the lease is given back
            lose("PUT", executed=executed)
            with store.lock("another"):
                pass


def test_a_server_that_stays_away_is_told_with_how_long_it_was_asked(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    away = Bucket(bucket, patience=0.2, pauses=(0.001, 0.02))

    with pytest.raises(StorageError) as caught:
        away.head("a.bin")
    assert caught.value.code == "store"
    tried = dict(caught.value.evidence)["tried"]
    assert re.fullmatch(r"\d\d+ times in 0\.[234] s", tried), tried


def test_what_a_server_does_not_copy_is_put_after_a_look_and_moved_through_this_machine(
    bucket: str,
) -> None:
    objects = Bucket(bucket, patience=5)
    objects.largest_copy = 3
    store = BucketStore(objects, Bucket(bucket, patience=1), _SECONDS)
    store.largest_whole = 3
    assert store.put("a.txt", ObjectContent(BytesIO(b"1234"), 4, ()), '"other"') is None
    version = store.put("a.txt", ObjectContent(BytesIO(b"1234"), 4, ()), None)
    assert version is not None
    assert store.move("a.txt", "b.txt", version)
    assert list(store.keys("")) == ["b.txt"]
    stream = store.open("b.txt")
    assert stream is not None
    assert stream.read() == b"1234"
    assert store.put("b.txt", ObjectContent(BytesIO(b"5678"), 4, ()), None) is None
    second = store.put("a.txt", ObjectContent(BytesIO(b"5678"), 4, ()), None)
    with pytest.raises(StorageError, match=r"b\.txt exists already"):
        store.move("a.txt", "b.txt", second or "")
    assert sorted(store.keys("")) == ["a.txt", "b.txt"]


def test_who_looked_before_a_hold_was_renewed_cannot_take_it_over(bucket: str) -> None:
    key, other = ".resourcesync/lease", Bucket(bucket, patience=5)
    store, half = opened(bucket), ".resourcesync/tmp/half"
    other.put(half, b"what a run that was killed left on its way")
    with store.lock("who lives"):
        assert other.head(half) is None
        assert list(store.keys("")) == [], "the hold is none of the copies"
        seen = now = other.head(key)
        until = time.monotonic() + 20
        while now == seen and time.monotonic() < until:
            time.sleep(0.1)
            now = other.head(key)
        assert seen is not None
        assert now != seen
        assert other.put(key, b"mine now", over=seen.version) is None


@pytest.mark.parametrize("is_known", [False, True], ids=["new", "locked before"])
@pytest.mark.parametrize("drops", ["if-match", "if-none-match", "if-match if-none-match"])
def test_a_server_that_ignores_conditions_is_not_written_to(
    object_server: ObjectServer,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
    drops: str,
    *,
    is_known: bool,
) -> None:
    direct = Bucket(bucket, patience=5)
    direct.put("a.txt", b"somebody's")
    if is_known:
        with opened(bucket).lock("who came before"):
            pass
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    with interposed(object_server.port) as between:
        between.drops = frozenset(drops.split())
        monkeypatch.setenv("AWS_ENDPOINT_URL", between.url)
        with (
            pytest.raises(ConfigurationError, match="does not support conditional writes") as error,
            opened(bucket).lock("who"),
        ):
            pytest.fail("the store was locked")
    assert error.value.code == "no-conditions"
    assert [found.key for found in direct.list("")] == ["a.txt"]


def test_what_is_written_while_it_is_moved_stays_where_it_is(
    object_server: ObjectServer, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = Bucket(bucket, patience=5)
    version = direct.put("a.txt", b"ours")
    assert version is not None

    def writes(method: str, target: str, body: bytes) -> None:
        if method == "PUT" and target.endswith("/b.txt"):
            direct.put("a.txt", b"somebody's")

    with interposed(object_server.port) as between:
        between.spoil_answer = writes
        monkeypatch.setenv("AWS_ENDPOINT_URL", between.url)
        assert not opened(bucket).move("a.txt", "b.txt", version)
    assert [found.key for found in direct.list("")] == ["a.txt"]
    stream = direct.open("a.txt")
    assert stream is not None
    assert stream.read() == b"somebody's"


def test_a_hold_that_could_not_be_renewed_is_lost_by_the_stopwatch(bucket: str) -> None:
    seconds = [100.0]
    lease = Lease(Bucket(bucket, patience=5), "us", stopwatch=lambda: seconds[0])
    with lease:
        lease.check()
        seconds[0] += 61.0  # as after a machine's sleep
        with pytest.raises(LockedError, match="was lost"):
            lease.check()


def test_fewer_bytes_than_were_told_are_no_end() -> None:
    stream = BufferedReader(ObjectReader(iter([b"abc"]), 4, nullcontext))
    assert stream.read(3) == b"abc"
    with pytest.raises(StorageError, match="1 bytes before its end"):
        stream.read(1)
