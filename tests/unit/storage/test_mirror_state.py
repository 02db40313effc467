"""The mirror's memory."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resourcesync.errors import StateError, StorageError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import (
    LARGE,
    Copy,
    Pending,
    PendingTask,
    ProcessedDocument,
    RefusedRow,
    RunRow,
    StateTransaction,
    TrashRow,
)
from resourcesync.mirror_state.schema import SCHEMA
from tests.support.storage.sqlite_connections import plan_of, statements


def copy(uri: str) -> Copy:
    return Copy(uri, uri, 3, "sha-256:x", "", None, "", "", "sig", "weak", 5)


def pending(uri: str, task: PendingTask = PendingTask.FETCH, **more: Any) -> Pending:
    row = Pending(uri, uri, uri, task, "", None, None, "404", "gone", 1, 0, 100, 200, 1)
    return row._replace(**more)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqliteMirrorState]:
    with SqliteMirrorState(tmp_path / "state.db") as state:
        yield state


def test_a_step_is_remembered_when_the_file_is_opened_again(tmp_path: Path) -> None:
    task = pending("p", elsewhere="\nhttp://m/")
    removed = TrashRow("t", "u", "p", 9, "why", "sha-256:aa")
    seen = ProcessedDocument("list", 7, None, 3, "digest", '"e"', "then")
    with SqliteMirrorState(tmp_path / "s") as state:
        state.commit(
            StateTransaction(
                installed=[copy("b"), copy("a")],
                pending=[task],
                documents=[seen],
                notes={"k": "v"},
                trashed=[removed],
            )
        )

    with SqliteMirrorState(tmp_path / "s") as state:
        assert [c.uri for c in state.copies()] == ["a", "b"]
        assert state.copy("a") == copy("a")
        assert state.pending_of("p") == task
        assert state.document("list") == seen
        assert state.note("k") == "v"
        assert list(state.trash(removed_before=10)) == [removed]
        assert state.trash_of("u") == state.trash_at("t") == removed
        assert state.count() == 2


def test_a_step_that_fails_leaves_nothing_of_itself(state: SqliteMirrorState) -> None:
    broken = copy("b")._replace(path=None)  # type: ignore[arg-type]  # that is what is wrong

    with pytest.raises(StorageError):
        state.commit(StateTransaction(installed=[copy("a"), broken], notes={"k": "v"}))

    assert state.count() == 0
    assert state.note("k") is None


def test_installing_removing_and_settling_end_what_was_pending(state: SqliteMirrorState) -> None:
    state.commit(StateTransaction(pending=[pending(uri) for uri in "abcd"], installed=[copy("b")]))
    state.commit(StateTransaction(installed=[copy("a")], removed=["b"], completed=["c"]))

    assert [row.uri for row in state.pending(PendingTask.FETCH)] == ["d"]
    assert [c.uri for c in state.copies()] == ["a"]


def test_the_first_meeting_of_a_task_is_kept_and_a_new_task_starts_anew(
    state: SqliteMirrorState,
) -> None:
    state.commit(StateTransaction(pending=[pending("a", first=1, first_at=2)]))
    state.commit(StateTransaction(pending=[pending("a", first=50, first_at=60, tries=9)]))
    kept = state.pending_of("a")
    state.commit(
        StateTransaction(pending=[pending("a", PendingTask.DELETE, first=70, first_at=80)])
    )
    anew = state.pending_of("a")

    assert kept is not None
    assert (kept.first, kept.first_at, kept.tries) == (1, 2, 9)
    assert anew is not None
    assert (anew.first, anew.first_at, anew.task) == (70, 80, PendingTask.DELETE)


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


def test_deletions_are_counted_by_when_they_were_met(state: SqliteMirrorState) -> None:
    state.commit(
        StateTransaction(
            pending=[
                pending("a", PendingTask.DELETE, first=10, first_at=10),
                pending("b", PendingTask.DELETE, first=20, first_at=10),
                pending("c", PendingTask.DELETE, first=10, first_at=20),
                pending("d", PendingTask.FETCH, first=10, first_at=10),
            ]
        )
    )

    assert state.pending_count(PendingTask.DELETE, met_before=99, listed_before=99) == 3
    assert state.pending_count(PendingTask.DELETE, met_before=10, listed_before=20) == 1


def test_rows_of_older_readings_are_dropped(state: SqliteMirrorState) -> None:
    state.commit(StateTransaction(pending=[pending("a", generation=1), pending("b", generation=2)]))
    state.commit(StateTransaction(outdated=2))

    assert state.pending_of("a") is None
    assert state.pending_of("b") is not None


def test_a_list_with_another_from_is_another_list(state: SqliteMirrorState) -> None:
    old = ProcessedDocument("list", 1, 5, 3, "x", "e1", "")
    new = ProcessedDocument("list", 5, None, 0, "y", "e2", "")
    state.commit(StateTransaction(documents=[old]))
    state.commit(StateTransaction(documents=[new]))

    assert state.document("list", 1) == old
    assert state.document("list", 5) == new
    assert state.document("list") == new
    assert state.document("list", 9) is None


def test_only_the_newest_refusals_and_runs_are_told(state: SqliteMirrorState) -> None:
    state.replace_refused([RefusedRow("a", "c", "r")], 1)
    state.replace_refused([RefusedRow("b", "c", "r")], 2)
    for number in range(3):
        state.add_run(
            RunRow(run=str(number), started=0, ended=number, mode="m", outcome="ok", counts="{}")
        )
    last = state.last_run()

    assert [row.uri for row in state.refused()] == ["b"]
    assert last is not None
    assert last.run == "2"


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


@pytest.mark.parametrize("content", [b"not a database at all, just text" * 40, b"\0" * 4096])
def test_a_file_that_is_no_memory_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s").write_bytes(content)

    with pytest.raises(StateError):
        SqliteMirrorState(tmp_path / "s").check()


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


def test_finding_a_copy_by_its_digest_reads_no_other_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = statements(monkeypatch)
    with SqliteMirrorState(tmp_path / "s") as state:
        told.clear()
        assert state.copy_by_digest("sha-256:aa", LARGE) is None

    (statement,) = told
    assert plan_of(tmp_path / "s", statement) == [
        "SEARCH copy USING INDEX copy_digests (digests>? AND digests<?)"
    ]
    assert f"length >= {LARGE}" in statement
    assert f"length >= {LARGE}" in SCHEMA


def test_storing_tasks_does_not_read_those_that_are_stored_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = statements(monkeypatch)
    with SqliteMirrorState(tmp_path / "s") as state:
        state.commit(StateTransaction(pending=[pending("a")]))
        told.clear()
        state.commit(StateTransaction(pending=[pending("b")]))

    plans = [step for statement in told for step in plan_of(tmp_path / "s", statement)]
    assert not [step for step in plans if step.startswith("SCAN")]
