"""A store in one file that keeps every promise of the port, and can be told to break them."""

import fcntl
import hashlib
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from resourcesync.errors import LockedError
from resourcesync.ports.stores import ObjectContent, StoredObject

_SETUP = """
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS held (key TEXT PRIMARY KEY, version TEXT NOT NULL, body BLOB NOT NULL);
"""


class ShelfStore:
    """Bytes in rows of SQLite; every method is one statement, so it is done whole or not at all."""

    max_in_flight = 1

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def _rows(self) -> Iterator[sqlite3.Connection]:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "shelf.db"
        with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
            connection.executescript(_SETUP)
            yield connection

    def put(self, key: str, content: ObjectContent, replaces: str | None) -> str | None:
        body, version = content.stream.read(), secrets.token_hex(8)
        if len(body) != content.length:
            raise ValueError(f"{len(body)} bytes came, and {content.length} were told")
        for digest in content.digests:
            if hashlib.new(digest.algorithm.replace("-", ""), body).hexdigest() != digest.value:
                raise ValueError(f"these bytes have another {digest.algorithm}")
        with self._rows() as rows:
            if replaces is None:
                new = (key, version, body)
                done = rows.execute("INSERT OR IGNORE INTO held VALUES (?, ?, ?)", new)
            else:
                update = "UPDATE held SET version = ?, body = ? WHERE key = ? AND version = ?"
                done = rows.execute(update, (version, body, key, replaces))
            return version if done.rowcount else None

    def stat(self, key: str) -> StoredObject | None:
        with self._rows() as rows:
            query = "SELECT version, length(body) FROM held WHERE key = ?"
            found = rows.execute(query, (key,)).fetchone()
        return None if found is None else StoredObject(*found)

    def open(self, key: str) -> BinaryIO | None:
        with self._rows() as rows:
            found = rows.execute("SELECT body FROM held WHERE key = ?", (key,)).fetchone()
        return None if found is None else BytesIO(found[0])

    def move(self, key: str, to: str, version: str) -> bool:
        with self._rows() as rows:
            update = "UPDATE held SET key = ? WHERE key = ? AND version = ?"
            return rows.execute(update, (to, key, version)).rowcount == 1

    def remove(self, key: str) -> None:
        with self._rows() as rows:
            rows.execute("DELETE FROM held WHERE key = ?", (key,))

    def keys(self, prefix: str) -> Iterator[str]:
        with self._rows() as rows:
            found = rows.execute("SELECT key FROM held ORDER BY key").fetchall()
        return (key for (key,) in found if key.startswith(prefix))

    @contextmanager
    def lock(self, who: str, holder: str = "") -> Iterator[None]:
        del holder  # the system ends the lock of a dead process
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lease").open("a+") as lease:
            try:
                fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lease.seek(0)
                raise LockedError(f"{lease.read()} holds the store") from None
            lease.truncate(0)
            lease.write(who)
            lease.flush()
            yield  # the system ends the lock with its process, however that ends

    def contents(self) -> dict[str, bytes]:
        found = {key: self.open(key) for key in self.keys("")}
        return {
            key: stream.read()
            for key, stream in found.items()
            if stream is not None and not key.startswith(".resourcesync/")
        }

    def spoil(self, key: str, body: bytes, *, openly: bool = True) -> None:
        there = self.stat(key)
        version = secrets.token_hex(8) if openly or there is None else there.version
        with self._rows() as rows:
            rows.execute("INSERT OR REPLACE INTO held VALUES (?, ?, ?)", (key, version, body))


def open_shelf(address: str) -> ShelfStore:
    return ShelfStore(Path(address.partition(":")[2]))
