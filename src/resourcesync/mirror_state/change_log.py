"""The change log of a mirror.

The log is written in the transaction that stores the copies. One row holds the changes of one
transaction, as JSON: a row for each change made a pull of small files a tenth slower; this way
costs next to nothing.

While a file changes, the row of its copy says nothing of its content. The former content is in the
note ``in-doubt`` until the change is complete, also after a kill: only so can a true change be
distinguished from the same bytes fetched again. If a run ended in between, a program may
have read other bytes meanwhile: then the same bytes are an update, too.
"""

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from resourcesync.mirror_state.rows import Copy, MirrorChangeKind, StateTransaction
from resourcesync.model.digests import agree, parse_digests
from resourcesync.sqlite_file import Connection, SqliteFile, write_notes

MAX_CHANGES: Final = 1_000_000
MAX_AGE_MICROSECONDS: Final = 90 * 86_400 * 1_000_000

_SUSPECT_NOTE: Final = "in-doubt"
_Before = tuple[int, str]
"""Length and digests of a copy before its file began to change."""

LogEntry = tuple[str, str, str, int, str, str]
"""Kind, URI, path, length, digests, previous digests."""

_CREATED, _DELETED = MirrorChangeKind.CREATED.value, MirrorChangeKind.DELETED.value
_TOUCHED = MirrorChangeKind.TOUCHED.value
_encode = msgspec.json.Encoder().encode


class ChangeLogWriter:
    """A writer of the change log; one for each writing connection."""

    def __init__(self, file: SqliteFile) -> None:
        self._file, self._db = file, file.connection
        self._befores = dict(read_befores(file))
        self._suspects: set[str] = set()
        self._exposed = set(self._befores)
        """Copies whose file may have had other bytes since a run ended, or was killed."""

    def write(self, step: StateTransaction) -> None:
        """Log the changes of a step, in its transaction and before its rows are written."""
        before = self._befores.copy()
        if step.suspect:
            self._mark_suspect(step.suspect)
        if step.installed or step.removed:
            self._log(step)
        if self._befores != before:
            write_notes(self._db, {_SUSPECT_NOTE: _encode(self._befores).decode()})

    def end_run(self) -> None:
        """Note the files that a run, which failed or was stopped, leaves in an unknown state."""
        self._exposed.update(self._befores)

    def _mark_suspect(self, doubted: Sequence[Copy]) -> None:
        # A copy that was ever installed has a signature: a new one needs no lookup.
        unsure = [copy.uri for copy in doubted if copy.length < 0 and copy.signature]
        if unsure:
            self._befores.update(self._known(unsure))
        self._suspects.update([copy.uri for copy in doubted if copy.length < 0])
        for copy in doubted:
            if copy.length >= 0:
                self._pop_suspect(copy.uri)

    def _pop_suspect(self, uri: str) -> _Before | None:
        self._suspects.discard(uri)
        self._exposed.discard(uri)
        return self._befores.pop(uri, None)

    def _known(self, uris: Sequence[str]) -> dict[str, _Before]:
        """Return the content of the copies of some URIs, as far as there are any."""
        rows = self._file.rows(
            tuple[str, int, str],
            "SELECT uri, length, digests FROM copy"
            " WHERE length >= 0 AND uri IN (SELECT value FROM json_each(?))",
            (json.dumps(uris),),
        )
        return {uri: (length, digests) for uri, length, digests in rows}

    def _log(self, step: StateTransaction) -> None:
        changed = [*[copy.uri for copy in step.installed], *step.removed]
        plain = [uri for uri in changed if uri not in self._suspects]
        if plain:
            self._befores.update(self._known(plain))
        befores = self._befores
        entries = [
            _replaced(copy, befores.pop(copy.uri), was_exposed=copy.uri in self._exposed)
            if copy.uri in befores
            else (_CREATED, copy.uri, copy.path, copy.length, copy.digests, "")
            for copy in step.installed
        ]
        self._suspects.difference_update([copy.uri for copy in step.installed])
        self._exposed.difference_update([copy.uri for copy in step.installed])
        entries += [entry for uri in step.removed if (entry := self._removed(uri))]
        if not entries:
            return
        now = max(step.now, *[copy.installed for copy in step.installed], 0)
        _append(self._db, entries, now)

    def _removed(self, uri: str) -> LogEntry | None:
        before = self._pop_suspect(uri)
        found = self._file.row(tuple[str], "SELECT path FROM copy WHERE uri = ?", (uri,))
        if before is None or found is None:
            return None  # it never existed: its first installation failed
        return _DELETED, uri, found[0], before[0], "", before[1]


def log_touched(file: SqliteFile, uris: Sequence[str], now: int) -> dict[str, int]:
    """Log that copies were touched; return the number of each. Those changing now are left out."""
    rows = file.rows(
        tuple[str, str, int, str],
        "SELECT uri, path, length, digests FROM copy"
        " WHERE length >= 0 AND uri IN (SELECT value FROM json_each(?)) ORDER BY uri",
        (json.dumps(uris),),
    )
    if not rows:
        return {}
    last = _append(file.connection, [(_TOUCHED, *row, row[3]) for row in rows], now)
    return {row[0]: number for number, row in enumerate(rows, last - len(rows) + 1)}


def _append(db: Connection, entries: Sequence[LogEntry], now: int) -> int:
    """Write one row; return the number of its last entry."""
    last: int = (db.execute("SELECT max(seq) FROM change").fetchone()[0] or 0) + len(entries)
    row = (last, now, len(entries), _encode(entries).decode())
    db.execute("INSERT INTO change VALUES (?,?,?,?)", row)
    db.execute("DELETE FROM change WHERE seq <= ?", (last - MAX_CHANGES,))
    return last


def read_befores(file: SqliteFile) -> dict[str, _Before]:
    """Return the former content of the copies whose files are changing now, by URI."""
    return file.read_note(_SUSPECT_NOTE, dict[str, _Before]) or {}


def _replaced(copy: Copy, before: _Before, *, was_exposed: bool) -> LogEntry:
    """Return the entry of a copy that replaces another content."""
    length, digests = before
    same = length == copy.length and (
        copy.digests == digests or agree(parse_digests(copy.digests), parse_digests(digests))
    )
    if same and was_exposed:
        digests = ""
    kind = _TOUCHED if same and not was_exposed else MirrorChangeKind.UPDATED.value
    return kind, copy.uri, copy.path, copy.length, copy.digests, digests


def delete_old_changes(db: Connection, now: int) -> None:
    """Delete the changes older than 90 days, but the newest of them.

    It has the number, and a reader that has read all of them has its position there.
    """
    db.execute(
        "DELETE FROM change WHERE seq < (SELECT max(seq) FROM change WHERE time < ?)",
        (now - MAX_AGE_MICROSECONDS,),
    )
