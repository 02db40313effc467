"""What must hold when a document is read, whatever it is."""

import io
from typing import Final

from msgspec.structs import replace

from resourcesync.documents.reader import Document, read
from resourcesync.documents.writer import write
from resourcesync.errors import DocumentError
from resourcesync.model.entries import Change, DocumentChange, Entry, RefusedEntry
from resourcesync.model.vocabulary import Capability
from resourcesync.validator.examination import Examination

URI: Final = "https://source.example/list.xml"
_ROWED: Final = frozenset({None, Capability.RESOURCE_LIST, Capability.CHANGE_LIST})


def read_twice(data: bytes) -> str:
    """Read a document as entries and, where it can be, as rows; write what was read."""
    refused: list[RefusedEntry] = []
    try:
        opened = read(io.BytesIO(data), uri=URI, on_refused=refused.append)
    except DocumentError as error:
        return _said(error)
    entries, ending = _entries(opened)
    if opened.header.capability in _ROWED and not opened.header.is_index:
        _compare_rows(data, entries, ending)
    if ending == "read":
        _write_again(opened, entries)
    return f"{ending} {opened.header!r} {opened.dialect} {entries!r} {refused!r}"


def _entries(opened: Document) -> tuple[list[Entry], str]:
    entries: list[Entry] = []
    try:
        entries.extend(opened.entries())
    except DocumentError as error:
        return entries, _said(error)
    return entries, "read"


def _compare_rows(data: bytes, entries: list[Entry], ending: str) -> None:
    """Check that rows end as entries do; rows check less, so there may be more of them."""
    again = read(io.BytesIO(data), uri=URI)
    count = 0
    try:
        for _ in again.rows():
            count += 1
        said = "read"
    except DocumentError as error:
        said = _said(error)
    assert said == ending, f"rows end with {said}, entries with {ending}"
    assert count >= len(entries), f"{count} rows, {len(entries)} entries"


def _write_again(opened: Document, entries: list[Entry]) -> None:
    """Check that what can be written says the same when it is read."""
    try:
        written = b"".join(write(opened.header, entries))
    except ValueError:  # read with tolerance, but nothing that we would write
        return
    again = read(io.BytesIO(written), uri=URI)
    told = [_as_written(entry) for entry in entries]
    assert list(again.entries()) == told, "the entries change when they are written"
    assert again.header == opened.header, "the header changes when it is written"


def _as_written(entry: Entry) -> Entry:
    """Return an entry as it is read again: a change without a time has that of its resource."""
    if isinstance(entry, Change) and entry.time is None:
        return replace(entry, time=entry.resource.lastmod)
    if isinstance(entry, DocumentChange) and entry.time is None:
        return replace(entry, time=entry.lastmod)
    return entry


def _said(error: DocumentError) -> str:
    has_place = error.line >= 0 and error.column >= 0
    assert error.uri == URI
    assert has_place
    return f"{error.code} {type(error).__name__} {error} {error.line}:{error.column}"


def judge(data: bytes) -> str:
    """Validate a document, whole and in small pieces."""
    findings = [repr(finding) for finding in Examination([data], uri=URI)]
    pieces = [data[at : at + 61] for at in range(0, len(data), 61)]
    again = [repr(finding) for finding in Examination(pieces, uri=URI)]
    assert again == findings, "the pieces in which a document comes matter"
    refused: list[RefusedEntry] = []
    try:
        list(read(io.BytesIO(data), uri=URI, on_refused=refused.append).entries())
        is_sound = not refused
    except DocumentError:
        is_sound = False
    assert findings or is_sound, "what cannot be read is found without fault"
    return f"{'found' if findings else 'clean'} {findings!r}"
