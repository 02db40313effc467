"""The holder of a lock alone puts what workers stage in a bucket, over the planned version."""

import hashlib
from io import BytesIO

from resourcesync.model.digests import Digest
from resourcesync.ports.stores import ObjectContent, StagingStore
from resourcesync_s3.bucket import Bucket
from resourcesync_s3.store import TEMPORARY, BucketStore, open_store


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
