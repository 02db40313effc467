"""The fetcher of documents: whole, into temporary files, so that no part of one is ever used."""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol, Self

import msgspec

from resourcesync.errors import (
    DocumentError,
    ResourceSyncError,
    SourceError,
    SourceUnavailableError,
)
from resourcesync.model.entries import RefusedEntry
from resourcesync.ports import Fetcher, FetchFailure, FetchRequest, FetchResponse, Purpose
from resourcesync.ports.validators_and_dates import served_at, validators_of

if TYPE_CHECKING:
    from resourcesync.documents.reader import Document

Scratch = Callable[[], BinaryIO]
"""Opens a nameless temporary file."""


_NOT_MODIFIED: Final = 304
_SERVER_FAULT: Final = 500
_MAX_AGE_DIGITS: Final = 10


class _FileSink:
    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._stream: BinaryIO | None = None

    def write(self, chunk: bytes) -> None:
        self.stream().write(chunk)

    def restart(self) -> None:
        if self._stream is not None:
            self._stream.seek(0)
            self._stream.truncate()

    def stream(self) -> BinaryIO:
        if self._stream is None:
            self._stream = self._scratch()
        return self._stream

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()


class FetchedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A fetched document: all its bytes, not parsed yet. Close it after use.

    ``uri`` is the requested address, which identifies it. ``links`` joins the answer's ``Link``
    fields with commas. ``served`` is the time of the answer by the server's clock, less its ``Age``
    in a cache. ``is_stored``: the bytes are of an earlier answer, and "not modified" since.
    """

    uri: str
    final_uri: str
    stream: BinaryIO
    etag: str = ""
    last_modified: str = ""
    links: str = ""
    media_type: str = ""
    served: int | None = None
    is_stored: bool = False

    def open(self, on_refused: Callable[[RefusedEntry], None] | None = None) -> "Document":
        """Begin to read it, from its start."""
        from resourcesync.documents.reader import read  # noqa: PLC0415 - most answers are 304

        self.stream.seek(0)
        return read(self.stream, uri=self.final_uri, on_refused=on_refused)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stream.close()


class Validated(Protocol):
    """What has the validators of an answer for a conditional request; empty for none."""

    @property
    def etag(self) -> str:
        """For ``FetchRequest.etag``."""

    @property
    def last_modified(self) -> str:
        """For ``FetchRequest.last_modified``."""


class DocumentProvider(Protocol):
    """A provider of documents, from the network or a folder."""

    def get(self, uri: str, *, purpose: Purpose = Purpose.DOCUMENT) -> FetchedDocument | None:
        """Return one document, to be closed after use."""


def fetch(documents: DocumentProvider, uri: str) -> FetchedDocument:
    """Return one document; an unconditional request is never answered with 304."""
    fetched = documents.get(uri, purpose=Purpose.DOCUMENT)
    assert fetched is not None, "an unconditional request is never answered with 304"
    return fetched


def is_of_document(error: ResourceSyncError) -> bool:
    """True if an error is of one document, though the next request may bring it.

    A Source that does not answer, or asks to wait, would not bring the others either.
    """
    if isinstance(error, SourceUnavailableError):
        is_fault = error.status >= _SERVER_FAULT and error.retry_after is None
        return is_fault or error.code == "truncated"
    return isinstance(error, SourceError | DocumentError)


class DocumentFetcher:
    """A provider of documents through a ``Fetcher``."""

    def __init__(self, fetcher: Fetcher, scratch: Scratch, *, uncached: bool = False) -> None:
        self._fetcher = fetcher
        self._scratch = scratch
        self._uncached = uncached

    def uncached(self) -> "DocumentFetcher":
        """Return a fetcher that requests fresh copies from caches."""
        return DocumentFetcher(self._fetcher, self._scratch, uncached=True)

    def get(
        self,
        uri: str,
        known: Validated | None = None,
        *,
        purpose: Purpose = Purpose.DOCUMENT,
        reopen: Callable[[str], BinaryIO | None] = lambda _uri: None,
    ) -> FetchedDocument | None:
        """Fetch one document; ``None`` if it is as known, and ``reopen`` has no bytes of it."""
        with closing(self._outcomes({uri: known}, purpose, _raise, reopen)) as outcomes:
            return next(outcomes)

    def get_all(
        self,
        known: Mapping[str, Validated | None],
        on_missing: Callable[[str, ResourceSyncError], None],
        reopen: Callable[[str], BinaryIO | None] = lambda _uri: None,
    ) -> Generator[FetchedDocument, None, None]:
        """Fetch many documents, several at a time, as they come.

        Those that are as known are left out, unless ``reopen`` has their bytes.
        """
        outcomes = self._outcomes(known, Purpose.DOCUMENT, on_missing, reopen)
        yield from filter(None, outcomes)

    def _outcomes(
        self,
        known: Mapping[str, Validated | None],
        purpose: Purpose,
        on_missing: Callable[[str, ResourceSyncError], None],
        reopen: Callable[[str], BinaryIO | None],
    ) -> Generator[FetchedDocument | None, None, None]:
        sinks: dict[str, _FileSink] = {}

        def requests() -> Iterator[FetchRequest]:
            for uri, validated in known.items():
                sinks[uri] = _FileSink(self._scratch)
                yield FetchRequest(
                    uri=uri,
                    sink=sinks[uri],
                    purpose=purpose,
                    etag=validated.etag if validated else "",
                    last_modified=validated.last_modified if validated else "",
                    uncached=self._uncached,
                )

        with closing(self._fetcher.fetch(requests())) as outcomes:
            try:
                for outcome in outcomes:
                    if isinstance(outcome, FetchFailure):
                        on_missing(outcome.request.uri, outcome.error)
                        continue
                    document = _document(outcome, sinks[outcome.request.uri], reopen)
                    del sinks[outcome.request.uri]
                    yield document
            finally:  # a stopped fetch leaves no file open
                for sink in sinks.values():
                    sink.close()


def _raise(_uri: str, error: ResourceSyncError) -> None:
    raise error


def _document(
    outcome: FetchResponse, sink: _FileSink, reopen: Callable[[str], BinaryIO | None]
) -> FetchedDocument | None:
    request, headers = outcome.request, outcome.headers
    stream: BinaryIO | None
    if is_stored := outcome.status == _NOT_MODIFIED:
        sink.close()
        stream = reopen(request.uri)
        etag, last_modified = request.etag, request.last_modified
    else:
        stream = sink.stream()
        etag, last_modified = validators_of(headers)
    if stream is None:
        return None
    return FetchedDocument(
        uri=request.uri,
        final_uri=outcome.uri,
        stream=stream,
        etag=etag,
        last_modified=last_modified,
        is_stored=is_stored,
        links=headers.get("link", ""),
        media_type=headers.get("content-type", ""),
        served=_served(headers),
    )


def _served(headers: Mapping[str, str]) -> int | None:
    served, age = served_at(headers), headers.get("age", "")
    is_old = age.isascii() and age.isdigit() and len(age) <= _MAX_AGE_DIGITS
    return served if served is None or not is_old else served - int(age) * 1_000_000
