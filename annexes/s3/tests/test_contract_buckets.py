"""Originals, documents and copies in a bucket of a real server keep what each must."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from resourcesync.adapters.stored_copies import StoredCopies
from resourcesync.adapters.stored_documents import StoredDocuments
from resourcesync.ports.originals import OriginalsOptions
from resourcesync_s3.bucket import Bucket
from resourcesync_s3.originals import BucketOriginals
from resourcesync_s3.store import BucketStore, open_store
from tests.contracts.copies_suite import CopiesSuite, copies_in
from tests.contracts.document_suite import DocumentStoreSuite
from tests.contracts.originals_suite import OriginalsSuite
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
