"""Catalogue rows that cannot be published, moved out of the way of the valid ones.

A program that bypasses the view ``post`` may write a row that lacks a field or contradicts the
order of time. Such a row is moved to the table ``set_aside``, and the state of its URI in the
table ``resource`` is published as a change of now. So no change is lost and none is invented.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from resourcesync.adapters.catalogue.database import CATALOGUE_FORMAT
from resourcesync.adapters.catalogue.rows import Row, change_from_row, check_types, from_row
from resourcesync.adapters.catalogue.sqlite_catalogue import FileRecording
from resourcesync.errors import StateError
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import to_microseconds
from resourcesync.sqlite_file import Connection, SqliteFile, open_snapshot

Fault = Callable[[Sequence[Resource] | Sequence[Change]], str]
"""Returns why some entries of one kind cannot be published; empty if they can."""

_RUN: Final = 512
_CHANGES: Final = """
SELECT seq, change, datetime_us, uri, lastmod_us, length, hash, media_type, more FROM change
ORDER BY seq
"""
_RESOURCES: Final = """
SELECT uri, lastmod_us, length, hash, media_type, more FROM resource ORDER BY uri
"""
_RESOURCE: Final = """
SELECT uri, lastmod_us, length, hash, media_type, more, fingerprint FROM resource
WHERE uri = CAST(? AS TEXT)
"""
_QUARANTINE_CHANGE: Final = """
INSERT INTO set_aside (taken_us, reason, seq, change, datetime_us, uri, lastmod_us, length, hash,
    media_type, more)
SELECT ?, ?, seq, change, datetime_us, uri, lastmod_us, length, hash, media_type, more
FROM change WHERE seq = ?
"""
_QUARANTINE_RESOURCE: Final = """
INSERT INTO set_aside (taken_us, reason, uri, lastmod_us, length, hash, media_type, more)
SELECT ?, ?, uri, lastmod_us, length, hash, media_type, more FROM resource
WHERE uri = CASE WHEN ? THEN CAST(? AS TEXT) ELSE ? END
"""
_DROP_CHANGE: Final = "DELETE FROM change WHERE seq = ?"
_DROP_RESOURCE: Final = """
DELETE FROM resource WHERE uri = CASE WHEN ? THEN CAST(? AS TEXT) ELSE ? END
"""
_DROP_EDIT: Final = "DELETE FROM edit WHERE uri = CASE WHEN ? THEN CAST(? AS TEXT) ELSE ? END"
_CLEAR_RESOURCE: Final = """
UPDATE resource SET lastmod_us = NULL, length = NULL, hash = '', media_type = '', more = '',
    fingerprint = '' WHERE uri = CASE WHEN ? THEN CAST(? AS TEXT) ELSE ? END
"""


class BadRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that cannot be published.

    Attributes:
        table: The table of the row.
        number: The number of a change; 0 of a resource.
        uri: The URI, as far as it is text.
        reason: The reason.
        is_text: The URI has the type text in the table too, not blob.
    """

    table: Literal["change", "resource"]
    number: int = 0
    uri: str
    reason: str
    is_text: bool = True


def find_bad_rows(path: Path, fault: Fault) -> Iterator[BadRow]:
    """Yield the rows of a catalogue that cannot be published; nothing is written."""
    with open_snapshot(path, CATALOGUE_FORMAT) as connection:
        connection.text_factory = _text
        yield from _bad_changes(connection, fault)
        cursor = connection.execute(_RESOURCES)
        while rows := cursor.fetchmany(_RUN):
            if not _has_fault(rows, fault):
                continue
            for row in rows:
                if reason := _fault_of(row, fault):
                    is_text = isinstance(row[0], str)
                    yield BadRow(table="resource", uri=_uri(row[0]), reason=reason, is_text=is_text)


def quarantine_rows(path: Path, rows: Iterable[BadRow], now: datetime, fault: Fault) -> None:
    """Move rows to the table ``set_aside``, and publish the state of their URIs; all or nothing.

    A resource whose row cannot be published still exists: only the URI of its row is retained. A
    change whose row cannot be published still happened: the resource as it is now is reported as
    updated, or as deleted if there is none.
    """
    moment, uris = to_microseconds(now), dict[str, None]()
    with SqliteFile(path, CATALOGUE_FORMAT) as file:
        file.connection.text_factory = _text
        with file.writing() as connection:
            for row in rows:
                is_known = row.is_text and not fault([Resource(uri=row.uri)])
                _move(connection, row, moment, is_known=is_known)
                if is_known:
                    uris[row.uri] = None
            _record_again(connection, uris, moment, fault)


def _move(connection: Connection, row: BadRow, moment: int, *, is_known: bool) -> None:
    reason = row.reason.encode("utf-8", "backslashreplace").decode()
    if row.table == "change":
        connection.execute(_QUARANTINE_CHANGE, (moment, reason, row.number))
        connection.execute(_DROP_CHANGE, (row.number,))
        return
    uri = row.uri.encode("utf-8", "surrogateescape")
    key = (row.is_text, uri, uri)
    connection.execute(_QUARANTINE_RESOURCE, (moment, reason, *key))
    connection.execute(_CLEAR_RESOURCE if is_known else _DROP_RESOURCE, key)
    if not is_known:
        connection.execute(_DROP_EDIT, key)


def _record_again(connection: Connection, uris: Iterable[str], moment: int, fault: Fault) -> None:
    recording = FileRecording(connection, moment)
    for uri in uris:
        row = connection.execute(_RESOURCE, (uri.encode(),)).fetchone()
        if row is None:
            recording.deleted(Resource(uri=uri))
        elif not _fault_of(row[:6], fault):  # a fault moves its own row later
            recording.updated(from_row(row), row[6])
    recording.finish()


def _text(value: bytes) -> str:
    """Decode text, also if it is not UTF-8."""
    return value.decode("utf-8", "surrogateescape")


def _bad_changes(connection: Connection, fault: Fault) -> Iterator[BadRow]:
    last: int | None = None
    cursor = connection.execute(_CHANGES)
    while rows := cursor.fetchmany(_RUN):
        sound: list[tuple[Row, Change]] = []
        for row in rows:
            found = _change_of(row, last)
            if isinstance(found, str):
                yield _bad_change(row, found)
            else:
                last = row[2]
                sound.append((row, found))
        if fault([change for _, change in sound]):
            for row, change in sound:
                if reason := fault([change]):
                    yield _bad_change(row, reason)


def _change_of(row: Row, last: int | None) -> Change | str:
    """Return the change of a row, or the reason that there is none."""
    try:
        check_types(row[3:])
        change = change_from_row(row[0], row[1], row[2], row[3:])
    except StateError as error:
        return error.message
    if last is not None and row[2] <= last:
        return "it is not later than the change before it"
    return change


def _bad_change(row: Row, reason: str) -> BadRow:
    return BadRow(table="change", number=row[0], uri=_uri(row[3]), reason=reason)


def _has_fault(rows: Sequence[Row], fault: Fault) -> bool:
    try:
        for row in rows:
            check_types(row)
        return bool(fault([from_row(row) for row in rows]))
    except StateError:
        return True


def _fault_of(row: Row, fault: Fault) -> str:
    try:
        check_types(row)
        return fault([from_row(row)])
    except StateError as error:
        return error.message


def _uri(value: Any) -> str:
    return _text(value) if isinstance(value, bytes) else str(value)
