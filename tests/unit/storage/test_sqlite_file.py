"""One home of SQLite: the promise of each file, schemas, errors and notes."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.catalogue.reader import CatalogueReader, read_note
from resourcesync.catalogue.schema import CATALOGUE_FORMAT
from resourcesync.errors import DiskFullError, LockedError, StateError, StorageError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.push_state.stores import FileFollowers, FileHub
from resourcesync.sqlite_file import (
    NOTE_TABLE,
    TEMPORARY_ERRORS,
    Durability,
    SqliteFile,
    SqliteFormat,
    connect_temporary,
    open_snapshot,
)
from resourcesync_oai.repository_state import RepositoryState
from tests.support.in_memory import ManualClock
from tests.support.storage.sqlite_connections import prepared

ROWS = "CREATE TABLE row (name TEXT PRIMARY KEY, size INTEGER NOT NULL);"
KIND = SqliteFormat(
    noun="a test of this package",
    application_id=77,
    schema=NOTE_TABLE,
    durability=Durability.SHARED,
    retained="all",
    repair="restore {path}",
)
WITH_ROWS = replace(KIND, schema=NOTE_TABLE + ROWS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "own" / "file.db"


def pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


@pytest.mark.parametrize(
    ("open_file", "journal", "locking"),
    [
        (lambda folder: SqliteMirrorState(folder / "state.db"), "wal", "normal"),
        (lambda folder: SourceCatalogue(folder / "catalogue.db"), "wal", "normal"),
        (lambda folder: FileHub(folder / "hub.db"), "wal", "normal"),
        (lambda folder: FileFollowers(folder / "push.db"), "wal", "normal"),
        (RepositoryState, "wal", "exclusive"),
    ],
)
def test_every_commit_of_every_file_survives_a_power_cut(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    open_file: Callable[[Path], object],
    journal: str,
    locking: str,
) -> None:
    opened: list[sqlite3.Connection] = []
    prepared(monkeypatch, opened.append)
    file = open_file(tmp_path)

    (connection,) = opened
    with closing(connection):
        assert pragma(connection, "synchronous") == 2
        assert pragma(connection, "journal_mode") == journal
        assert pragma(connection, "locking_mode") == locking
        assert pragma(connection, "trusted_schema") == 0
    del file


@pytest.mark.parametrize(
    ("make", "open_file"),
    [
        (SqliteMirrorState, SqliteMirrorState),
        (SqliteMirrorState, partial(SqliteMirrorState, read_only=True)),
        (SourceCatalogue, partial(SourceCatalogue, clock=ManualClock())),
        (SourceCatalogue, partial(read_note, key="publish.run")),
        (SourceCatalogue, lambda path: CatalogueReader(path).entry("http://a.example/")),
        (FileHub, FileHub),
        (FileFollowers, FileFollowers),
    ],
)
@pytest.mark.parametrize("change", ["user_version = 0", "user_version = 99", "application_id = 7"])
def test_a_file_of_another_version_or_program_is_refused_and_untouched(
    tmp_path: Path,
    make: Callable[[Path], SqliteMirrorState | SourceCatalogue | FileHub | FileFollowers],
    open_file: Callable[[Path], object],
    change: str,
) -> None:
    path = tmp_path / "file.db"
    make(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA {change}")
    before = path.read_bytes()

    for _ in range(2):  # the first time gives back the lock
        with pytest.raises(StateError) as caught:
            open_file(path)
        assert not isinstance(caught.value, LockedError)
        assert caught.value.hint

    assert path.read_bytes() == before


def test_only_the_owner_reads_a_private_file_and_nobody_has_an_exclusive_one_besides(
    path: Path,
) -> None:
    alone = replace(KIND, durability=Durability.EXCLUSIVE)
    for kind in (KIND, alone):
        with SqliteFile(path, kind) as file:
            file.write_notes({"secret": "x"})
            assert {each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == {0o600}
            if kind is alone:
                with pytest.raises(LockedError, match="another program"):
                    SqliteFile(path, alone)
    assert path.parent.stat().st_mode & 0o777 == 0o700


OTHER_PROCESS = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as connection:
    print(sorted(key for key, _ in connection.execute("SELECT * FROM note")))
connection.close()
"""


def keys_for_another_process(path: Path) -> str:
    """Open and close the file as another program does; return the keys of its notes."""
    words = [sys.executable, "-c", OTHER_PROCESS, str(path)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize(
    "look",
    [
        lambda path: SqliteFile(path, CATALOGUE_FORMAT).close(),
        lambda path: SqliteFile(path, CATALOGUE_FORMAT, read_only=True).close(),
        lambda path: read_note(path, "first"),
    ],
)
def test_a_commit_is_not_lost_when_this_process_opens_the_file_twice(
    path: Path, look: Callable[[Path], object]
) -> None:
    with SqliteFile(path, CATALOGUE_FORMAT) as file:
        file.write_notes({"first": ""})
        look(path)
        assert keys_for_another_process(path) == "['first']"
        file.write_notes({"second": ""})
        assert keys_for_another_process(path) == "['first', 'second']"


def test_a_full_disk_or_a_row_that_is_refused_is_told_and_what_was_stored_stays(path: Path) -> None:
    with SqliteFile(path, WITH_ROWS) as file:
        with pytest.raises(StorageError, match="UNIQUE"), file.writing() as connection:
            connection.executemany("INSERT INTO row VALUES (?, 1)", [("x",), ("y",), ("x",)])
        assert file.connection.execute("SELECT count(*) FROM row").fetchone() == (0,)
        file.write_notes({"a": "1"})
        file.connection.execute("PRAGMA max_page_count = 8")
        with pytest.raises(DiskFullError, match="no space") as caught:
            file.write_notes({"b": "x" * 100_000})
        assert dict(caught.value.evidence) == {"file": str(path), "kept": "all"}
        assert (file.note("a"), file.note("b")) == ("1", None)


def test_a_damaged_file_says_what_to_do(path: Path) -> None:
    with SqliteFile(path, KIND) as file:
        file.write_notes({str(number): "x" * 100 for number in range(500)})
    content = bytearray(path.read_bytes())
    content[4096:12_288] = b"\xff" * 8_192
    path.write_bytes(content)

    with SqliteFile(path, KIND) as file, pytest.raises(StateError, match="damaged") as caught:
        file.note("7")
    assert caught.value.hint == f"restore {path}"


def test_a_row_that_is_not_text_is_damage_or_has_a_code_of_its_own(path: Path) -> None:
    with SqliteFile(path, KIND) as file:
        with file.writing() as connection:
            connection.execute("INSERT INTO note VALUES ('a', CAST(x'ff' AS TEXT))")
        with pytest.raises(StateError, match="damaged"):
            file.note("a")
    with (
        SqliteFile(path, replace(KIND, bad_row="odd")) as file,
        pytest.raises(StateError, match="decode to UTF-8") as caught,
    ):
        file.note("a")
    assert caught.value.code == "odd"


def test_a_snapshot_does_not_see_what_is_written_meanwhile(path: Path) -> None:
    with SqliteFile(path, KIND) as file, open_snapshot(path, KIND) as seen:
        file.write_notes({"a": "1"})

        assert seen.execute("SELECT count(*) FROM note").fetchone() == (0,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            seen.execute("INSERT INTO note VALUES ('b', '2')")


def test_a_temporary_file_that_cannot_grow_is_an_error_of_this_machine() -> None:
    with closing(connect_temporary(ROWS)) as connection:
        connection.execute("PRAGMA max_page_count = 3")
        with pytest.raises(DiskFullError, match="a temporary file"), TEMPORARY_ERRORS:
            connection.execute("INSERT INTO row VALUES (?, 1)", ("x" * 100_000,))
