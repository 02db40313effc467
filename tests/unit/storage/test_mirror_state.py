"""The mirror's memory."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from resourcesync.errors import StateError, StorageError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import (
    Copy,
    ProcessedDocument,
    StateTransaction,
    TrashRow,
)


def copy(uri: str) -> Copy:
    return Copy(uri, uri, 3, "sha-256:x", "", None, "", "", "sig", "weak", 5)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqliteMirrorState]:
    with SqliteMirrorState(tmp_path / "state.db") as state:
        yield state


def test_a_step_that_fails_leaves_nothing_of_itself(state: SqliteMirrorState) -> None:
    broken = copy("b")._replace(path=None)  # type: ignore[arg-type]  # that is what is wrong

    with pytest.raises(StorageError):
        state.commit(StateTransaction(installed=[copy("a"), broken], notes={"k": "v"}))

    assert state.count() == 0
    assert state.note("k") is None


def test_rows_may_be_written_behind_the_reader(state: SqliteMirrorState) -> None:
    many = [copy(f"{number:06}") for number in range(5_000)]
    state.commit(StateTransaction(installed=many))
    read = []

    for each in state.copies():
        read.append(each.uri)
        if each.uri.endswith("000"):
            state.commit(StateTransaction(installed=[each._replace(length=9)], removed=[]))

    assert read == [each.uri for each in many]


def test_all_of_a_large_trash_is_read_and_rows_may_go_meanwhile(state: SqliteMirrorState) -> None:
    rows = [TrashRow(f"{n:06}", f"u{n}", f"p{n}", n % 7, "why") for n in range(100_003)]
    state.commit(StateTransaction(trashed=rows))
    read = []

    for row in state.trash(removed_before=6):
        read.append(row)
        if len(read) % 20_000 == 0:
            state.commit(StateTransaction(purged=[trash_row.place for trash_row in read[-20_000:]]))

    assert read == [row for row in rows if row.removed < 6]
    assert state.trash_at("000000") is None
    assert state.trash_at(rows[-1].place) == rows[-1]


def test_a_list_with_another_from_is_another_list(state: SqliteMirrorState) -> None:
    old = ProcessedDocument("list", 1, 5, 3, "x", "e1", "")
    new = ProcessedDocument("list", 5, None, 0, "y", "e2", "")
    state.commit(StateTransaction(documents=[old]))
    state.commit(StateTransaction(documents=[new]))

    assert state.document("list", 1) == old
    assert state.document("list", 5) == new
    assert state.document("list") == new
    assert state.document("list", 9) is None


def test_a_reader_sees_a_mirror_that_is_being_written(
    state: SqliteMirrorState, tmp_path: Path
) -> None:
    state.commit(StateTransaction(installed=[copy("a")]))

    with SqliteMirrorState(tmp_path / "state.db", read_only=True) as reader:
        assert reader.count() == 1
        state.commit(StateTransaction(installed=[copy("b")]))
        assert reader.count() == 2


@pytest.mark.parametrize("version", [0, 2, 99])
def test_a_memory_of_another_version_is_refused_and_untouched(tmp_path: Path, version: int) -> None:
    SqliteMirrorState(tmp_path / "s").close()
    with sqlite3.connect(tmp_path / "s") as db:
        db.execute(f"PRAGMA user_version = {version}")
    db.close()
    before = (tmp_path / "s").read_bytes()

    for read_only in (False, True):
        with pytest.raises(StateError) as caught:
            SqliteMirrorState(tmp_path / "s", read_only=read_only)
        assert caught.value.hint

    assert (tmp_path / "s").read_bytes() == before


def test_another_program_s_database_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "s") as db:
        db.execute("PRAGMA user_version = 1")
    db.close()

    with pytest.raises(StateError, match="not the state"):
        SqliteMirrorState(tmp_path / "s")


def test_damage_in_the_middle_is_found_by_the_check(tmp_path: Path) -> None:
    with SqliteMirrorState(tmp_path / "s") as state:
        state.commit(StateTransaction(installed=[copy(f"{n:05}") for n in range(5_000)]))
    content = bytearray((tmp_path / "s").read_bytes())
    content[40_000:44_000] = b"\xff" * 4_000
    (tmp_path / "s").write_bytes(bytes(content))

    with pytest.raises(StateError, match="damaged"), SqliteMirrorState(tmp_path / "s") as state:
        state.check()
