"""SQLite files: the promise of a commit, schemas, errors, transactions and notes.

No other module imports ``sqlite3``. A statement commits by itself, except in ``transaction``.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Final, Self, TypeVar
from urllib.parse import quote

import msgspec

from resourcesync import errors
from resourcesync.own_files import check_database, is_present, is_read_only, make_folder, sync_name

Connection = sqlite3.Connection
"""A connection to a SQLite file."""
Parameters = Sequence[object] | Mapping[str, object]
"""The values of the parameters of a query."""
BUSY_MILLISECONDS: Final = 5_000
"""Milliseconds to wait for another program that writes."""
NOTE_TABLE: Final = "CREATE TABLE note (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
"""The table of notes, in each file that has some."""
T = TypeVar("T")
_INDEX_BYTES: Final = 65_536
"""Bytes that SQLite needs on the disk for the index of a log, twice over."""
_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_IN_USE: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class Durability(Enum):
    """The promise of a file. The values are the pragmas that keep it, that of the journal last."""

    SHARED = ("synchronous = FULL", "journal_mode = WAL")
    """A commit survives a power cut; other processes read meanwhile."""
    EXCLUSIVE = ("locking_mode = EXCLUSIVE", "synchronous = FULL", "journal_mode = WAL")
    """A commit survives a power cut; one process has the file, and others are refused at once."""
    SIMPLE = ("synchronous = FULL", "journal_mode = DELETE")
    """A commit survives a power cut; other processes wait for it."""


class SqliteFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The format of a file, and the words for its errors."""

    noun: str  # the file in words
    application_id: int  # its ``application_id``; 0 for none
    schema: str  # the statements that make its tables
    number: int = 1  # the number of the schema; a file with another one is refused
    durability: Durability  # the promise of a commit
    is_private: bool = True  # only the owner may read the file; its folder is created if missing
    folder_mode: int = 0o700  # the mode of that folder
    opens_when_full: bool = False  # without room on the disk, for this process alone
    any_thread: bool = False  # several threads use the connection; they take turns
    retained: str  # what an error leaves as it was
    repair: str  # the hint for a damaged file; ``{path}`` is its path
    full: type[errors.DiskFullError] = errors.DiskFullError  # the error of a full disk
    bad_row: str = ""
    """The code of an error if a row has wrong types; empty: the file is damaged."""


def read_schema(module: str, name: str, **parts: str) -> str:
    """Return the statements of a file beside a module, with the parts that code has, too."""
    return Path(module).with_name(name).read_text("ascii").format(note_table=NOTE_TABLE, **parts)


class SqliteErrors:
    """A context that raises errors of this package in place of those of SQLite."""

    def __init__(self, path: Path | str, kind: SqliteFormat) -> None:
        self._path = path
        self._kind = kind

    def __enter__(self) -> None:
        """Enter; one object may be entered again inside its own block."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, sqlite3.Error):
            raise self._translate(error) from error

    def decode(self, value: object, kind: type[T]) -> T:
        """Return what was read from the file, such as rows, as values of a type."""
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise self.damage(error, self._kind.bad_row) from error

    def decode_json(self, text: str, kind: type[T], what: str) -> T:
        """Return the value that is stored as JSON in a field."""
        try:
            return msgspec.json.decode(text, type=kind)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise self.damage(f"cannot read {what}: {error}") from error

    def damage(self, detail: object, code: str = "") -> errors.StateError:
        """Return the error of a damaged file; with a code, that of a row which cannot be used."""
        hint = "" if code else self._kind.repair.format(path=self._path)
        message = f"{self._path} is damaged: {detail!s:.300}"
        return errors.StateError(message, evidence=self._evidence, hint=hint, code=code)

    def foreign(self) -> errors.StateError:
        """Return the error of a file with another format."""
        return errors.StateError(
            f"{self._path} is not {self._kind.noun}",
            evidence=(("file", str(self._path)), ("kept", "nothing was changed")),
            hint="move it away, or choose another path",
        )

    def schema_error(self, number: int) -> errors.StateError:
        """Return the error of a file with the schema of another version."""
        return errors.StateError(
            f"{self._path} was written by another version of this package",
            evidence=(
                ("file", str(self._path)),
                ("schema", str(number)),
                ("known", str(self._kind.number)),
                ("kept", "nothing was changed"),
            ),
            hint=f"use that version, or {self._kind.repair.format(path=self._path)}",
        )

    def check_format(self, connection: Connection, *, accepts_empty: bool = False) -> bool:
        """Return whether the file is empty; one that is not ours is refused."""
        number, application, tables = (
            int(connection.execute(query).fetchone()[0])
            for query in (
                "PRAGMA user_version",
                "PRAGMA application_id",
                "SELECT count(*) FROM sqlite_schema",
            )
        )
        is_empty = not (number or application or tables)
        is_ours = number > 0 and application == self._kind.application_id
        if not (is_ours or (is_empty and accepts_empty)):
            raise self.foreign()
        if is_ours and number != self._kind.number:
            raise self.schema_error(number)
        return is_empty

    @property
    def _evidence(self) -> tuple[tuple[str, str], ...]:
        return ("file", str(self._path)), ("kept", self._kind.retained)

    def has_no_room(self) -> bool:
        """True if the disk has no room for the index of a log, without which nothing is read."""
        try:
            disk = os.statvfs(Path(self._path).parent)
        except OSError:
            return False
        return disk.f_bavail * disk.f_frsize < _INDEX_BYTES

    def _translate(self, error: sqlite3.Error) -> errors.ResourceSyncError:
        if isinstance(error, sqlite3.ProgrammingError) and "thread" in str(error):
            return errors.ConfigurationError(
                f"{self._path} was opened by another thread",
                hint="read in the thread that began to read",
            )
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # errors of Python itself have none
        in_need = code in {sqlite3.SQLITE_IOERR, *_IN_USE}  # one process alone has it then
        if code == sqlite3.SQLITE_FULL or (in_need and self.has_no_room()):
            return self._kind.full(f"no space is left for {self._path}", evidence=self._evidence)
        if code in _IN_USE:
            return errors.LockedError(
                f"another program is writing {self._path}",
                evidence=self._evidence,
                hint="wait for its end, then try again",
            )
        if not code and "decode to UTF-8" in str(error):
            return self.damage(error, self._kind.bad_row)
        if code in _DAMAGE:
            return self.damage(error)
        return errors.StorageError(
            f"{self._path} cannot be used: {error}",
            evidence=self._evidence,
            hint="free disk space or fix permissions, then try again",
        )


class SqliteFile:
    """An open SQLite file of this package, with its one connection.

    The path ``""`` is a temporary file, which is in memory while it is small.
    """

    def __init__(
        self,
        path: Path | str,
        kind: SqliteFormat,
        *,
        read_only: bool = False,
        immutable: bool = False,
    ) -> None:
        self._path, self._kind = path, kind
        self.errors = SqliteErrors(path or "a temporary file", kind)
        """The context for reading; ``writing`` has it already."""
        if path and not read_only and kind.is_private:
            _create_private(Path(path), kind.folder_mode)
        with self.errors:
            self.connection = _connect(path, kind, read_only=read_only, immutable=immutable)
            try:
                self._prepare(kind, read_only=read_only)
            except BaseException as error:
                self.connection.close()
                if isinstance(error, UnicodeDecodeError):  # SQLite quotes a damaged schema
                    raise self.errors.damage(error) from error
                raise

    def _prepare(self, kind: SqliteFormat, *, read_only: bool) -> None:
        *before, journal = kind.durability.value
        connection = self.connection
        if kind.opens_when_full and not (read_only or self._has_room_for_index()):
            before.insert(0, "locking_mode = EXCLUSIVE")  # the index of the log is in memory
        for pragma in ("trusted_schema = OFF", *before):
            connection.execute(f"PRAGMA {pragma}")
        is_new = self.errors.check_format(connection, accepts_empty=not read_only)
        if read_only:
            return
        connection.execute(f"PRAGMA {journal}")
        if kind.durability is Durability.EXCLUSIVE:
            connection.execute("BEGIN EXCLUSIVE")  # the lock stays
            connection.execute("COMMIT")
        if is_new:
            connection.executescript(
                f"BEGIN IMMEDIATE; {kind.schema}"
                f"PRAGMA application_id = {kind.application_id};"
                f"PRAGMA user_version = {kind.number}; COMMIT"
            )

    def _has_room_for_index(self) -> bool:
        index = Path(f"{self._path}-shm")
        has_index = index.exists() and index.stat().st_size * 2 >= _INDEX_BYTES
        return has_index or not self.errors.has_no_room()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, with its lock; for another thread, as soon as nothing refers to it."""
        with suppress(sqlite3.ProgrammingError):
            self.connection.close()

    @contextmanager
    def writing(self, *, commits: bool = True) -> Iterator[Connection]:
        """Run the block in a transaction: all that it writes is durable after it, or nothing."""
        connection = self.connection
        is_inner = connection.in_transaction
        if is_inner:
            yield connection
            return
        with self.errors:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                if commits:
                    connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Open the file as it is at this moment, by a connection that cannot change it.

        That of a temporary file has what an open transaction wrote, too.
        """
        if self._path:
            with open_snapshot(Path(self._path), self._kind) as connection:
                yield connection
            return
        with closing(self.clone()) as copied, copied.errors:
            yield copied.connection

    def clone(self) -> "SqliteFile":
        """Return a copy in memory."""
        copied = SqliteFile("", self._kind)
        with self.errors:
            copied.connection.deserialize(self.connection.serialize())
        return copied

    def note(self, key: str) -> str | None:
        """Return a note; ``None`` for none."""
        with self.errors:
            return note_of(self.connection, key)

    def rows(self, kind: type[T], query: str, values: Parameters = ()) -> list[T]:
        """Return the rows of a query as values of a type."""
        with self.errors:
            return self.errors.decode(self.connection.execute(query, values).fetchall(), list[kind])  # type: ignore[valid-type]

    def row(self, kind: type[T], query: str, values: Parameters = ()) -> T | None:
        """Return the first row of a query as a value of a type; ``None`` without one."""
        with self.errors:
            found = self.connection.execute(query, values).fetchone()
        return None if found is None else self.errors.decode(found, kind)

    def value(self, kind: type[T], query: str, values: Parameters = ()) -> T | None:
        """Return the first field of the first row of a query; ``None`` without one."""
        found = self.row(tuple[kind], query, values)  # type: ignore[valid-type]
        return None if found is None else found[0]

    def read_note(self, key: str, kind: type[T]) -> T | None:
        """Return a note as a value of a type; ``None`` for none. All but words are JSON."""
        text = self.note(key)
        if text is None:
            return None
        is_word = str in getattr(kind, "__mro__", ())  # a type may be an alias
        return (
            self.errors.decode(text, kind) if is_word else self.errors.decode_json(text, kind, key)
        )

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Store notes, all or none, durably."""
        with self.writing() as connection:
            write_notes(connection, notes)


def make_private_folder(path: Path, mode: int = 0o700) -> None:
    """Make a folder durably, with those above it; an existing one is no error."""
    try:
        make_folder(path, mode)
    except OSError as error:
        raise errors.StorageError(f"cannot make the folder {path}: {error.strerror}") from error


def _create_private(path: Path, folder_mode: int) -> None:
    _check_place(path)
    make_private_folder(path.parent, folder_mode)
    try:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        sync_name(path)
    except OSError as error:
        raise errors.StorageError(f"cannot open {path}: {error.strerror}") from error


def _check_place(path: Path | str) -> None:
    try:
        check_database(Path(path))
    except OSError as error:
        raise errors.StorageError(f"cannot open {path}: {error.strerror}") from error


def _connect(
    path: Path | str, kind: SqliteFormat, *, read_only: bool, immutable: bool = False
) -> Connection:
    waits = kind.durability is not Durability.EXCLUSIVE
    if path:
        _check_place(path)
    if read_only and not immutable:  # can nobody write it, or make a file beside it?
        immutable = is_read_only(Path(path)) and not is_present(f"{path}-wal")
    more = "&immutable=1" if immutable else ""
    return sqlite3.connect(
        f"file://{quote(os.fsencode(Path(path).absolute()))}?mode=ro{more}" if read_only else path,
        uri=read_only,
        timeout=BUSY_MILLISECONDS / 1_000 if waits else 0,
        isolation_level=None,
        check_same_thread=not kind.any_thread,
    )


@contextmanager
def open_snapshot(
    path: Path, kind: SqliteFormat, *, immutable: bool = False
) -> Iterator[Connection]:
    """Open a file with notes as it is at this moment, by a connection that cannot write."""
    errors_here = SqliteErrors(path, kind)
    with errors_here:
        opened = _connect(path, kind, read_only=True, immutable=immutable)
        with closing(opened) as connection:
            begin_snapshot(connection)
            errors_here.check_format(connection)
            yield connection


def open_reader(path: Path, kind: SqliteFormat) -> Connection:
    """Open a file for single queries that wait for nobody; the caller closes the connection.

    In a place that is not writable, where no process changes the file either, it is read as it is.
    """
    try:
        return _open_query_connection(path, kind, immutable=False)
    except sqlite3.OperationalError:
        if is_present(f"{path}-wal"):
            raise
    return _open_query_connection(path, kind, immutable=True)


def _open_query_connection(path: Path, kind: SqliteFormat, *, immutable: bool) -> Connection:
    connection = _connect(path, kind, read_only=True, immutable=immutable)
    try:
        connection.execute("PRAGMA busy_timeout = 0")
        SqliteErrors(path, kind).check_format(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def begin_snapshot(connection: Connection) -> None:
    """Read the file as it is now until the connection is closed."""
    connection.execute("BEGIN")
    connection.execute("SELECT 1 FROM note").fetchone()  # the snapshot begins here


def note_of(connection: Connection, key: str) -> str | None:
    """Return a note; ``None`` for none."""
    row = connection.execute("SELECT value FROM note WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def write_notes(connection: Connection, notes: Mapping[str, str]) -> None:
    """Store notes, in the transaction that is open."""
    connection.executemany("INSERT OR REPLACE INTO note VALUES (?,?)", notes.items())


_TEMPORARY: Final = SqliteFormat(
    noun="a temporary file",
    application_id=0,
    schema="",
    durability=Durability.SIMPLE,
    retained="nothing was changed",
    repair="try again",
    full=errors.TemporaryDiskFullError,
)
TEMPORARY_ERRORS: Final = SqliteErrors("a temporary file", _TEMPORARY)
"""The context for connections by ``connect_temporary``."""


def connect_temporary(schema: str) -> Connection:
    """Connect to a new unlinked file with some tables, in the space for temporary files."""
    with TEMPORARY_ERRORS:
        connection = sqlite3.connect("", isolation_level=None)
        connection.executescript(schema)
        return connection
