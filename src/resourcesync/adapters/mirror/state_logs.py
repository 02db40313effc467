"""Entries, links, proofs and changes in a mirror's state, for reading.

The links of an entry are stored for programs that republish the copies. Its row stays, without
links, when its entry has none any more: the row has the number of the change that removed them. It
is deleted with the copy.

A URI that is in the mirror only because listed entries link to it has one row for each of them. A
row with an empty ``via`` says that an entry linked to it once; when no other row is left, no entry
does any more.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import Any, Final

from resourcesync.adapters.mirror import change_log
from resourcesync.adapters.mirror.change_log import log_touched
from resourcesync.ports.changes import PROVEN_ALL, Arrival, LoggedChange
from resourcesync.ports.mirror import (
    EntryRow,
    PatchRow,
    ProcessedDocument,
    RunRow,
    StateTransaction,
    TrashRow,
)
from resourcesync.sqlite_file import Connection, SqliteErrors, note_of

_PAGE: Final = 1_000
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


def write_entries(db: Connection, step: StateTransaction) -> None:
    """Write the entries of a step, inside its transaction and before its copies are written."""
    if step.entries:
        _put_entries(db, step.entries, step.now)
    db.executemany("DELETE FROM entry WHERE uri = ?", [(uri,) for uri in step.removed])
    if not step.outdated:
        return
    while rows := db.execute(_OUTDATED, (step.outdated, _PAGE)).fetchall():
        _put_entries(db, [EntryRow(row[0], "", step.outdated) for row in rows], step.now)
    db.execute("DELETE FROM entry WHERE links = '' AND uri NOT IN (SELECT uri FROM copy)")


def _put_entries(db: Connection, entries: Sequence[EntryRow], now: int) -> None:
    known = dict(
        db.execute(
            "SELECT uri, links FROM entry WHERE uri IN (SELECT value FROM json_each(?))",
            (json.dumps([row.uri for row in entries]),),
        ).fetchall()
    )
    news = [row.uri for row in entries if known.get(row.uri, "") != row.links]
    numbers = log_touched(db, news, now) if news else {}
    rows = [(row.uri, row.links, numbers.get(row.uri, 0), row.generation) for row in entries]
    db.executemany(_PUT_ENTRY, rows)


def has_entries(db: Connection) -> bool:
    """True if there is a row."""
    return db.execute("SELECT 1 FROM entry LIMIT 1").fetchone() is not None


def read_entry_links(db: Connection, uri: str) -> str:
    """Return the links of an entry; empty for none."""
    row = db.execute("SELECT links FROM entry WHERE uri = ?", (uri,)).fetchone()
    return "" if row is None else str(row[0])


def read_entry_change(db: Connection, uri: str) -> int:
    """Return the number of the last change of an entry's links; 0 for none."""
    row = db.execute("SELECT changed FROM entry WHERE uri = ?", (uri,)).fetchone()
    return 0 if row is None else int(row[0])


def find_linking_entries(db: Connection, targets: Sequence[str]) -> list[str]:
    """Return the entries that link to any of some URIs, in order."""
    return [row[0] for row in db.execute(_LINKING, (json.dumps(targets),)).fetchall()]


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


def has_link(db: Connection, uri: str) -> bool:
    """True if there is a row for a URI."""
    return db.execute("SELECT 1 FROM link WHERE uri = ? LIMIT 1", (uri,)).fetchone() is not None


def find_referrers(db: Connection, uri: str, limit: int) -> list[str]:
    """Return the first entries that link to a URI."""
    rows = db.execute(
        "SELECT via FROM link WHERE uri = ? AND via > '' ORDER BY via LIMIT ?", (uri, limit)
    )
    return [row[0] for row in rows.fetchall()]


def read_orphans(db: Connection) -> Iterator[str]:
    """Yield the URIs without links to them, page by page."""
    after = ""
    while rows := db.execute(_ORPHANS, (after, _PAGE)).fetchall():
        yield from (row[0] for row in rows)
        after = rows[-1][0]


def read_patch(db: Connection, uri: str) -> PatchRow | None:
    """Return the result of the last patch of a copy."""
    row = db.execute("SELECT * FROM patched WHERE uri = ?", (uri,)).fetchone()
    return None if row is None else PatchRow._make(row)


def count_linked(db: Connection) -> int:
    """Count the copies that exist by links."""
    text = "SELECT count(*) FROM copy WHERE uri IN (SELECT uri FROM link)"
    return int(db.execute(text).fetchone()[0])


_PROOF_PAGE: Final = 2_000
_OLDEST: Final = """
CREATE TEMP TABLE proving AS
SELECT uri, max(installed, coalesce(proven, 0), :all) AS moment FROM :copy
LEFT JOIN proof USING (uri) WHERE length >= 0 ORDER BY moment, uri
"""


def read_oldest_proofs(db: Connection, copy: str = "copy") -> Iterator[tuple[str, int]]:
    """Yield URIs and the time of the last proof of each, longest ago first.

    Args:
        db: The mirror's state.
        copy: The table with a row for each copy: ``uri``, ``length``, ``installed``.
    """
    # Sorted once, in a temporary table on disk: proofs are written while it is read.
    db.execute("PRAGMA temp_store = FILE")
    db.execute(f"DELETE FROM proof WHERE uri NOT IN (SELECT uri FROM {copy})")  # noqa: S608 - ours
    db.execute("DROP TABLE IF EXISTS temp.proving")
    # A parameter has no place in a CREATE TABLE; the number is our own.
    moment = str(int(note_of(db, PROVEN_ALL) or 0))
    db.execute(_OLDEST.replace(":all", moment).replace(":copy", copy))
    after = 0
    while True:
        rows = db.execute(
            "SELECT rowid, uri, moment FROM temp.proving WHERE rowid > ? ORDER BY rowid LIMIT ?",
            (after, _PROOF_PAGE),
        ).fetchall()
        yield from ((uri, moment) for _, uri, moment in rows)
        if len(rows) < _PROOF_PAGE:
            db.execute("DROP TABLE temp.proving")
            return
        after = rows[-1][0]


def store_proofs(db: Connection, uris: Sequence[str], moment: int) -> None:
    """Store that copies were proven."""
    db.executemany("INSERT OR REPLACE INTO proof VALUES (?, ?)", [(uri, moment) for uri in uris])


class MirrorLogs:
    """Methods that read the logs of a file; a subclass opens it."""

    _db: Connection
    _errors: SqliteErrors

    def changes(self, after: int) -> Iterator[LoggedChange]:
        """Yield the changes with a number greater than ``after``, in order."""
        with self._errors:
            yield from change_log.read_changes(self._db, after)

    def changes_of(self, uri: str) -> Iterator[LoggedChange]:
        """Yield the changes of one resource, the newest first."""
        with self._errors:
            yield from change_log.changes_of(self._db, uri)

    def change_bounds(self) -> tuple[int, int]:
        """Return the numbers of the last deleted change and of the newest one."""
        with self._errors:
            return change_log.change_bounds(self._db)

    def sequence_before(self, moment: int) -> int:
        """Return the number of the last change before ``moment``."""
        with self._errors:
            return change_log.last_change_before(self._db, moment)

    def arrivals(self, since: int, most: int) -> list[Arrival]:
        """Return about the ``most`` newest changes since a moment, newest transaction first."""
        with self._errors:
            return list(change_log.read_arrivals(self._db, since, most))

    def changes_by(self, since: int, width: int) -> dict[int, int]:
        """Return the number of changes in each interval since a moment, by its index from 0.

        Changes before the end of the first run, if that is stored, do not count.
        """
        with self._errors:
            rows = self._db.execute(
                "SELECT (time - :since) / :width, sum(count) FROM change WHERE time >= :since"
                " AND time > coalesce((SELECT ended FROM run WHERE rowid = 1), 0) GROUP BY 1",
                {"since": since, "width": width},
            )
            return dict(rows.fetchall())

    def runs(self, since: int, most: int) -> list[RunRow]:
        """Return the newest runs that ended since a moment, the newest first."""
        with self._errors:
            rows = self._db.execute(
                "SELECT run, started, ended, mode, outcome, counts FROM run WHERE ended >= ?"
                " ORDER BY ended DESC, rowid DESC LIMIT ?",
                (since, most),
            ).fetchall()
        return [_run(*row) for row in rows]

    def first_run(self) -> int | None:
        """Return the start of the oldest stored run; ``None`` without one."""
        with self._errors:
            row = self._db.execute("SELECT min(started) FROM run").fetchone()
        return None if row is None else row[0]

    def failing_since(self) -> int | None:
        """Return the end of the first of the runs that failed in a row; ``None`` if none did.

        A run that failed has no mode: it made no plan that it completed.
        """
        with self._errors:
            row = self._db.execute(
                "SELECT min(ended) FROM run WHERE mode = '' AND ended >"
                " coalesce((SELECT max(ended) FROM run WHERE mode <> ''), 0)"
            ).fetchone()
        return None if row is None else row[0]

    def find_run(self, run: str) -> RunRow | None:
        """Return a run by its id; ``None`` if it is not stored."""
        with self._errors:
            row = self._db.execute(
                "SELECT run, started, ended, mode, outcome, counts FROM run WHERE run = ?", (run,)
            ).fetchone()
        return None if row is None else _run(*row)

    def causes(self) -> list[tuple[str, int, str, str, int]]:
        """Return the causes of missing copies: code, number, and a URI and a reason of them.

        The last field is the time when the first is due. The code is empty if they were not tried
        yet. The most frequent come first, at most 100.
        """
        with self._errors:
            return self._db.execute(
                "SELECT code, count(*), min(loc), reason, min(due) FROM pending"
                " WHERE task = 'fetch' GROUP BY code ORDER BY count(*) DESC, code LIMIT 100"
            ).fetchall()

    def documents(self, limit: int) -> list[ProcessedDocument]:
        """Return the Change Lists that were read, those read last first; also open ones."""
        with self._errors:
            rows = self._db.execute(
                "SELECT uri, from_, until, entries, prefix, etag, last_modified FROM document"
                " ORDER BY read DESC LIMIT ?",
                (limit,),
            ).fetchall()
        return [ProcessedDocument._make(row) for row in rows]

    def oldest_proofs(self) -> Iterator[tuple[str, int]]:
        """Yield URIs and when each was proven, or else installed, longest ago first."""
        with self._errors:
            yield from read_oldest_proofs(self._db)

    def trash_by_path(self) -> Iterator[TrashRow]:
        """Yield all rows of the trash by path, the newest of each path first.

        Use it on a snapshot: nothing may be written by this connection meanwhile.
        """
        with self._errors:
            yield from starmap(
                TrashRow, self._db.execute("SELECT * FROM trash ORDER BY path, removed DESC, place")
            )

    def is_linked(self, uri: str) -> bool:
        """True if a copy exists only because entries link to it, or did."""
        with self._errors:
            return has_link(self._db, uri)

    def referrers(self, uri: str, limit: int) -> list[str]:
        """Return the first entries that link to a URI, in order."""
        with self._errors:
            return find_referrers(self._db, uri, limit)

    def orphans(self) -> Iterator[str]:
        """Yield the URIs not linked to any more, in order; safe while rows are written."""
        with self._errors:
            yield from read_orphans(self._db)

    def linked_count(self) -> int:
        """Count the copies that exist only because entries link to them."""
        with self._errors:
            return count_linked(self._db)

    def content_before(self, uri: str) -> tuple[int, str] | None:
        """Return the former length and digests of a copy whose file is changing now."""
        with self._errors:
            return change_log.content_before(self._db, uri)

    def has_entries(self) -> bool:
        """True if links of any entry are, or were, stored."""
        with self._errors:
            return has_entries(self._db)

    def entry_links(self, uri: str) -> str:
        """Return the links of an entry, as JSON; empty when it has none."""
        with self._errors:
            return read_entry_links(self._db, uri)

    def entry_changed(self, uri: str) -> int:
        """Return the number of the logged change of an entry's links; 0 for none."""
        with self._errors:
            return read_entry_change(self._db, uri)

    def entries_linking(self, targets: Sequence[str]) -> list[str]:
        """Return the entries that link to any of some URIs, in order."""
        with self._errors:
            return find_linking_entries(self._db, targets)

    def closed_documents(self, limit: int) -> list[ProcessedDocument]:
        """Return the closed Change Lists that were processed, those read last first."""
        with self._errors:
            rows = self._db.execute(
                "SELECT uri, from_, until, entries, prefix, etag, last_modified FROM document"
                " WHERE until IS NOT NULL AND prefix > '' ORDER BY read DESC LIMIT ?",
                (limit,),
            ).fetchall()
        return [ProcessedDocument._make(row) for row in rows]

    def last_patch(self, uri: str) -> PatchRow | None:
        """Return the result of the last patch of a copy; ``None`` for none."""
        with self._errors:
            return read_patch(self._db, uri)


def _run(*row: Any) -> RunRow:
    names = ("run", "started", "ended", "mode", "outcome", "counts")
    return RunRow(**dict(zip(names, row, strict=True)))
