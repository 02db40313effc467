"""Catalogue rows that cannot be published: they are found, and mended.

A program that bypasses the view ``post`` may write a row that lacks a field or contradicts the
order of time. The resource of such a row is published with what is known of it for certain.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from resourcesync.catalogue.recording import CatalogueRecording
from resourcesync.catalogue.rows import Row, changes_from_rows, from_row
from resourcesync.catalogue.schema import CATALOGUE_FORMAT
from resourcesync.errors import StateError
from resourcesync.model.entries import Change, Resource
from resourcesync.model.timestamps import to_microseconds
from resourcesync.sqlite_file import Connection, SqliteFile, open_snapshot

Fault = Callable[[Sequence[Resource] | Sequence[Change]], str]
"""Returns why some entries of one kind cannot be published; empty if they can."""
_Entry = TypeVar("_Entry", Resource, Change)

_RUN: Final = 512
_BATCH: Final = 10_000
"""The most rows that are mended in one transaction, so that others may write."""
_COLUMNS: Final = ("uri", "lastmod_us", "length", "hash", "media_type", "more")
_OF_CHANGE: Final = ("seq", "change", "datetime_us", *_COLUMNS)
_OF_RESOURCE: Final = (*_COLUMNS, "fingerprint")
_HERE: Final = "WHERE uri = iif(?, CAST(? AS TEXT), ?)"  # text may be no UTF-8
_CHANGES: Final = "SELECT * FROM change ORDER BY seq"
_RESOURCES: Final = "SELECT * FROM resource"
_CLEAR_RESOURCE: Final = """
UPDATE resource SET lastmod_us = NULL, length = NULL, hash = '', media_type = '', more = '',
    fingerprint = ''
"""


class BadRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that cannot be published. Text in ``values`` that is not UTF-8 has surrogates."""

    table: str
    values: Mapping[str, Any]
    reason: str
    has_uri: bool

    @property
    def place(self) -> str:
        """Return ``change NUMBER``, or ``resource``."""
        return f"{self.table} {self.values['seq']}" if "seq" in self.values else self.table

    @property
    def uri(self) -> str:
        """Return the URI, as far as it is text."""
        uri = self.values["uri"]
        return uri if isinstance(uri, str) else _text(uri)


def find_bad_rows(path: Path, fault: Fault) -> Iterator[BadRow]:
    """Yield the rows of a catalogue that cannot be published; nothing is written."""
    with open_snapshot(path, CATALOGUE_FORMAT) as connection:
        connection.text_factory = _text
        changes = changes_from_rows(connection.execute(_CHANGES))
        yield from _judged("change", _OF_CHANGE, changes, fault)
        yield from _bad_rows(connection.execute(_RESOURCES), fault)


def mend_rows(path: Path, now: datetime, fault: Fault, report: Callable[[BadRow], None]) -> int:
    """Give each bad row the least harmful form that can be published; return their number.

    A resource whose row cannot be published still exists: only the URI of its row is retained. A
    change whose row cannot be published still happened: the resource as it is now is recorded as
    updated, or as deleted if there is none. Nothing is known of a row without a usable URI.
    """
    count, found = 0, find_bad_rows(path, fault)
    with SqliteFile(path, CATALOGUE_FORMAT) as file:
        file.connection.text_factory = _text
        while rows := list(islice(found, _BATCH)):
            with file.writing() as connection:
                uris = dict[str, None]()
                for row in chain.from_iterable(_reread(connection, row, fault) for row in rows):
                    report(row)
                    if row.table == "change":
                        connection.execute("DELETE FROM change WHERE seq = ?", (row.values["seq"],))
                    else:
                        mended = _CLEAR_RESOURCE if row.has_uri else "DELETE FROM resource"
                        connection.execute(f"{mended} {_HERE}", _key(row.values["uri"]))
                    count += 1
                    if row.has_uri:
                        uris[row.uri] = None
                _record_again(connection, uris, to_microseconds(now), fault)
    return count


def _reread(connection: Connection, row: BadRow, fault: Fault) -> Iterable[BadRow]:
    if row.table == "change":
        return (row,)
    return _bad_rows(connection.execute(f"{_RESOURCES} {_HERE}", _key(row.values["uri"])), fault)


def _key(uri: str | bytes) -> tuple[bool, bytes, bytes]:
    is_text = isinstance(uri, str)
    encoded = uri.encode("utf-8", "surrogateescape") if isinstance(uri, str) else uri
    return is_text, encoded, encoded


def _record_again(connection: Connection, uris: Iterable[str], moment: int, fault: Fault) -> None:
    recording = CatalogueRecording(connection, moment)
    for uri in uris:
        row = connection.execute(f"{_RESOURCES} {_HERE}", _key(uri)).fetchone()
        if row is None:
            recording.deleted(Resource(uri=uri))
        elif not any(_bad_rows([row], fault)):  # one that is bad is recorded when it is mended
            recording.updated(from_row(row), row[-1])
    recording.finish()


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _bad_rows(rows: Iterable[Row], fault: Fault) -> Iterator[BadRow]:
    return _judged("resource", _OF_RESOURCE, map(_resource_of, rows), fault)


def _resource_of(row: Row) -> tuple[Row, Resource | StateError]:
    if type(row[-1]) is not str:
        return row, StateError("its fingerprint is no text")
    try:
        return row, from_row(row)
    except StateError as error:
        return row, error


def _judged(
    table: str,
    columns: Sequence[str],
    rows: Iterator[tuple[Row, _Entry | StateError]],
    fault: Fault,
) -> Iterator[BadRow]:
    while some := list(islice(rows, _RUN)):
        entries = [entry for _, entry in some if not isinstance(entry, StateError)]
        if len(entries) == len(some) and not fault(entries):
            continue
        for row, entry in some:
            reason = entry.message if isinstance(entry, StateError) else fault([entry])
            if reason:
                values = dict(zip(columns, row, strict=True))
                uri = values["uri"]
                has_uri = isinstance(uri, str) and not fault([Resource(uri=uri)])
                yield BadRow(table=table, values=values, reason=reason, has_uri=has_uri)
