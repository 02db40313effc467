"""Asks for files by HEAD: how long they are, of which type, and whether everybody may have them."""

from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

from resourcesync.adapters.oai.memory import RepositoryState, Row
from resourcesync.adapters.oai.telling import REFUSED
from resourcesync.errors import SourceError
from resourcesync.model.timestamps import format_w3c
from resourcesync.ports import Fetcher, FetchFailure, FetchRequest, FetchResponse, Purpose

_BATCH: Final = 200
_OK: Final = 200
_DIGITS: Final = 18
_LONGEST: Final = 200
_WANTED: Final = """
SELECT uri FROM touched_file
WHERE uri > ? AND EXISTS (SELECT 1 FROM mention WHERE mention.uri = touched_file.uri)
ORDER BY uri LIMIT 500
"""


class FileMeasurements:
    """What is learnt of files by asking for them.

    Args:
        memory: Where it is remembered.
        fetcher: The network.
        now: The present moment; no time told is later.
    """

    def __init__(self, memory: RepositoryState, fetcher: Fetcher, now: datetime) -> None:
        self._memory, self._fetcher, self._now = memory, fetcher, now

    def retry_unavailable(self) -> None:
        """Let what could not be had be asked for again: an embargo may have passed."""
        with self._memory.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO touched_file SELECT uri FROM file WHERE status <> 200"
                " AND EXISTS (SELECT 1 FROM mention WHERE mention.uri = file.uri)"
            )

    def measure(self) -> None:
        """Ask for each file that is to be told anew.

        A server that does not answer is no error: then nothing is known of the file.
        """
        rows: list[Row] = []
        for outcome in self._fetcher.fetch(self._requests()):
            rows.append(self._measured_row(outcome))
            if len(rows) >= _BATCH:
                self._store_rows(rows)
                rows = []
        self._store_rows(rows)

    def _requests(self) -> Iterator[FetchRequest]:
        last = ""
        while rows := self._memory.rows(_WANTED, last):
            last = rows[-1][0]
            for (uri,) in rows:
                yield FetchRequest(
                    uri=uri, sink=_HeadSink(), purpose=Purpose.RESOURCE, is_head=True
                )

    def _measured_row(self, outcome: FetchResponse | FetchFailure) -> Row:
        uri = outcome.request.uri
        if isinstance(outcome, FetchFailure):
            status = outcome.error.status if isinstance(outcome.error, SourceError) else 0
            return uri, status if status in REFUSED else 0, None, "", ""
        told = outcome.headers
        length = told.get("content-length", "")
        is_plain = told.get("content-encoding", "identity").lower() == "identity"
        is_length = is_plain and length.isascii() and length.isdigit() and len(length) < _DIGITS
        media_type = told.get("content-type", "").strip()
        is_type = "/" in media_type and media_type.isprintable() and len(media_type) <= _LONGEST
        return (
            uri,
            _OK,
            int(length) if is_length else None,
            media_type if is_type else "",
            self._time(told.get("last-modified", "")),
        )

    def _time(self, text: str) -> str:
        try:
            found = parsedate_to_datetime(text)
            return format_w3c(min(found, self._now)) if found.tzinfo is not None else ""
        except (ValueError, TypeError, OverflowError):
            return ""

    def _store_rows(self, rows: list[Row]) -> None:
        with self._memory.writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?)", rows)


class _HeadSink:
    """Takes the body that the answer to HEAD does not have."""

    def write(self, chunk: bytes) -> None:
        """Pass over it."""

    def restart(self) -> None:
        """There is nothing to forget."""
