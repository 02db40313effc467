"""Listed records on their way into the state: each record's fate, and its files."""

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from resourcesync.errors import DocumentError
from resourcesync.model.digests import format_digests
from resourcesync.model.timestamps import format_w3c
from resourcesync.sqlite_file import Connection
from resourcesync_oai.documents.item_metadata import ItemMetadata, MetadataFile, parse_item_metadata
from resourcesync_oai.documents.records import OaiRecord, RecordHeader, parse_datestamp
from resourcesync_oai.metadata_files import file_name, path_of
from resourcesync_oai.options import OaiOptions
from resourcesync_oai.repository_state import RepositoryState, Row

_log = logging.getLogger(__name__)

_KNOWN: Final = """
SELECT datestamp, sets, is_gone, is_restricted, path, attempt FROM record
WHERE identifier = ? AND prefix = ?
"""
_STORE: Final = "INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_MARK_LISTED: Final = "UPDATE record SET attempt = ? WHERE identifier = ? AND prefix = ?"
_MENTIONED: Final = """
SELECT uri, length, hash, media_type, is_restricted FROM mention
WHERE identifier = ? AND prefix = ? ORDER BY uri
"""
_LOST: Final = "SELECT identifier, prefix, path FROM record WHERE NOT is_gone AND attempt < ?"
_WITHDRAW: Final = "UPDATE record SET is_gone = 1 WHERE identifier = ? AND prefix = ?"


class PageCounts(NamedTuple):
    """Counts of one page.

    Attributes:
        records: Number of records.
        fresh: Records not listed before in the same list.
        unnamed: Records whose identifier cannot be read.
    """

    records: int = 0
    fresh: int = 0
    unnamed: int = 0


class RecordStore:
    """The records of a repository."""

    def __init__(
        self,
        memory: RepositoryState,
        choice: OaiOptions,
        *,
        published: Mapping[str, str],
        namespace: str,
        now: datetime,
    ) -> None:
        self._memory, self._choice = memory, choice
        self._namespace, self._now = namespace, now
        suffix = "" if choice.names == "dspace" else ".xml"
        self._names = {prefix: file_name(prefix, suffix) for prefix in published}
        self._all_names = frozenset(self._names.values())

    def store_page(
        self, connection: Connection, prefix: str, records: Iterable[OaiRecord], attempt: int
    ) -> PageCounts:
        """Store the records of one page, inside a transaction."""
        count = fresh = unnamed = 0
        for record in records:
            count += 1
            if record.header is None:
                unnamed += 1
                _log.warning("a record without identifier is left out: %s", record.problem)
                continue
            known = connection.execute(_KNOWN, (record.header.identifier, prefix)).fetchone()
            fresh += known is None or known[5] != attempt
            self._store_record(connection, prefix, record, known, attempt)
        return PageCounts(records=count, fresh=fresh, unnamed=unnamed)

    def withdraw_missing(self, connection: Connection, attempt: int) -> int:
        """Withdraw the records that no list since ``attempt`` had; return their number."""
        lost = connection.execute(_LOST, (attempt,)).fetchall()
        for identifier, prefix, path in lost:
            self._withdraw(connection, identifier, prefix, path)
            connection.execute(_WITHDRAW, (identifier, prefix))
        return len(lost)

    def _store_record(
        self,
        connection: Connection,
        prefix: str,
        record: OaiRecord,
        known: Row | None,
        attempt: int,
    ) -> None:
        header = record.header
        assert header is not None, "looked at before"
        key = (header.identifier, prefix)
        if known is not None and known[5] == attempt and header.datestamp < known[0]:
            return  # listed twice, and this is the older state
        if record.problem and not header.is_deleted:
            _log.warning("%s in %s is left out: %s", *key, record.problem)
            connection.execute(_MARK_LISTED, (attempt, *key))
            return
        if header.is_deleted:
            if known is not None and not known[2]:
                self._withdraw(connection, *key, known[4])
            row = (*key, header.datestamp, "[]", 1, 0, known[4] if known else "", attempt)
            connection.execute(_STORE, row)
            return
        try:
            findings = parse_item_metadata(record.metadata)
        except DocumentError as error:
            _log.warning("no files are found in %s in %s: %s", *key, error.message)
            findings = ItemMetadata()
        self._store_found(connection, key, record, findings, known=known, attempt=attempt)

    def _withdraw(self, connection: Connection, identifier: str, prefix: str, path: str) -> None:
        connection.execute(
            "INSERT OR IGNORE INTO touched_file SELECT uri FROM mention"
            " WHERE identifier = ? AND prefix = ?",
            (identifier, prefix),
        )
        connection.execute(
            "DELETE FROM mention WHERE identifier = ? AND prefix = ?", (identifier, prefix)
        )
        connection.execute(
            "UPDATE document SET is_wanted = 0, content = NULL WHERE path = ?", (path,)
        )
        connection.execute("INSERT OR IGNORE INTO touched_item VALUES (?)", (identifier,))

    def _store_found(
        self,
        connection: Connection,
        key: tuple[str, str],
        record: OaiRecord,
        findings: ItemMetadata,
        *,
        known: Row | None,
        attempt: int,
    ) -> None:
        header = record.header
        assert header is not None, "looked at before"
        sets = json.dumps(sorted(header.sets))
        restricted = int(self._choice.is_restricted(findings))
        path = ""
        if key[1] in self._names:
            name = self._names[key[1]]
            path = path_of(header.identifier, name, self._namespace, self._all_names)
        is_new_text = path and self._store_document(connection, path, header, record.metadata)
        files = self._files(findings.files)
        differs = files != connection.execute(_MENTIONED, key).fetchall()
        if differs:
            self._store_mentions(connection, key, files)
        now = (header.datestamp, sets, 0, restricted, path)
        if known is None or is_new_text or differs or known[:5] != now:
            connection.execute("INSERT OR IGNORE INTO touched_item VALUES (?)", key[:1])
        connection.execute(_STORE, (*key, *now, attempt))

    def _files(self, found: Iterable[MetadataFile]) -> list[Row]:
        today = f"{self._now:%Y-%m-%d}"
        chosen = self._choice.select_files(ItemMetadata(files=tuple(found)))
        return sorted(
            (
                file.uri,
                file.length,
                format_digests(file.digests),
                file.media_type,
                int(not file.is_public_on(today)),
            )
            for file in chosen
        )

    def _store_mentions(
        self, connection: Connection, key: tuple[str, str], files: list[Row]
    ) -> None:
        connection.execute(
            "INSERT OR IGNORE INTO touched_file SELECT uri FROM mention"
            " WHERE identifier = ? AND prefix = ?",
            key,
        )
        connection.execute("DELETE FROM mention WHERE identifier = ? AND prefix = ?", key)
        connection.executemany(
            "INSERT INTO mention VALUES (?, ?, ?, ?, ?, ?, ?)", ((*key, *row) for row in files)
        )
        connection.executemany(
            "INSERT OR IGNORE INTO touched_file VALUES (?)", ((row[0],) for row in files)
        )

    def _store_document(
        self, connection: Connection, path: str, header: RecordHeader, content: bytes
    ) -> bool:
        """Store the bytes until they are written; return whether they differ from before."""
        digest = hashlib.sha256(content).hexdigest()
        known = connection.execute(
            "SELECT sha256, is_wanted, lastmod FROM document WHERE path = ?", (path,)
        ).fetchone()
        if known is not None and known[:2] == (digest, 1):
            return False
        is_lost = known is not None and known[0] == f"?{digest}"  # see MetadataFiles.mark_missing
        lastmod = known[2] if is_lost else self._lastmod(header, known)
        connection.execute(
            "INSERT OR REPLACE INTO document VALUES (?, ?, ?, ?, ?, 1)",
            (path, len(content), digest, lastmod, content),
        )
        return True

    def _lastmod(self, header: RecordHeader, known: Row | None) -> str:
        """Return the time of changed bytes: later than that of the bytes before, if any.

        A datestamp may be only a day, on which a record can change twice.
        """
        found = parse_datestamp(header.datestamp)
        before = parse_datestamp(known[2]) if known is not None else None
        told = self._now if found is None else min(found, self._now)
        return format_w3c(told if before is None or told > before else self._now)
