"""An answer that is ill-formed inside some records: the others, and the end, are read all the same.

A record begins with its header, which nothing inside metadata does; so it can be told from elements
of the same name (MARCXML has them) without a parser. Each is then read by itself, in the context
that stands before the first one.
"""

import pyexpat
import re
from collections import deque
from collections.abc import Generator, Iterator
from typing import Final

from resourcesync.documents.oai._scanning import ResponseLimits, ResponseScanner
from resourcesync.documents.oai.values import OaiRecord
from resourcesync.errors import DocumentError, DocumentLimitError

_NAME: Final = rb"(?:[A-Za-z_][\w.-]{0,60}:)?"
_BEGIN: Final = re.compile(rb"<" + _NAME + rb"record\s*>\s*<" + _NAME + rb"header\b")
_RECORD_END: Final = re.compile(rb"</" + _NAME + rb"record\s*>")
_HEADER_END: Final = re.compile(rb"</" + _NAME + rb"header\s*>")
_LIST_END: Final = re.compile(rb"</" + _NAME + rb"(?:ListRecords|GetRecord)\s*>")
_MOST_BEFORE: Final = 8_192
_MOST: Final = 20_000
_USUAL: Final = ResponseLimits()


def salvage_records(
    whole: bytes, read: ResponseScanner, tail: ResponseScanner
) -> Generator[OaiRecord, None, bool]:
    """Yield the records that were not read yet; return whether all is told, and the end is sound.

    Args:
        whole: The answer, in UTF-8.
        read: What read its beginning, up to what is ill-formed.
        tail: Reads what stands around the records.

    Raises:
        DocumentLimitError: There are too many of them.
    """
    first = _BEGIN.search(whole)
    starts = [match.start() for match in _BEGIN.finditer(whole, read.record_ended)]
    if first is None or not starts or first.start() > _MOST_BEFORE:
        return False
    if len(starts) > _MOST:
        raise DocumentLimitError(f"more than {_MOST:,} records in an ill-formed answer")
    end = _last(_LIST_END, whole, starts[-1], len(whole))
    last = end and _last(_RECORD_END, whole, starts[-1], end.start())
    before = whole[: first.start()]
    if not last or not _is_sound(tail, before, whole[last.end() :]):
        return False
    for begin, stop in zip(starts, [*starts[1:], last.end()], strict=True):
        yield from _read_record(before, whole[begin:stop])
    return True


def _last(pattern: re.Pattern[bytes], text: bytes, start: int, stop: int) -> re.Match[bytes] | None:
    found = deque(pattern.finditer(text, start, stop), maxlen=1)
    return found[0] if found else None


def _is_sound(tail: ResponseScanner, before: bytes, behind: bytes) -> bool:
    """Read what stands around the records; return whether it is whole and well-formed."""
    try:
        tail.feed(before)
        tail.feed(behind)
        tail.feed(b"", is_last=True)
    except pyexpat.ExpatError:
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
    except pyexpat.ExpatError as error:
        problem = f"it is not well-formed: {pyexpat.ErrorString(error.code)}"
    except DocumentError as error:
        problem = error.message
    headers = [match.end() for match in _HEADER_END.finditer(text)]
    yield _unusable_record(before, text[: headers[0]] if headers else b"", problem)
    if len(headers) > 1:  # another record may hide in it
        yield OaiRecord(header=None, problem=problem)


def _unusable_record(before: bytes, text: bytes, problem: str) -> OaiRecord:
    """Return what can still be said of a record that cannot be used: which one it is."""
    scan = ResponseScanner("", _USUAL)
    try:
        scan.feed(before)
        scan.feed(text)
    except (pyexpat.ExpatError, DocumentError):
        return OaiRecord(header=None, problem=problem)
    return OaiRecord(header=scan.open_record_header(), problem=problem)
