"""A bucket keeps what a store promises, against a real server; small bodies and those in parts."""

import pytest

from resourcesync.adapters.objects.bucket import Bucket
from resourcesync.adapters.objects.store import BucketStore
from resourcesync.ports.storing import Store
from resourcesync.testing import StoreSuite

_SECONDS = 1.0


def opened(address: str) -> BucketStore:
    return BucketStore(Bucket(address, patience=5), Bucket(address, patience=1), _SECONDS)


class TestBucket(StoreSuite):
    checks_digests = True

    @pytest.fixture
    def store(self, bucket: str) -> BucketStore:
        return opened(bucket)

    def again(self, store: Store) -> BucketStore:
        assert isinstance(store, BucketStore)
        return opened(f"s3://{store._bucket.name}/{store._bucket.prefix}")

    def die_holding(self, store: Store) -> float:
        assert isinstance(store, BucketStore)
        self.guard = store.hold("who is killed")  # nobody lets go of it
        self.guard.__enter__()
        assert store._lease is not None
        store._lease._ended.set()  # it is renewed no more
        return _SECONDS + 3  # dates have whole seconds


class TestBucketInParts(TestBucket):
    """The same where each body is larger than what one request takes."""

    many = 1

    @pytest.fixture
    def store(self, bucket: str) -> BucketStore:
        store = opened(bucket)
        store.largest_whole = -1
        return store

    def again(self, store: Store) -> BucketStore:
        other = super().again(store)
        other.largest_whole = -1
        return other

    def die_holding(self, store: Store) -> float:
        pytest.skip("the hold is the same")
