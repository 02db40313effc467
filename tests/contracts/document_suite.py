"""Checks of document stores (``resourcesync.ports.DocumentStore``)."""

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Final

from resourcesync.ports.documents import DocumentStore
from tests.contracts.expectations import (
    expect,
    expect_equal,
    expect_error,
    read_and_close,
    run_repeatedly,
)

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
        """All chunks, in their order, empty ones and empty documents too."""
        written = documents.write(_NAME, iter([b"one", b"", b" two"]))
        expect_equal(written, 7, "write returns the bytes of the document")
        expect_equal(documents.write(_SECOND_NAME, []), 0, "a document may be empty")

        expect_equal(
            read_and_close(documents.open(_NAME)), b"one two", "open reads the written bytes"
        )
        expect_equal(read_and_close(documents.open(_SECOND_NAME)), b"", "an empty document exists")
        expect_equal(sorted(documents.names()), [_SECOND_NAME, _NAME], "names lists both")

    def test_a_document_may_stand_at_the_top(self, documents: DocumentStore) -> None:
        """It is listed, read and removed like any other; foreign files there are not listed."""
        documents.write(_TOP, [b"one"])
        documents.write(_NAME, [b"two"])
        expect_equal(read_and_close(documents.open(_TOP)), b"one", "open reads the written bytes")
        expect_equal(sorted(documents.names()), [_TOP, _NAME], "names lists the top one")
        expect(documents.signature(_TOP) is not None, "it has a signature")

        documents.delete(_TOP)
        expect_equal(list(documents.names()), [_NAME], "it is deleted, and nothing else")

    def test_a_document_never_written_does_not_exist(self, documents: DocumentStore) -> None:
        """All methods report a name that was never written as missing; none raises."""
        expect(documents.open(_NAME) is None, "open returns None for nothing")
        expect_equal(documents.signature(_NAME), None, "signature returns None for nothing")
        expect_equal(list(documents.names()), [], "an empty store has no names")
        documents.delete(_NAME)

    def test_a_signature_changes_with_the_document_and_only_then(
        self, documents: DocumentStore
    ) -> None:
        """Other bytes of the same length are another document; reading changes nothing."""
        documents.write(_NAME, [b"one"])
        documents.write(_SECOND_NAME, [b"one"])
        first, other = documents.signature(_NAME), documents.signature(_SECOND_NAME)
        read_and_close(documents.open(_NAME))
        expect_equal(documents.signature(_NAME), first, "reading does not change a signature")

        documents.write(_NAME, [b"two"])

        second = documents.signature(_NAME)
        expect(first and second and second != first, "a signature changes with its document")
        expect_equal(documents.signature(_SECOND_NAME), other, "others keep their signatures")

    def test_large_documents_are_written_whole(self, documents: DocumentStore) -> None:
        """A list may have 50 MB; this one is smaller, in many chunks."""
        chunks = [b"%07d\n" % number * 1_024 for number in range(200)]
        length = documents.write(_NAME, iter(chunks))

        expect_equal(length, sum(map(len, chunks)), "write returns the bytes of the document")
        expect(read_and_close(documents.open(_NAME)) == b"".join(chunks), "all chunks are stored")

    def test_a_document_that_cannot_be_made_leaves_the_old_one(
        self, documents: DocumentStore
    ) -> None:
        """An error of the chunks propagates, and nothing is changed."""
        documents.write(_NAME, [b"old"])
        signature = documents.signature(_NAME)
        for name in (_NAME, _SECOND_NAME):
            with expect_error(_ChunkError, "an error of the chunks propagates"):
                documents.write(name, _failing_chunks())

        expect_equal(read_and_close(documents.open(_NAME)), b"old", "the old document is unchanged")
        expect_equal(documents.signature(_NAME), signature, "it was not touched")
        expect_equal(list(documents.names()), [_NAME], "no part of the failed write is stored")

    def test_a_document_is_checked_as_it_is_stored(self, documents: DocumentStore) -> None:
        """``check`` gets the bytes before they are public; an error of it prevents that."""
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
            with expect_error(_ChunkError, "an error of check propagates"):
                documents.write(name, [b"bad"], refuse)
        expect_equal(list(documents.names()), [_NAME], "a refused document is not stored")
        documents.write(_NAME, [b"go", b"od"], read_back)

        expect_equal(seen, [b"bad", b"bad", b"good"], "check is given the bytes")
        expect_equal(places, [b"old"] * 3, "they are not in place before they are checked")
        expect_equal(read_and_close(documents.open(_NAME)), b"good", "a good document is stored")

    def test_a_reader_always_sees_a_whole_document(self, documents: DocumentStore) -> None:
        """During a replacement, readers see the whole old document or the whole new one."""
        versions = [bytes([number]) * 200_000 for number in (1, 2)]
        documents.write(_NAME, [versions[0]])

        def read_whole() -> None:
            expect(
                read_and_close(documents.open(_NAME)) in versions, "a reader sees a whole document"
            )

        with run_repeatedly(read_whole):
            for number in range(_TIMES):
                body = versions[number % 2]
                documents.write(_NAME, (body[at : at + 20_000] for at in range(0, 200_000, 20_000)))

    def test_an_open_document_does_not_change(self, documents: DocumentStore) -> None:
        """A reader of a replaced or deleted document gets the rest or fails; it is never mixed."""
        old, new = (bytes([number]) * 1_000_000 for number in (1, 2))
        documents.write(_NAME, [old])
        readers = [documents.open(_NAME) for _ in range(2)]
        begun = [stream.read(10) for stream in readers if stream is not None]

        documents.write(_NAME, [new])
        ends = [_rest(readers[0])]
        documents.delete(_NAME)
        ends.append(_rest(readers[1]))

        expect_equal(begun, [old[:10]] * 2, "a reader begins with the present document")
        expect(all(end in (None, old[10:]) for end in ends), "a reader has one document to its end")

    def test_only_the_named_document_is_deleted(self, documents: DocumentStore) -> None:
        """Twice is no error."""
        for name in (_NAME, f"{_NAME}.gz", _SECOND_NAME):
            documents.write(name, [b"x"])

        documents.delete(_NAME)
        documents.delete(_NAME)

        expect(documents.open(_NAME) is None, "the document is deleted")
        expect_equal(documents.signature(_NAME), None, "it has no signature")
        expect_equal(
            sorted(documents.names()), [_SECOND_NAME, f"{_NAME}.gz"], "the others are still stored"
        )

    def test_all_documents_are_listed_once(self, documents: DocumentStore) -> None:
        """However many pages a list has."""
        names = [f"resourcesync/resourcelist_{number:05}.xml" for number in range(self.many)]
        for name in names:
            documents.write(name, [b"x"])

        expect_equal(sorted(documents.names()), names, "every document is listed once")


class _ChunkError(Exception):
    """An error that no store raises by itself."""


def _failing_chunks() -> Iterator[bytes]:
    yield b"new" * 1_000_000
    raise _ChunkError


def _rest(stream: BinaryIO | None) -> bytes | None:
    try:
        return read_and_close(stream)
    except Exception:  # noqa: BLE001 - a store may raise anything
        return None
