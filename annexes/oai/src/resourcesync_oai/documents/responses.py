"""Answers of OAI-PMH providers: bytes in, records out, one at a time (OAI-PMH 2.0 §3.2).

Reading is liberal, as it is for lists: a fault of one record costs that record, even where it makes
the whole answer ill-formed. A record begins with its header, which nothing inside metadata does; so
it can be told from elements of the same name (MARCXML has them) without a parser. Each is then read
by itself, in the context before the first one. An answer that stops before its end raises, so no
list is ever shorter than its provider wrote it.
"""

import re
from collections import deque
from collections.abc import Generator, Iterator
from itertools import chain, islice
from typing import BinaryIO, Final, final

from resourcesync.documents.blocks import document_blocks, pieces_of
from resourcesync.documents.expat import Limits
from resourcesync.errors import DocumentError, DocumentLimitError
from resourcesync_oai.documents.records import (
    ListToken,
    MetadataFormat,
    OaiFault,
    OaiRecord,
    ProviderIdentity,
)
from resourcesync_oai.documents.scanner import IllFormedError, ResponseLimits, ResponseScanner

_NAME: Final = rb"(?:[A-Za-z_][\w.-]{0,60}:)?"
_BEGIN: Final = re.compile(rb"<" + _NAME + rb"record\s*>\s*<" + _NAME + rb"header\b")
_RECORD_END: Final = re.compile(rb"</" + _NAME + rb"record\s*>")
_HEADER_END: Final = re.compile(rb"</" + _NAME + rb"header\s*>")
_LIST_END: Final = re.compile(rb"</" + _NAME + rb"(?:ListRecords|GetRecord)\s*>")
_MOST_BEFORE: Final = 8_192
_MOST: Final = 20_000
_USUAL: Final = ResponseLimits()


def salvage_records(
    whole: bytes, read: int, tail: ResponseScanner
) -> Generator[OaiRecord, None, bool]:
    """Yield the records but those that were read; return whether the answer is complete."""
    first = _BEGIN.search(whole)
    starts = [match.start() for match in _BEGIN.finditer(whole)]
    if first is None or not starts or first.start() > _MOST_BEFORE:
        return False
    if len(starts) > _MOST:
        raise DocumentLimitError(f"more than {_MOST:,} records in an ill-formed answer")
    end = _last(_LIST_END, whole, starts[-1], len(whole))
    last = end and _last(_RECORD_END, whole, starts[-1], end.start())
    before = whole[: first.start()]
    if not last or not _is_sound(tail, before, whole[last.end() :]):
        return False
    spans = zip(starts, [*starts[1:], last.end()], strict=True)
    found = chain.from_iterable(_read_record(before, whole[begin:end]) for begin, end in spans)
    yield from islice(found, read, None)  # a whole record is the same by itself
    return True


def _last(pattern: re.Pattern[bytes], text: bytes, start: int, stop: int) -> re.Match[bytes] | None:
    found = deque(pattern.finditer(text, start, stop), maxlen=1)
    return found[0] if found else None


def _is_sound(tail: ResponseScanner, before: bytes, behind: bytes) -> bool:
    """Read the text around the records; return whether it is whole and well-formed."""
    try:
        tail.feed(before)
        tail.feed(behind)
        tail.close()
    except IllFormedError:
        return tail.is_over
    return tail.is_over


def _read_record(before: bytes, text: bytes) -> Iterator[OaiRecord]:
    """Read one record by itself."""
    scan = ResponseScanner("", _USUAL)
    try:
        scan.feed(before)
        scan.feed(text)
        if scan.records:
            yield from scan.records
            return
        problem = "it is not well-formed"
    except IllFormedError as error:
        problem = f"it is not well-formed: {error.detail}"
    except DocumentError as error:
        problem = error.message
    headers = [match.end() for match in _HEADER_END.finditer(text)]
    yield _unusable_record(before, text[: headers[0]] if headers else b"", problem)
    if len(headers) > 1:  # another record may hide in it
        yield OaiRecord(header=None, problem=problem)


def _unusable_record(before: bytes, text: bytes, problem: str) -> OaiRecord:
    """Return a record that cannot be used, with its identity if possible."""
    scan = ResponseScanner("", _USUAL)
    try:
        scan.feed(before)
        scan.feed(text)
    except (IllFormedError, DocumentError):
        return OaiRecord(header=None, problem=problem)
    return OaiRecord(header=scan.open_record_header(), problem=problem)


__all__ = ["OaiResponse", "ResponseLimits"]

_HTML: Final = re.compile(rb"\s*<(!doctype\s+)?html\b", re.IGNORECASE)


@final
class OaiResponse:
    """One answer. Read the records first: the other properties are complete after the last."""

    def __init__(self, stream: BinaryIO, *, uri: str, limits: ResponseLimits = _USUAL) -> None:
        self._stream, self._uri, self._limits = stream, uri, limits
        self._scan = ResponseScanner(uri, limits)

    def records(self) -> Iterator[OaiRecord]:
        """Yield the records, those that cannot be used too, each once."""
        scan, start, read = self._scan, self._stream.tell(), 0
        try:
            for block in self._blocks():
                scan.feed(block)
                while scan.records:
                    read += 1
                    yield scan.records.popleft()
                if scan.is_over:
                    break
            scan.close()
        except IllFormedError as error:
            while scan.records:
                read += 1
                yield scan.records.popleft()
            if scan.is_over:
                return  # warnings of the program that wrote the answer
            if not scan.is_begun:
                self._check_html(start)
            yield from self._rest(error, start, read)

    def read(self) -> "OaiResponse":
        """Read it to its end, for what is no record; return itself."""
        for _ in self.records():
            pass
        return self

    @property
    def response_date(self) -> str:
        """The provider's time, as written."""
        return self._scan.response_date

    @property
    def verb(self) -> str:
        """Verb of the request; empty when the answer has errors alone."""
        return self._scan.verb

    @property
    def faults(self) -> tuple[OaiFault, ...]:
        """The errors in the provider's answer."""
        return tuple(self._scan.faults)

    @property
    def token(self) -> ListToken | None:
        """Resumption token of the list; ``None`` at its end."""
        return self._scan.token

    @property
    def identity(self) -> ProviderIdentity:
        """Identity of the provider, in an answer to ``Identify``."""
        return self._scan.identity

    @property
    def formats(self) -> tuple[MetadataFormat, ...]:
        """The forms of metadata that it lists."""
        return tuple(self._scan.formats)

    @property
    def sets(self) -> tuple[str, ...]:
        """``setSpec`` of the sets that it lists."""
        return tuple(self._scan.sets)

    def _blocks(self) -> Iterator[bytes]:
        pieces, limits = pieces_of(self._stream), Limits(bytes=self._limits.bytes)
        found = document_blocks(pieces, limits=limits, uri=self._uri)
        first = next(found, b"").lstrip()  # some programs write blanks before the declaration
        return chain((first,), found)

    def _check_html(self, start: int) -> None:
        """Raise if the answer is a page of HTML, such as one for maintenance."""
        self._stream.seek(start)
        if _HTML.match(next(self._blocks(), b"")):
            raise self._scan.not_an_answer("a page of HTML")

    def _rest(self, error: IllFormedError, start: int, read: int) -> Iterator[OaiRecord]:
        """Yield the records behind those that were read before something was not well-formed."""
        if self._scan.verb in ("ListRecords", "GetRecord"):
            self._stream.seek(start)
            whole = b"".join(self._blocks())
            before, tail = self._scan, ResponseScanner(self._uri, self._limits)
            done = yield from salvage_records(whole, read, tail)
            if done:
                self._scan = tail
                tail.response_date = tail.response_date or before.response_date
                return
        raise error.document_error(self._uri)
