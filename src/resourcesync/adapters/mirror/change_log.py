"""The change log of a mirror, and how far each program has read it.

The log is written in the transaction that stores the copies. One row holds the changes of one
transaction, as JSON: a row for each change made a pull of small files a tenth slower; this way
costs next to nothing.

While a file changes, the row of its copy says nothing of its content. The former content is in the
note ``in-doubt`` until the change is complete, also after a kill: only so can a true change be
distinguished from the same bytes fetched again. If a run ended in between, a program may
have read other bytes meanwhile: then the same bytes are an update, too.

The position of each program is a small file, not in the mirror's state: the state has one writer
at a time, and a program must be able to record its position while a pull goes on for hours.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from resourcesync.adapters.mirror.own_folder import mirror_error
from resourcesync.errors import ConfigurationError, Remedy, StateError
from resourcesync.model.digests import agree, parse_digests
from resourcesync.own_files import read_file, replace_file
from resourcesync.ports.changes import (
    Arrival,
    ChangeLogPosition,
    ClockMicroseconds,
    LoggedChange,
    Microseconds,
    MirrorChangeKind,
)
from resourcesync.ports.mirror import Copy, StateTransaction
from resourcesync.sqlite_file import Connection, SqliteFile, write_notes

MAX_CHANGES: Final = 1_000_000
MAX_AGE_MICROSECONDS: Final = 90 * 86_400 * 1_000_000

_SUSPECT_NOTE: Final = "in-doubt"
_Before = tuple[int, str]
"""Length and digests of a copy before its file began to change."""

_Entry = tuple[str, str, str, int, str, str]
"""Kind, URI, path, length, digests, previous digests."""


class _Row(NamedTuple):
    """A row of the log: the number of its last change, their time, and the changes as JSON."""

    last: int
    time: ClockMicroseconds
    changes: str


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
        dated = _encode([copy.lastmod for copy in step.installed]).decode()
        _append(self._db, entries, now, dated)

    def _removed(self, uri: str) -> _Entry | None:
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
    last = _append(file.connection, [(_TOUCHED, *row, row[3]) for row in rows], now, "[]")
    return {row[0]: number for number, row in enumerate(rows, last - len(rows) + 1)}


def _append(db: Connection, entries: Sequence[_Entry], now: int, dated: str) -> int:
    """Write one row; return the number of its last entry."""
    last: int = (db.execute("SELECT max(seq) FROM change").fetchone()[0] or 0) + len(entries)
    row = (last, now, len(entries), _encode(entries).decode(), dated)
    db.execute("INSERT INTO change VALUES (?,?,?,?,?)", row)
    db.execute("DELETE FROM change WHERE seq <= ?", (last - MAX_CHANGES,))
    return last


def read_befores(file: SqliteFile) -> dict[str, _Before]:
    """Return the former content of the copies whose files are changing now, by URI."""
    return file.read_note(_SUSPECT_NOTE, dict[str, _Before]) or {}


def _replaced(copy: Copy, before: _Before, *, was_exposed: bool) -> _Entry:
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


def read_changes(file: SqliteFile, after: int) -> Iterator[LoggedChange]:
    """Yield the changes after a number, in order; rows may be written meanwhile."""
    query = "SELECT seq, time, changes FROM change WHERE seq > ? ORDER BY seq LIMIT 1"
    while row := file.row(_Row, query, (after,)):
        yield from (change for change in _changes(file, row) if change.seq > after)
        after = row.last


def changes_of(file: SqliteFile, uri: str) -> Iterator[LoggedChange]:
    """Yield the changes of one resource, the newest first."""
    query = "SELECT seq, time, changes FROM change WHERE instr(changes, ?) ORDER BY seq DESC"
    with file.errors:
        for row in file.connection.execute(query, (uri,)):
            found = _changes(file, file.errors.decode(row, _Row))
            yield from (change for change in reversed(found) if change.uri == uri)


def _changes(file: SqliteFile, row: _Row) -> list[LoggedChange]:
    """Return the changes of a row, in order."""
    entries = _entries(file, row.changes)
    first = row.last - len(entries) + 1
    return [LoggedChange(number, row.time, *entry) for number, entry in enumerate(entries, first)]


def _entries(file: SqliteFile, changes: str) -> list[_Entry]:
    return file.errors.decode_json(changes, list[_Entry], "changes")


def read_arrivals(file: SqliteFile, since: int, most: int) -> Iterator[Arrival]:
    """Yield the changes since a moment, those of the newest transaction first, ``most`` or so."""
    query = "SELECT time, changes, dated FROM change WHERE time >= ? ORDER BY seq DESC"
    with file.errors:
        for row in file.connection.execute(query, (since,)):
            time, changes, dates = file.errors.decode(row, tuple[ClockMicroseconds, str, str])
            entries = _entries(file, changes)
            dated = file.errors.decode_json(dates, list[Microseconds | None], "dated")
            for entry, date in zip_longest(entries, dated[: len(entries)]):
                yield Arrival(time, entry[0], entry[1], entry[3], date)
            most -= len(entries)
            if most <= 0:
                return


def change_bounds(file: SqliteFile) -> tuple[int, int]:
    """Return the numbers of the last deleted change and of the newest one."""
    query = "SELECT seq - count, (SELECT max(seq) FROM change) FROM change ORDER BY seq LIMIT 1"
    return file.row(tuple[int, int], query) or (0, 0)


def last_change_before(file: SqliteFile, moment: int) -> int:
    """Return the number of the last change before a moment."""
    query = "SELECT seq - count FROM change WHERE time >= ? ORDER BY seq LIMIT 1"
    found = file.row(tuple[int], query, (moment,))
    return change_bounds(file)[1] if found is None else found[0]


_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MOST: Final = 4096


class ConsumerFiles:
    """The files of ``.resourcesync/consumers``."""

    def __init__(self, own: Path) -> None:
        self._folder = own / "consumers"

    def position(self, name: str) -> ChangeLogPosition | None:
        """Return the position that ``name`` acknowledged, or ``None``."""
        path = self._folder / f"{_checked_name(name)}.json"
        try:
            text = read_file(path, _MOST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise mirror_error(error, f"reading {path}") from error
        try:
            stored = json.loads(text)
            return ChangeLogPosition(int(stored["acknowledged"]), int(stored["time"]))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise StateError(
                f"{path} is damaged: the position of {name} is unknown",
                hint="start over",
                remedy=Remedy("restart-consumer", value=name),
            ) from error

    def acknowledge(self, name: str, position: ChangeLogPosition) -> None:
        """Store durably that ``name`` has processed all changes up to ``position``."""
        stored = {"acknowledged": position.number, "time": position.time}
        path = self._folder / f"{_checked_name(name)}.json"
        try:
            replace_file(path, json.dumps(stored).encode(), folder_mode=0o700)
        except OSError as error:
            raise mirror_error(error, f"storing the position of {name}") from error


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name[:100]!r} cannot be the name of a consumer",
            hint="use up to 64 letters, digits, - and _",
        )
    return name
