"""What must hold when a document is read, whatever it is."""

import io
from typing import Final

from resourcesync.documents.reading import Document, read
from resourcesync.errors import DocumentError
from resourcesync.model.capabilities import RefusedEntry
from resourcesync.model.vocabulary import Capability

URI: Final = "https://source.example/list.xml"
_ROWED: Final = frozenset({None, Capability.RESOURCE_LIST, Capability.CHANGE_LIST})


def read_twice(data: bytes) -> str:
    """Read a document as entries and, where it can be, as rows.

    Returns:
        What it said; a failure begins with its code.

    Raises:
        AssertionError: An error without a place, or two ways of reading that do not agree.
    """
    opened, told = _open(data)
    if opened is None:
        return told
    entries, ending = _entries(opened)
    if opened.header.capability in _ROWED and not opened.header.is_index:
        _compare_rows(data, entries, ending)
    return f"{ending} {opened.header!r} {opened.dialect} {entries!r} {told}"


def _open(data: bytes) -> tuple[Document | None, str]:
    refused: list[RefusedEntry] = []
    try:
        return read(io.BytesIO(data), uri=URI, on_refused=refused.append), ""
    except DocumentError as error:
        return None, _said(error)


def _entries(opened: Document) -> tuple[list[str], str]:
    entries: list[str] = []
    try:
        entries.extend(map(repr, opened.entries()))
    except DocumentError as error:
        return entries, _said(error)
    return entries, "read"


def _compare_rows(data: bytes, entries: list[str], ending: str) -> None:
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


def _said(error: DocumentError) -> str:
    assert error.uri == URI
    assert str(error)
    assert error.line >= 0
    assert error.column >= 0
    return f"{error.code} {type(error).__name__} {error} {error.line}:{error.column}"
