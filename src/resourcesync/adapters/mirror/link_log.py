"""The links of a mirror's memory: what is here only because listed entries link to it.

A row with an empty ``via`` says that an entry linked to it once: when no other row is left, nobody
does any more.
"""

import sqlite3
from collections.abc import Iterator

from resourcesync.ports.mirror import PatchRow, StateTransaction

_PAGE = 1_000
_DROP = "INSERT OR REPLACE INTO link SELECT uri, '', generation FROM link WHERE via = ?"
_ORPHANS = """
SELECT uri FROM link AS mark WHERE via = '' AND uri > ?
AND NOT EXISTS (SELECT 1 FROM link WHERE uri = mark.uri AND via > '') ORDER BY uri LIMIT ?
"""


def write_links(db: sqlite3.Connection, step: StateTransaction) -> None:
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


def has_link(db: sqlite3.Connection, uri: str) -> bool:
    """Whether there is a row for something."""
    return db.execute("SELECT 1 FROM link WHERE uri = ? LIMIT 1", (uri,)).fetchone() is not None


def find_referrers(db: sqlite3.Connection, uri: str, limit: int) -> list[str]:
    """Return the first entries that link to something."""
    rows = db.execute(
        "SELECT via FROM link WHERE uri = ? AND via > '' ORDER BY via LIMIT ?", (uri, limit)
    )
    return [row[0] for row in rows.fetchall()]


def read_orphans(db: sqlite3.Connection) -> Iterator[str]:
    """Yield what nobody links to any more, page by page."""
    after = ""
    while rows := db.execute(_ORPHANS, (after, _PAGE)).fetchall():
        yield from (row[0] for row in rows)
        after = rows[-1][0]


def read_patch(db: sqlite3.Connection, uri: str) -> PatchRow | None:
    """Return what became of the last patch of a copy."""
    row = db.execute("SELECT * FROM patched WHERE uri = ?", (uri,)).fetchone()
    return None if row is None else PatchRow._make(row)


def count_linked(db: sqlite3.Connection) -> int:
    """Count the copies that are here by links."""
    text = "SELECT count(*) FROM copy WHERE uri IN (SELECT uri FROM link)"
    return int(db.execute(text).fetchone()[0])
