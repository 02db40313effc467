"""A pull by workers, into a folder and into a bucket, over real HTTP: what users run."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import pytest

import resourcesync_s3 as s3
from resourcesync import Mirror
from resourcesync.errors import ResourceSyncError
from resourcesync.model.digests import Digest
from resourcesync.ports import StagedCopy
from resourcesync.ports.stores import ObjectContent, StagingStore
from resourcesync_s3 import store as objects
from resourcesync_s3.bucket import Bucket
from resourcesync_s3.store import TEMPORARY, BucketStore, open_store
from tests.support.servers.tiny_source import TinySource
from tests.support.storage.storing import ShelfStore

TEXTS = {f"/data/{number:02}.txt": f"text {number}\n".encode() for number in range(23)}
LARGE = {"/data/large.bin": bytes(range(256)) * 200}
LATER = "2026-02-01T00:00:00Z"


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as executor:
        yield executor


@pytest.fixture
def source() -> Iterator[TinySource]:
    with TinySource() as made:
        made.offer({**TEXTS, **LARGE})
        yield made


def asked(source: TinySource) -> list[str]:
    found = [each.target for each in source.asked if each.target.startswith("/data/")]
    source.asked.clear()
    return sorted(found)


def in_folder(mirror: Path) -> dict[str, bytes]:
    found = (path for path in mirror.glob("data/*"))
    return {f"/{path.relative_to(mirror)}": path.read_bytes() for path in found}


def in_bucket(address: str) -> dict[str, bytes]:
    store = open_store(address)
    found = {key: store.open(key) for key in store.keys("data/")}
    return {f"/{key}": stream.read() for key, stream in found.items() if stream is not None}


def later(source: TinySource) -> dict[str, bytes]:
    changed = {**TEXTS, **LARGE, "/data/03.txt": b"other\n", "/data/99.txt": b"new\n"}
    del changed["/data/04.txt"]
    source.offer(changed, at=LATER)
    return changed


def check_pulls(source: TinySource, mirror: Mirror) -> None:
    first = mirror.pull()
    assert (first.state, first.created, first.listed.total) == ("in sync", 24, 24)
    assert first.requests > 24, "each resource, and each list"
    assert first.received_bytes > sum(map(len, TEXTS.values()))
    assert asked(source) == sorted([*TEXTS, *LARGE])
    later(source)
    second = mirror.pull()
    assert (second.state, second.created, second.updated, second.deleted) == ("in sync", 1, 1, 1)
    assert asked(source) == ["/data/03.txt", "/data/99.txt"]
    again = mirror.pull(mode="baseline")
    assert (again.state, again.listed.unchanged, asked(source)) == ("in sync", 24, [])
    assert mirror.audit(method="hash").in_sync


def test_workers_bring_all_once_and_later_what_changed(
    source: TinySource, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    check_pulls(source, Mirror(source.url, tmp_path / "mirror", engine=pool, delete="absent"))

    assert in_folder(tmp_path / "mirror") == later(source)
    assert not list((tmp_path / "mirror" / ".resourcesync" / "tmp").iterdir())


@pytest.mark.parametrize("whole", [8 << 20, 1_000], ids=["in one request", "in parts"])
def test_workers_stage_in_a_bucket_and_the_coordinator_copies_within_it(
    source: TinySource,
    pool: ThreadPoolExecutor,
    tmp_path: Path,
    bucket: str,
    whole: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objects.BucketStore, "largest_whole", whole)
    home = tmp_path / "home"
    check_pulls(source, Mirror(source.url, bucket, state=home, engine=pool, delete="absent"))

    assert in_bucket(bucket) == later(source)
    assert not list(Bucket(bucket, patience=5).list(TEMPORARY))


def test_an_object_of_others_is_not_replaced_by_what_a_worker_staged(
    source: TinySource, pool: ThreadPoolExecutor, tmp_path: Path, bucket: str
) -> None:
    other = Bucket(bucket, patience=5)
    other.put("data/03.txt", b"of somebody else")

    pulled = Mirror(source.url, bucket, state=tmp_path / "home", engine=pool).pull()

    assert pulled.state == "in sync"
    assert in_bucket(bucket) == {**TEXTS, **LARGE}
    quarantined = [found.key for found in other.list(".resourcesync/quarantine/")]
    assert [key.endswith("/data/03.txt") for key in quarantined] == [True]


def test_a_store_in_which_workers_cannot_stage_is_refused(
    source: TinySource, tmp_path: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = ShelfStore(tmp_path / "shelf")
    monkeypatch.setattr(s3, "open_store", lambda _: shelf)
    mirror = Mirror(source.url, "s3://museum/copies", state=tmp_path / "home", engine=pool)

    with pytest.raises(ResourceSyncError, match="workers cannot stage"):
        mirror.pull()

    assert not (tmp_path / "home").exists()


def test_a_folder_that_workers_do_not_reach_is_told(
    source: TinySource, pool: ThreadPoolExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from resourcesync_cluster.worker_fetching import FolderStagingArea

    def lose(self: FolderStagingArea, batch: list[tuple[StagedCopy, object]]) -> list[str]:
        return ["not-here"] * len(batch)

    monkeypatch.setattr(FolderStagingArea, "hand_over", lose)
    with pytest.raises(ResourceSyncError, match="not in the mirror's folder") as caught:
        Mirror(source.url, tmp_path / "mirror", engine=pool).pull()

    assert "every worker reaches" in caught.value.hint
    assert in_folder(tmp_path / "mirror") == {}


def content(body: bytes) -> ObjectContent:
    digest = Digest("sha-256", hashlib.sha256(body).hexdigest())
    return ObjectContent(BytesIO(body), len(body), (digest,))


def body_at(store: BucketStore, key: str) -> bytes | None:
    stream = store.open(key)
    return None if stream is None else stream.read()


def test_staged_bytes_replace_only_the_version_that_is_named(bucket: str) -> None:
    worker, store = open_store(bucket), open_store(bucket)
    assert isinstance(store, StagingStore)
    with store.lock("the coordinator"):
        place = worker.stage(content(b"new"))
        assert list(store.keys("")) == [], "what is staged is no copy"
        first = store.put("key", content(b"old"), None)

        assert store.put_staged("key", place, 3, None) is None
        assert store.put_staged("key", place, 3, '"another"') is None
        assert body_at(store, "key") == b"old"
        second = store.put_staged("key", place, 3, first)

        assert second not in {None, first}
        assert body_at(store, "key") == b"new"
        assert store.put_staged("other", place, 3, None)
        store.remove(place)
        assert store.put_staged("third", place, 3, None) is None


def test_a_late_worker_stages_what_the_next_holder_removes(bucket: str) -> None:
    worker, store = open_store(bucket), open_store(bucket)
    with store.lock("the first run"):
        pass
    worker.stage(content(b"too late"))
    assert len(list(Bucket(bucket, patience=5).list(TEMPORARY))) == 1

    with store.lock("the next run"):
        own = worker.stage(content(b"in time"))
        assert [found.key for found in Bucket(bucket, patience=5).list(TEMPORARY)] == [own]
