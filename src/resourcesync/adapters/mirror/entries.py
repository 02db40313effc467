"""The entries of a mirror's memory: what they link to, for whoever publishes the copies again.

A row stays, without links, when its entry has none any more: it has the number of the change that
told so. It goes with the copy.
"""

import json
import sqlite3
from collections.abc import Sequence
from typing import Final

from resourcesync.adapters.mirror.change_log import log_touched
from resourcesync.ports.mirror import EntryRow, StateTransaction

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


def write_entries(db: sqlite3.Connection, step: StateTransaction) -> None:
    """Write the entries of a step, inside its transaction and before its copies are written."""
    if step.entries:
        _put_entries(db, step.entries, step.now)
    db.executemany("DELETE FROM entry WHERE uri = ?", [(uri,) for uri in step.removed])
    if not step.outdated:
        return
    while rows := db.execute(_OUTDATED, (step.outdated, _PAGE)).fetchall():
        _put_entries(db, [EntryRow(row[0], "", step.outdated) for row in rows], step.now)
    db.execute("DELETE FROM entry WHERE links = '' AND uri NOT IN (SELECT uri FROM copy)")


def _put_entries(db: sqlite3.Connection, entries: Sequence[EntryRow], now: int) -> None:
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


def has_entries(db: sqlite3.Connection) -> bool:
    """Whether there is a row."""
    return db.execute("SELECT 1 FROM entry LIMIT 1").fetchone() is not None


def read_entry_links(db: sqlite3.Connection, uri: str) -> str:
    """Return the links of an entry; empty for none."""
    row = db.execute("SELECT links FROM entry WHERE uri = ?", (uri,)).fetchone()
    return "" if row is None else str(row[0])


def read_entry_change(db: sqlite3.Connection, uri: str) -> int:
    """Return the number of the change that told of the links of an entry; 0 for none."""
    row = db.execute("SELECT changed FROM entry WHERE uri = ?", (uri,)).fetchone()
    return 0 if row is None else int(row[0])


def find_linking_entries(db: sqlite3.Connection, targets: Sequence[str]) -> list[str]:
    """Return the entries that link to any of some URIs, in order."""
    return [row[0] for row in db.execute(_LINKING, (json.dumps(targets),)).fetchall()]
