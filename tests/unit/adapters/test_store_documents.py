"""Documents in a store: whole or not there, looked over, read back, never over another's."""

from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import pytest

from resourcesync.adapters.store_documents import StoredDocuments
from resourcesync.errors import StorageError
from resourcesync.ports.stores import ObjectContent
from tests.support.storage.storing import ShelfStore

NAME = "resourcesync/resourcelist.xml"


@pytest.fixture
def shelf(tmp_path: Path) -> ShelfStore:
    return ShelfStore(tmp_path)


@pytest.fixture
def documents(shelf: ShelfStore) -> StoredDocuments:
    return StoredDocuments(shelf)


def passed(stream: BinaryIO) -> None:
    assert stream.read() in (b"<one/>", b"<two/>")


def read(documents: StoredDocuments, name: str = NAME) -> bytes | None:
    stream = documents.open(name)
    if stream is None:
        return None
    with stream:
        assert stream.seek(1) == 1
        stream.seek(0)
        return stream.read()


def test_who_writes_at_the_same_time_is_not_overwritten(
    documents: StoredDocuments, shelf: ShelfStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents.write(NAME, [b"<one/>"], passed)
    put = ShelfStore.put

    def after_another(
        self: ShelfStore, key: str, content: ObjectContent, replaces: str | None
    ) -> object:
        self.spoil(key, b"<another/>")
        return put(self, key, content, replaces)

    monkeypatch.setattr(ShelfStore, "put", after_another)
    with pytest.raises(StorageError, match="another process writes"):
        documents.write(NAME, [b"<two/>"], passed)
    assert read(documents) == b"<another/>"


def test_what_is_not_there_as_it_was_put_is_an_error(
    documents: StoredDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ShelfStore, "open", lambda self, key: BytesIO(b"<onE/>"))
    with pytest.raises(StorageError) as caught:
        documents.write(NAME, [b"<one/>"], passed)
    assert caught.value.code == "read-back"


def test_what_a_store_raises_is_an_error_of_storage(
    documents: StoredDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(self: ShelfStore, key: str) -> object:
        raise RuntimeError("the line is dead")

    monkeypatch.setattr(ShelfStore, "stat", breaks)
    with pytest.raises(StorageError, match="RuntimeError: the line is dead"):
        documents.write(NAME, [b"<one/>"])
