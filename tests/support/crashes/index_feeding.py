"""Fills an index from a mirror: ``index_feeding.py search|vectors|loop MIRROR HOME STATEMENTS``.

It kills itself (SIGKILL) instead of executing that statement; with 0 it comes to its end. So it
also ends in the middle of its work, of which most of its time is not part.
"""

import os
import signal
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from examples import search_index, vector_store
from resourcesync import Mirror


class DyingConnection(sqlite3.Connection):
    left = 0

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self._count()
        return super().execute(*arguments)

    def commit(self) -> None:
        self._count()
        super().commit()

    def _count(self) -> None:
        DyingConnection.left -= 1
        if DyingConnection.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, factory=DyingConnection)


class SqliteVectors:
    """A vector store without vectors and without transactions: each call is durable for itself."""

    def __init__(self, path: Path) -> None:
        self._db = connect(path)
        self._db.execute("CREATE TABLE IF NOT EXISTS chunk (id TEXT PRIMARY KEY, uri, text)")

    def uris(self) -> set[str]:
        return {row[0] for row in self._db.execute("SELECT DISTINCT uri FROM chunk")}

    def ids(self, uri: str) -> set[str]:
        return {row[0] for row in self._db.execute("SELECT id FROM chunk WHERE uri = ?", (uri,))}

    def upsert(self, uri: str, chunks: Mapping[str, str]) -> None:
        rows = [(key, uri, text) for key, text in chunks.items()]
        for row in rows:
            self._db.execute("REPLACE INTO chunk VALUES (?, ?, ?)", row)

    def delete(self, ids: set[str]) -> None:
        for key in ids:
            self._db.execute("DELETE FROM chunk WHERE id = ?", (key,))


def loop(mirror: Mirror, path: Path) -> None:
    db = connect(path)
    db.execute("CREATE TABLE IF NOT EXISTS stored (uri TEXT PRIMARY KEY, content BLOB)")
    for change in mirror.changes("loop"):
        content = change.read()
        if change.kind == "deleted":
            db.execute("DELETE FROM stored WHERE uri = ?", (change.uri,))
        elif content is not None:
            db.execute("REPLACE INTO stored VALUES (?, ?)", (change.uri, content))


def main() -> None:
    name, mirror, home = sys.argv[1], Mirror(None, sys.argv[2]), Path(sys.argv[3])
    DyingConnection.left = int(sys.argv[4])
    if name == "search":
        with closing(sqlite3.connect(home / "search.db", factory=DyingConnection)) as db, db:
            sys.exit(search_index.update(sys.argv[2], db))
    elif name == "loop":
        loop(mirror, home / "loop.db")
    else:
        vector_store.update(mirror, SqliteVectors(home / "vectors.db"), home / "position")


if __name__ == "__main__":
    main()
