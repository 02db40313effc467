"""When each copy was last proven: by its installation, or by an audit since."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

from resourcesync.ports.changes import PROVEN_ALL

_PROOF_PAGE: Final = 2_000
_OLDEST: Final = """
CREATE TEMP TABLE proving AS
SELECT uri, max(installed, coalesce(proven, 0), :all) AS moment FROM :copy
LEFT JOIN proof USING (uri) WHERE length >= 0 ORDER BY moment, uri
"""


def read_oldest_proofs(db: sqlite3.Connection, copy: str = "copy") -> Iterator[tuple[str, int]]:
    """Yield URIs and when each was proven, longest ago first.

    Args:
        db: The mirror's memory.
        copy: The table that has a row for each copy: its ``uri``, ``length``, ``installed``.
    """
    # Sorted once, in a table of SQLite's own on disk: proofs are written while it is read.
    db.execute("PRAGMA temp_store = FILE")
    db.execute(f"DELETE FROM proof WHERE uri NOT IN (SELECT uri FROM {copy})")  # noqa: S608 - ours
    db.execute("DROP TABLE IF EXISTS temp.proving")
    found = db.execute("SELECT value FROM note WHERE key = ?", (PROVEN_ALL,)).fetchone()
    # A parameter has no place in a CREATE TABLE; the number is our own.
    moment = str(0 if found is None else int(found[0]))
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


def store_proofs(db: sqlite3.Connection, uris: Sequence[str], moment: int) -> None:
    """Remember that copies were proven."""
    db.executemany("INSERT OR REPLACE INTO proof VALUES (?, ?)", [(uri, moment) for uri in uris])
