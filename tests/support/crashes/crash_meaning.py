"""What a disk after a power cut says to who reads it: many states of a disk say the same.

A file says its name, its bytes, the moment of their change and which file it is. A database of
SQLite says its rows: they are read, by SQLite itself, from the very bytes that the cut has left.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.support.crashes.crash_states import State

_DATABASE: Final = ".db"
_LOG: Final = "-wal"
_PRAGMAS: Final = ("quick_check", "user_version", "application_id", "journal_mode", "page_size")


class Meanings:
    """Tells what states mean; each two files of a database are opened once."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._file = str(folder / f"read{_DATABASE}")
        self._known: dict[tuple[bytes, bytes | None], object] = {}

    def forget(self) -> None:
        self._known.clear()

    def of(self, state: State) -> int:
        return hash(tuple(self._parts(state)))

    def _parts(self, state: State) -> Iterator[object]:
        for path, found in state.items():
            if found is None:
                yield path
                continue
            file, data, moment = found
            if path.endswith(_DATABASE):
                log = state.get(path + _LOG)
                yield path, self._rows(data, None if log is None else log[1])
            elif not (path.endswith(_DATABASE + _LOG) and path.removesuffix(_LOG) in state):
                yield path, file.number, data, moment

    def _rows(self, data: bytes, log: bytes | None) -> object:
        key = data, log
        if key not in self._known:
            self._known[key] = self._read(data, log)
        return self._known[key]

    def _read(self, data: bytes, log: bytes | None) -> object:
        for end, body in (("", data), (_LOG, log), ("-shm", None)):
            with suppress(FileNotFoundError):
                os.unlink(self._file + end)
            if body is not None:
                with open(self._file + end, "wb", buffering=0) as file:
                    file.write(body)
        database = sqlite3.connect(self._file, isolation_level=None)
        try:
            return hash(tuple(_said(database)))
        except sqlite3.DatabaseError:
            return data, log
        finally:
            database.close()


def _said(database: sqlite3.Connection) -> Iterator[object]:
    for pragma in _PRAGMAS:
        yield tuple(database.execute(f"PRAGMA {pragma}"))
    schema = tuple(database.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name"))
    yield schema
    for kind, name, sql in schema:
        if kind == "table":
            row = "*" if "WITHOUT ROWID" in sql.upper() else "rowid, *"
            yield tuple(database.execute(f'SELECT {row} FROM "{name}"'))
