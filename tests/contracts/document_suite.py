"""Checks of document stores (``resourcesync.ports.DocumentStore``)."""

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Final

import pytest

from resourcesync.ports.documents import DocumentStore
from tests.contracts.readers import read_and_close, read_rest, run_repeatedly

_NAME: Final = "resourcesync/changelist.xml"
_SECOND_NAME: Final = ".well-known/resourcesync"
_TOP: Final = "resourcesync-sitemap.xml"
_TIMES: Final = 15


class DocumentStoreSuite:
    """The promises of a place for a Source's documents, one check each.

    Derive a class whose name begins with ``Test`` in a module of tests, and give it a pytest
    fixture ``documents`` that returns an empty store, which takes names in the folders
    ``resourcesync`` and ``.well-known``, and beside these some that begin with ``resourcesync-``.
    """

    many: ClassVar[int] = 1_100
    """Number of documents that exceeds one page of a listing."""

    def test_a_written_document_can_be_read(self, documents: DocumentStore) -> None:
        written = documents.write(_NAME, iter([b"one", b"", b" two"]))
        assert written == 7
        assert documents.write(_SECOND_NAME, []) == 0

        assert read_and_close(documents.open(_NAME)) == b"one two"
        assert read_and_close(documents.open(_SECOND_NAME)) == b""
        assert sorted(documents.names()) == [_SECOND_NAME, _NAME]

    def test_a_document_may_stand_at_the_top(self, documents: DocumentStore) -> None:
        documents.write(_TOP, [b"one"])
        documents.write(_NAME, [b"two"])
        assert read_and_close(documents.open(_TOP)) == b"one"
        assert sorted(documents.names()) == [_TOP, _NAME]
        assert documents.signature(_TOP) is not None

        documents.delete(_TOP)
        assert list(documents.names()) == [_NAME]

    def test_a_document_never_written_does_not_exist(self, documents: DocumentStore) -> None:
        assert documents.open(_NAME) is None
        assert documents.signature(_NAME) is None
        assert list(documents.names()) == []
        documents.delete(_NAME)

    def test_a_signature_changes_with_the_document_and_only_then(
        self, documents: DocumentStore
    ) -> None:
        documents.write(_NAME, [b"one"])
        documents.write(_SECOND_NAME, [b"one"])
        first, other = documents.signature(_NAME), documents.signature(_SECOND_NAME)
        read_and_close(documents.open(_NAME))
        assert documents.signature(_NAME) == first

        documents.write(_NAME, [b"two"])

        second = documents.signature(_NAME)
        assert first
        assert second
        assert second != first
        assert documents.signature(_SECOND_NAME) == other

    def test_large_documents_are_written_whole(self, documents: DocumentStore) -> None:
        chunks = [b"%07d\n" % number * 1_024 for number in range(200)]
        length = documents.write(_NAME, iter(chunks))

        assert length == sum(map(len, chunks))
        assert read_and_close(documents.open(_NAME)) == b"".join(chunks)

    def test_a_document_that_cannot_be_made_leaves_the_old_one(
        self, documents: DocumentStore
    ) -> None:
        documents.write(_NAME, [b"old"])
        signature = documents.signature(_NAME)
        for name in (_NAME, _SECOND_NAME):
            with pytest.raises(_ChunkError):
                documents.write(name, _failing_chunks())

        assert read_and_close(documents.open(_NAME)) == b"old"
        assert documents.signature(_NAME) == signature
        assert list(documents.names()) == [_NAME]

    def test_a_document_is_checked_as_it_is_stored(self, documents: DocumentStore) -> None:
        documents.write(_NAME, [b"old"])
        seen: list[bytes] = []
        places: list[bytes | None] = []

        def read_back(stream: BinaryIO) -> None:
            seen.append(stream.read())
            places.append(read_and_close(documents.open(_NAME)))

        def refuse(stream: BinaryIO) -> None:
            read_back(stream)
            raise _ChunkError

        for name in (_NAME, _SECOND_NAME):
            with pytest.raises(_ChunkError):
                documents.write(name, [b"bad"], refuse)
        assert list(documents.names()) == [_NAME]
        documents.write(_NAME, [b"go", b"od"], read_back)

        assert seen == [b"bad", b"bad", b"good"]
        assert places == [b"old"] * 3
        assert read_and_close(documents.open(_NAME)) == b"good"

    def test_a_reader_always_sees_a_whole_document(self, documents: DocumentStore) -> None:
        versions = [bytes([number]) * 200_000 for number in (1, 2)]
        documents.write(_NAME, [versions[0]])

        def read_whole() -> None:
            assert read_and_close(documents.open(_NAME)) in versions

        with run_repeatedly(read_whole):
            for number in range(_TIMES):
                body = versions[number % 2]
                documents.write(_NAME, (body[at : at + 20_000] for at in range(0, 200_000, 20_000)))

    def test_an_open_document_does_not_change(self, documents: DocumentStore) -> None:
        old, new = (bytes([number]) * 1_000_000 for number in (1, 2))
        documents.write(_NAME, [old])
        readers = [documents.open(_NAME) for _ in range(2)]
        begun = [stream.read(10) for stream in readers if stream is not None]

        documents.write(_NAME, [new])
        ends = [read_rest(readers[0])]
        documents.delete(_NAME)
        ends.append(read_rest(readers[1]))

        assert begun == [old[:10]] * 2
        assert all(end in (None, old[10:]) for end in ends)

    def test_only_the_named_document_is_deleted(self, documents: DocumentStore) -> None:
        for name in (_NAME, f"{_NAME}.gz", _SECOND_NAME):
            documents.write(name, [b"x"])

        documents.delete(_NAME)
        documents.delete(_NAME)

        assert documents.open(_NAME) is None
        assert documents.signature(_NAME) is None
        assert sorted(documents.names()) == [_SECOND_NAME, f"{_NAME}.gz"]

    def test_all_documents_are_listed_once(self, documents: DocumentStore) -> None:
        names = [f"resourcesync/resourcelist_{number:05}.xml" for number in range(self.many)]
        for name in names:
            documents.write(name, [b"x"])

        assert sorted(documents.names()) == names


class _ChunkError(Exception):
    """An error that no store raises by itself."""


def _failing_chunks() -> Iterator[bytes]:
    yield b"new" * 1_000_000
    raise _ChunkError
