"""Each check of the suite of documents finds a store that breaks its promise."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from threading import Event
from typing import BinaryIO

import pytest

from resourcesync.adapters.in_memory import MemoryDocuments
from resourcesync.errors import StorageError
from resourcesync.testing import DocumentStoreSuite
from tests.support.breaking import checks_of, finds

Check = Callable[[BinaryIO], None] | None


class Trial(DocumentStoreSuite):
    many = 50


class UntilEmpty(MemoryDocuments):
    """Takes an empty chunk for the end."""

    def write(self, name: str, chunks: Iterable[bytes], check: Check = None) -> int:
        return super().write(name, iter(iter(chunks).__next__, b""), check)


class EmptyIsNone(MemoryDocuments):
    def open(self, name: str) -> BinaryIO | None:
        return super().open(name) or BytesIO()


class DeletesOnce(MemoryDocuments):
    def delete(self, name: str) -> None:
        if super().open(name) is None:
            raise StorageError(f"there is no {name}")
        super().delete(name)


class SignsTheLength(MemoryDocuments):
    def signature(self, name: str) -> str | None:
        held = self._documents.get(name)
        return None if held is None else str(len(held[0]))


class SignsAll(MemoryDocuments):
    def signature(self, name: str) -> str | None:
        return None if name not in self._documents else str(self.writes)


class SignsAnew(MemoryDocuments):
    asked = 0

    def signature(self, name: str) -> str | None:
        self.asked += 1
        return None if name not in self._documents else str(self.asked)


class FirstMebibyte(MemoryDocuments):
    def write(self, name: str, chunks: Iterable[bytes], check: Check = None) -> int:
        return super().write(name, [b"".join(chunks)[: 1 << 20]], check)


class WritesInPlace(MemoryDocuments):
    """Readers see a document grow."""

    def write(self, name: str, chunks: Iterable[bytes], check: Check = None) -> int:
        content = b""
        for chunk in chunks:
            content += chunk
            Event().wait(0.0005)
            super().write(name, [content])
        if check is not None:
            check(BytesIO(content))
        return super().write(name, [content])


class ChecksAfterwards(MemoryDocuments):
    def write(self, name: str, chunks: Iterable[bytes], check: Check = None) -> int:
        length = super().write(name, chunks)
        if check is not None:
            check(BytesIO(self._documents[name][0]))
        return length


class ChecksNothing(MemoryDocuments):
    def write(self, name: str, chunks: Iterable[bytes], check: Check = None) -> int:
        return super().write(name, chunks)


class Growing(MemoryDocuments):
    """What is read is what is there when it is read."""

    def open(self, name: str) -> BinaryIO | None:
        if super().open(name) is None:
            return None
        documents = self._documents

        class Late(BytesIO):
            def read(self, size: int | None = -1, /) -> bytes:
                at = self.tell()
                self.seek(0)
                self.write(documents.get(name, (b"",))[0])
                self.seek(at)
                return super().read(size)

        return Late()


class DeletesMore(MemoryDocuments):
    def delete(self, name: str) -> None:
        for other in list(self._documents):
            if other.startswith(name):
                super().delete(other)


class FirstPage(MemoryDocuments):
    def names(self) -> Iterator[str]:
        return iter([*super().names()][:20])


class InFolders(MemoryDocuments):
    """Lists what is in a folder, and nothing beside."""

    def names(self) -> Iterator[str]:
        return (name for name in super().names() if "/" in name)


class ByDigest(MemoryDocuments):
    """Signs what is there, and forgets that it went."""

    def delete(self, name: str) -> None:
        super().delete(name)
        self._documents.pop(name, None)

    def signature(self, name: str) -> str | None:
        stream = self.open(name)
        return hashlib.md5(stream.read() if stream else b"").hexdigest()


BROKEN: list[tuple[str, type[MemoryDocuments]]] = [
    ("test_a_written_document_can_be_read", UntilEmpty),
    ("test_a_document_may_stand_at_the_top", InFolders),
    ("test_a_document_never_written_does_not_exist", EmptyIsNone),
    ("test_a_document_never_written_does_not_exist", DeletesOnce),
    ("test_a_signature_changes_with_the_document_and_only_then", SignsTheLength),
    ("test_a_signature_changes_with_the_document_and_only_then", SignsAll),
    ("test_a_signature_changes_with_the_document_and_only_then", SignsAnew),
    ("test_large_documents_are_written_whole", FirstMebibyte),
    ("test_a_document_that_cannot_be_made_leaves_the_old_one", WritesInPlace),
    ("test_a_document_is_checked_as_it_is_stored", ChecksAfterwards),
    ("test_a_document_is_checked_as_it_is_stored", ChecksNothing),
    ("test_a_reader_always_sees_a_whole_document", WritesInPlace),
    ("test_an_open_document_does_not_change", Growing),
    ("test_only_the_named_document_is_deleted", DeletesMore),
    ("test_only_the_named_document_is_deleted", DeletesOnce),
    ("test_only_the_named_document_is_deleted", ByDigest),
    ("test_all_documents_are_listed_once", FirstPage),
]


@pytest.mark.parametrize(("check", "kind"), BROKEN, ids=lambda item: getattr(item, "__name__", ""))
def test_a_place_for_documents_that_breaks_a_promise_is_found(
    check: str, kind: type[MemoryDocuments]
) -> None:
    assert finds(Trial(), check, kind())


def test_each_check_of_documents_has_a_store_that_fails_it() -> None:
    assert {check for check, _ in BROKEN} == checks_of(DocumentStoreSuite)
