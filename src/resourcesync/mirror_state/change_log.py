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
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from resourcesync.mirror_state.rows import (
    PROVEN_ALL,
    Copy,
    EntryRow,
    LoggedChange,
    MirrorChangeKind,
    PatchRow,
    PendingCause,
    PendingTask,
    ProcessedDocument,
    RunRow,
    StateTransaction,
    TrashRow,
)
from resourcesync.model.digests import agree, parse_digests
from resourcesync.model.timestamps import ClockMicroseconds, Microseconds
from resourcesync.sqlite_file import Connection, SqliteFile, write_notes

MAX_CHANGES: Final = 1_000_000
FIRST_FAILED: Final = """SELECT min(rowid) FROM run WHERE rowid >
coalesce((SELECT max(rowid) FROM run WHERE mode <> ''), 0)"""
"""A query of the first of the runs that failed in a row."""
MAX_AGE_MICROSECONDS: Final = 90 * 86_400 * 1_000_000

_SUSPECT_NOTE: Final = "in-doubt"


class Before(NamedTuple):
    """A copy before its file began to change."""

    length: int
    digests: str
    path: str


class _ChangeEntry(NamedTuple):
    kind: MirrorChangeKind
    uri: str
    path: str
    length: int
    digests: str
    previous: str
    was: str = ""


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
            self._end_paths(step)
            self._mark_suspect(step.suspect)
        if step.installed or step.removed:
            self._log(step)
        if self._befores != before:
            write_notes(self._db, {_SUSPECT_NOTE: _encode(self._befores).decode()})

    def end_run(self) -> None:
        """Note the files that a run, which failed or was stopped, leaves in an unknown state."""
        self._exposed.update(self._befores)

    def _end_paths(self, step: StateTransaction) -> None:
        # A copy whose content is unknown has moved: its path may have another before it is known.
        before = self._befores
        moved = [copy for copy in step.suspect if copy.uri in before]
        moved = [copy for copy in moved if copy.path != before[copy.uri].path]
        entries = [entry for copy in moved if (entry := self._removed(copy.uri))]
        if entries:
            _append(self._db, entries, step.now)

    def _mark_suspect(self, doubted: Sequence[Copy]) -> None:
        # A copy that was ever installed has a signature: a new one needs no lookup.
        unsure = [copy.uri for copy in doubted if copy.length < 0 and copy.signature]
        if unsure:
            self._befores.update(self._known(unsure))
        self._suspects.update([copy.uri for copy in doubted if copy.length < 0])
        for copy in doubted:
            if copy.length >= 0:
                self._pop_suspect(copy.uri)

    def _pop_suspect(self, uri: str) -> Before | None:
        self._suspects.discard(uri)
        self._exposed.discard(uri)
        return self._befores.pop(uri, None)

    def _known(self, uris: Sequence[str]) -> dict[str, Before]:
        rows = self._file.rows(
            tuple[str, int, str, str],
            "SELECT uri, length, digests, path FROM copy"
            " WHERE length >= 0 AND uri IN (SELECT value FROM json_each(?))",
            (json.dumps(uris),),
        )
        return {uri: Before(length, digests, path) for uri, length, digests, path in rows}

    def _log(self, step: StateTransaction) -> None:
        changed = [*[copy.uri for copy in step.installed], *step.removed]
        plain = [uri for uri in changed if uri not in self._suspects]
        if plain:
            self._befores.update(self._known(plain))
        befores = self._befores
        entries = [
            _replaced(copy, befores.pop(copy.uri), was_exposed=copy.uri in self._exposed)
            if copy.uri in befores
            else _ChangeEntry("created", copy.uri, copy.path, copy.length, copy.digests, "")
            for copy in step.installed
        ]
        self._suspects.difference_update([copy.uri for copy in step.installed])
        self._exposed.difference_update([copy.uri for copy in step.installed])
        entries += [entry for uri in step.removed if (entry := self._removed(uri))]
        if not entries:
            return
        now = max(step.now, *[copy.installed for copy in step.installed], 0)
        _append(self._db, entries, now)

    def _removed(self, uri: str) -> _ChangeEntry | None:
        before = self._pop_suspect(uri)
        if before is None:
            return None  # it never existed: its first installation failed
        return _ChangeEntry("deleted", uri, before.path, before.length, "", before.digests)


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
    last = _append(file.connection, [_ChangeEntry("touched", *row, row[3]) for row in rows], now)
    return {row[0]: number for number, row in enumerate(rows, last - len(rows) + 1)}


def _append(db: Connection, entries: Sequence[_ChangeEntry], now: int) -> int:
    last: int = (db.execute("SELECT max(seq) FROM change").fetchone()[0] or 0) + len(entries)
    row = (last, now, len(entries), _encode(entries).decode())
    db.execute("INSERT INTO change VALUES (?,?,?,?)", row)
    db.execute("DELETE FROM change WHERE seq <= ?", (last - MAX_CHANGES,))
    return last


def read_befores(file: SqliteFile) -> dict[str, Before]:
    """Return the former content of the copies whose files are changing now, by URI."""
    return file.read_note(_SUSPECT_NOTE, dict[str, Before]) or {}


def _replaced(copy: Copy, before: Before, *, was_exposed: bool) -> _ChangeEntry:
    length, digests, path = before
    same = length == copy.length and (
        copy.digests == digests or agree(parse_digests(copy.digests), parse_digests(digests))
    )
    if same and was_exposed:
        digests = ""
    was = path if path != copy.path else ""
    kind: MirrorChangeKind = "touched" if same and not (was or was_exposed) else "updated"
    return _ChangeEntry(kind, copy.uri, copy.path, copy.length, copy.digests, digests, was)


def last_old_change(file: SqliteFile, now: int) -> int:
    """Return the number of the last change before the first of the last 90 days; 0 for none.

    It stays: a reader that has read all of the old ones has its position there. A time before that
    of an earlier change is of a wrong clock, and proves no age; neither does a future one.
    """
    query = (
        "SELECT max(seq) FROM change WHERE seq < coalesce("
        "(SELECT seq FROM change WHERE time BETWEEN ? AND ? ORDER BY seq LIMIT 1), 1 << 62)"
    )
    found = file.row(tuple[int | None], query, (now - MAX_AGE_MICROSECONDS, now))
    return (found and found[0]) or 0


_PAGE: Final = 1_000
DOCUMENTS: Final = "SELECT uri, from_, until, entries, prefix, etag, last_modified FROM document"
"""The start of a query of ``ProcessedDocument`` s."""
_PUT_ENTRY: Final = """
INSERT INTO entry VALUES (?,?,?,?) ON CONFLICT (uri) DO UPDATE SET
    links = excluded.links, generation = excluded.generation,
    changed = CASE WHEN excluded.changed > 0 THEN excluded.changed ELSE changed END
"""
_OUTDATED: Final = "SELECT uri FROM entry WHERE generation < ? AND links > '' LIMIT ?"
_LINKING: Final = """
SELECT uri FROM entry WHERE links > '' AND EXISTS (
    SELECT 1 FROM json_each(entry.links) AS link
    WHERE json_extract(link.value, '$[1]') IN (SELECT value FROM json_each(?))
) ORDER BY uri
"""


def write_entries(file: SqliteFile, step: StateTransaction) -> None:
    """Write the entries of a step, inside its transaction and before its copies are written."""
    db = file.connection
    if step.entries:
        _put_entries(file, step.entries, step.now)
    db.executemany("DELETE FROM entry WHERE uri = ?", [(uri,) for uri in step.removed])
    if not step.outdated:
        return
    while rows := file.rows(tuple[str], _OUTDATED, (step.outdated, _PAGE)):
        _put_entries(file, [EntryRow(row[0], "", step.outdated) for row in rows], step.now)
    db.execute("DELETE FROM entry WHERE links = '' AND uri NOT IN (SELECT uri FROM copy)")


def _put_entries(file: SqliteFile, entries: Sequence[EntryRow], now: int) -> None:
    known = dict(
        file.rows(
            tuple[str, str],
            "SELECT uri, links FROM entry WHERE uri IN (SELECT value FROM json_each(?))",
            (json.dumps([row.uri for row in entries]),),
        )
    )
    news = [row.uri for row in entries if known.get(row.uri, "") != row.links]
    numbers = log_touched(file, news, now) if news else {}
    rows = [(row.uri, row.links, numbers.get(row.uri, 0), row.generation) for row in entries]
    file.connection.executemany(_PUT_ENTRY, rows)


_DROP = "INSERT OR REPLACE INTO link SELECT uri, '', generation FROM link WHERE via = ?"
_ORPHANS = """
SELECT uri FROM link AS mark WHERE via = '' AND uri > ?
AND NOT EXISTS (SELECT 1 FROM link WHERE uri = mark.uri AND via > '') ORDER BY uri LIMIT ?
"""


def write_links(db: Connection, step: StateTransaction) -> None:
    """Write the links and patches of a step, inside its transaction."""
    dropped = [(via,) for via in step.unlinked]
    db.executemany(_DROP, dropped)
    db.executemany("DELETE FROM link WHERE via = ?", dropped)
    gone = [(uri,) for uri in (*step.listed, *step.removed)]
    db.executemany("DELETE FROM link WHERE uri = ?", gone)
    db.executemany("INSERT OR REPLACE INTO link VALUES (?,?,?)", step.linked)
    db.executemany("DELETE FROM patched WHERE uri = ?", [(uri,) for uri in step.removed])
    db.executemany("INSERT OR REPLACE INTO patched VALUES (?,?,?)", step.patched)
    if step.outdated:
        db.execute("DELETE FROM link WHERE generation < ?", (step.outdated,))


_PROOF_PAGE: Final = 2_000
_OLDEST: Final = """
CREATE TEMP TABLE proving AS
SELECT uri, max(installed, coalesce(proven, 0), :all) AS moment FROM copy
LEFT JOIN proof USING (uri) WHERE length >= 0 ORDER BY moment, uri
"""


class _LogRow(NamedTuple):
    last: int
    time: ClockMicroseconds
    changes: str


class MirrorLogs(SqliteFile):
    """The logs of a mirror's state, for reading.

    The log of changes is bounded: old changes are deleted, the oldest first.
    """

    def changes(self, after: int) -> Iterator[LoggedChange]:
        """Yield the changes after a number, in order; rows may be written meanwhile."""
        query = "SELECT seq, time, changes FROM change WHERE seq > ? ORDER BY seq LIMIT 1"
        while row := self.row(_LogRow, query, (after,)):
            yield from (change for change in self._changes_in(row) if change.seq > after)
            after = row.last

    def changes_of(self, uri: str) -> Iterator[LoggedChange]:
        """Yield the changes of one resource, the newest first."""
        query = "SELECT seq, time, changes FROM change WHERE instr(changes, ?) ORDER BY seq DESC"
        with self.errors:
            for row in self.connection.execute(query, (uri,)):
                found = self._changes_in(self.errors.decode(row, _LogRow))
                yield from (change for change in reversed(found) if change.uri == uri)

    def _changes_in(self, row: _LogRow) -> list[LoggedChange]:
        entries = self.errors.decode_json(row.changes, list[_ChangeEntry], "changes")
        first = row.last - len(entries) + 1
        return [LoggedChange(seq, row.time, *entry) for seq, entry in enumerate(entries, first)]

    def change_bounds(self) -> tuple[int, int]:
        """Return the numbers of the last deleted change and of the newest one."""
        query = "SELECT seq - count, (SELECT max(seq) FROM change) FROM change ORDER BY seq LIMIT 1"
        return self.row(tuple[int, int], query) or (0, 0)

    def sequence_before(self, moment: int) -> int:
        """Return the number of the last change before ``moment``."""
        query = "SELECT seq - count FROM change WHERE time >= ? ORDER BY seq LIMIT 1"
        found = self.value(int, query, (moment,))
        return self.change_bounds()[1] if found is None else found

    def runs(self, since: int) -> list[RunRow]:
        """Return the runs that ended since a moment, the newest first."""
        return self.rows(RunRow, "SELECT * FROM run WHERE ended >= ? ORDER BY rowid DESC", (since,))

    def failing_since(self) -> int | None:
        """Return the end of the first of the runs that failed in a row; ``None`` if none did.

        A run that failed has no mode: it made no plan that it completed.
        """
        query = f"SELECT ended FROM run WHERE rowid = ({FIRST_FAILED})"  # noqa: S608 - a constant
        return self.value(Microseconds, query)

    def causes(self) -> list[PendingCause]:
        """Return the causes of what is pending; the most frequent come first, at most 100."""
        return self.rows(
            PendingCause,
            "SELECT task, code, count(*), min(loc), reason, min(due) FROM pending"
            " WHERE task <> ? GROUP BY task, code, iif(task = 'delete', reason, '')"
            " ORDER BY count(*) DESC, code LIMIT 100",
            (PendingTask.RETAIN,),
        )

    def oldest_proofs(self) -> Iterator[tuple[str, int]]:
        """Yield URIs and when each was proven, or else installed, longest ago first."""
        # Sorted once, in a temporary table on disk: proofs are written while it is read.
        moment = self.read_note(PROVEN_ALL, Microseconds) or 0
        with self.errors:
            db = self.connection
            db.execute("PRAGMA temp_store = FILE")
            db.execute("DELETE FROM proof WHERE uri NOT IN (SELECT uri FROM copy)")
            db.execute("DROP TABLE IF EXISTS temp.proving")
            # A parameter has no place in a CREATE TABLE; the number is our own.
            db.execute(_OLDEST.replace(":all", str(moment)))
        after = 0
        query = "SELECT rowid, uri, moment FROM temp.proving WHERE rowid > ? ORDER BY rowid LIMIT ?"
        while rows := self.rows(tuple[int, str, Microseconds], query, (after, _PROOF_PAGE)):
            yield from ((uri, moment) for _, uri, moment in rows)
            after = rows[-1][0]
        with self.errors:
            db.execute("DROP TABLE temp.proving")

    def trash_by_path(self, after: TrashRow | None = None) -> list[TrashRow]:
        """Return the next 10,000 rows of the trash by path, the newest of each path first."""
        query = (
            "SELECT * FROM trash WHERE (path, -removed, place) > (?, ?, ?)"
            " ORDER BY path, removed DESC, place LIMIT 10000"
        )
        first = ("", -(1 << 63), "")  # a path may be empty: unknown
        last = first if after is None else (after.path, -after.removed, after.place)
        return self.rows(TrashRow, query, last)

    def is_linked(self, uri: str) -> bool:
        """True if a copy exists only because entries link to it, or did."""
        return self.value(int, "SELECT 1 FROM link WHERE uri = ? LIMIT 1", (uri,)) is not None

    def referrers(self, uri: str, limit: int) -> list[str]:
        """Return the first entries that link to a URI, in order."""
        query = "SELECT via FROM link WHERE uri = ? AND via > '' ORDER BY via LIMIT ?"
        return self._uris(query, (uri, limit))

    def orphans(self) -> Iterator[str]:
        """Yield the URIs not linked to any more, in order; safe while rows are written."""
        after = ""
        while uris := self._uris(_ORPHANS, (after, _PAGE)):
            yield from uris
            after = uris[-1]

    def _uris(self, query: str, values: Sequence[object]) -> list[str]:
        return [uri for (uri,) in self.rows(tuple[str], query, values)]

    def linked_count(self) -> int:
        """Count the copies that exist only because entries link to them."""
        return self.value(int, "SELECT count(*) FROM copy WHERE uri IN (SELECT uri FROM link)") or 0

    def content_before(self, uri: str) -> Before | None:
        """Return a copy whose file is changing now as it was before."""
        return read_befores(self).get(uri)

    def has_entries(self) -> bool:
        """True if links of any entry are, or were, stored."""
        return self.value(int, "SELECT 1 FROM entry LIMIT 1") is not None

    def entry_links(self, uri: str) -> str:
        """Return the links of an entry, as JSON; empty when it has none."""
        return self.value(str, "SELECT links FROM entry WHERE uri = ?", (uri,)) or ""

    def entry_changed(self, uri: str) -> int:
        """Return the number of the logged change of an entry's links; 0 for none."""
        return self.value(int, "SELECT changed FROM entry WHERE uri = ?", (uri,)) or 0

    def entries_linking(self, targets: Sequence[str]) -> list[str]:
        """Return the entries that link to any of some URIs, in order."""
        return self._uris(_LINKING, (json.dumps(targets),))

    def closed_documents(self, limit: int) -> list[ProcessedDocument]:
        """Return the closed Change Lists that were processed, those read last first."""
        query = f"{DOCUMENTS} WHERE until IS NOT NULL AND prefix > '' ORDER BY read DESC LIMIT ?"
        return self.rows(ProcessedDocument, query, (limit,))

    def last_patch(self, uri: str) -> PatchRow | None:
        """Return the result of the last patch of a copy; ``None`` for none."""
        return self.row(PatchRow, "SELECT * FROM patched WHERE uri = ?", (uri,))
