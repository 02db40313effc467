"""The mirror's memory, and its log of changes: true to what happened, also through kills."""

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resourcesync.destination.change_log_reader import ChangeLogReader
from resourcesync.destination.planner import as_unknown
from resourcesync.errors import DiscontinuityError, StateError
from resourcesync.mirror_state import change_log
from resourcesync.mirror_state.database import MAX_RUNS, SqliteMirrorState, conflicting_paths
from resourcesync.mirror_state.rows import (
    Copy,
    EntryRow,
    LinkRow,
    LoggedChange,
    Pending,
    PendingTask,
    ProcessedDocument,
    RunRow,
    StateTransaction,
    TrashRow,
)
from tests.support.storage.sqlite_connections import plan_of, statements


def copy(uri: str) -> Copy:
    return Copy(uri, uri, 3, "sha-256:x", "", None, "", "", "sig", "weak", 5)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqliteMirrorState]:
    with SqliteMirrorState(tmp_path / "state.db") as state:
        yield state


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


def test_damage_in_the_middle_is_found_by_the_check(tmp_path: Path) -> None:
    with SqliteMirrorState(tmp_path / "s") as state:
        state.commit(StateTransaction(installed=[copy(f"{n:05}") for n in range(5_000)]))
    content = bytearray((tmp_path / "s").read_bytes())
    content[40_000:44_000] = b"\xff" * 4_000
    (tmp_path / "s").write_bytes(bytes(content))

    with pytest.raises(StateError, match="damaged"), SqliteMirrorState(tmp_path / "s") as state:
        state.check()


def test_a_list_with_another_from_is_another_list(state: SqliteMirrorState) -> None:
    old = ProcessedDocument("list", 1, 5, 3, "x", "e1", "")
    new = ProcessedDocument("list", 5, None, 0, "y", "e2", "")
    state.commit(StateTransaction(documents=[old]))
    state.commit(StateTransaction(documents=[new]))

    assert state.document("list", 1) == old
    assert state.document("list", 5) == new
    assert state.document("list") == new
    assert state.document("list", 9) is None


COPY = Copy("x", "x", 3, "", "", None, "", "", "sig", "weak", 0)


def state_with(*links: tuple[str, str], path: Path | str = ":memory:") -> SqliteMirrorState:
    state = SqliteMirrorState(path)
    state.commit(
        StateTransaction(linked=[LinkRow(uri, via, 1) for uri, via in links], installed=[COPY])
    )
    return state


def test_a_thing_is_an_orphan_when_its_last_entry_forgets_it() -> None:
    with state_with(("x", "a"), ("x", "b"), ("y", "a")) as state:
        assert list(state.orphans()) == []
        state.commit(StateTransaction(unlinked=["a"]))
        assert list(state.orphans()) == ["y"]
        assert state.is_linked("y")
        state.commit(StateTransaction(unlinked=["b"]))
        assert list(state.orphans()) == ["x", "y"]
        assert state.referrers("x", 9) == []


def test_what_is_forgotten_and_told_again_in_one_step_is_no_orphan() -> None:
    with state_with(("x", "a")) as state:
        state.commit(StateTransaction(unlinked=["a"], linked=[LinkRow("x", "a", 2)]))
        assert list(state.orphans()) == []


def test_many_orphans_are_read_page_by_page_while_they_are_settled() -> None:
    names = [f"{number:05}" for number in range(2_500)]
    with state_with(*((name, "a") for name in names)) as state:
        state.commit(StateTransaction(unlinked=["a"]))
        seen = []
        for uri in state.orphans():
            seen.append(uri)
            state.commit(StateTransaction(listed=[uri]))
        assert seen == names


def test_looking_for_orphans_reads_only_what_was_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = statements(monkeypatch)
    with state_with(("x", "a"), path=tmp_path / "s") as state:
        told.clear()
        assert list(state.orphans()) == []

    (statement,) = told
    plan = plan_of(tmp_path / "s", statement)
    assert plan[0].startswith("SEARCH mark USING")
    assert "link_via (via=?" in plan[0]
    assert "SEARCH link USING PRIMARY KEY (uri=? AND via>?)" in plan[-1]


BASE = "http://source.example/"
PATHS = st.lists(st.sampled_from(["a", "b", "a.b", "a0", "a!9"]), min_size=1, max_size=3).map(
    "/".join
)
NAMED = st.dictionaries(PATHS, st.tuples(PATHS, st.booleans()), max_size=8)


def rows(named: dict[str, tuple[str, bool]]) -> tuple[list[Copy], list[Pending]]:
    """Copies and tasks: of each the end of its URI, its path, and whether the path is that end."""
    copies, tasks = [], []
    for number, (tail, (other, is_plain)) in enumerate(sorted(named.items())):
        uri = f"{BASE}{tail}"
        is_end = uri.endswith(other)  # no mapping gives a path that is only a part of that end
        path = tail if is_plain or is_end else other
        if number % 3:
            copies.append(Copy(uri, path, 3, "sha-256:x", "", None, "", "", "s", "weak", 5))
        else:
            row = Pending(
                uri, uri, path, PendingTask.FETCH, "", None, None, "404", "gone", 1, 0, 1, 2, 1
            )
            tasks.append(row)
    return copies, tasks


def meets(found: Iterable[tuple[str, str]], paths: list[str]) -> tuple[object, object]:
    """What has a path or is a folder of one; and which paths something is below of."""
    pairs = set(found)
    exact = {*paths, *(str(folder) for path in paths for folder in PurePosixPath(path).parents)}
    at = {pair for pair in pairs if pair[1] in exact}
    return at, {name for name in paths if any(path.startswith(f"{name}/") for _, path in pairs)}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(named=NAMED, paths=st.lists(PATHS, max_size=4))
def test_what_is_looked_up_is_what_reading_all_finds(
    tmp_path: Path, named: dict[str, tuple[str, bool]], paths: list[str]
) -> None:
    copies, tasks = rows(named)
    everything = [(copy.uri, copy.path) for copy in copies] + [
        (task.uri, task.path) for task in tasks
    ]
    (tmp_path / "s").unlink(missing_ok=True)
    with SqliteMirrorState(tmp_path / "s") as state:
        state.commit(StateTransaction(installed=copies, pending=tasks, now=1))

        found = list(state.path_conflicts(BASE, paths, None))

    assert meets(found, paths) == meets(conflicting_paths(everything, paths, str), paths)
    assert set(found) <= set(everything)


ABOUT = '[["describedby","http://h/meta","","",null,null]]'


def kinds(state: SqliteMirrorState) -> list[tuple[str, str]]:
    return [(change.kind, change.uri) for change in state.changes(2)]


def test_links_that_are_new_or_gone_are_told_once_and_only_of_what_is_here(
    state: SqliteMirrorState,
) -> None:
    state.commit(StateTransaction(installed=[copy("a"), copy("b")]))
    for generation in (1, 2):
        rows = [EntryRow("a", ABOUT, generation), EntryRow("not here", ABOUT, generation)]
        state.commit(StateTransaction(entries=rows, now=7))
    assert kinds(state) == [("touched", "a")]
    assert (state.entry_links("a"), state.entry_changed("a")) == (ABOUT, 3)
    state.commit(StateTransaction(outdated=3, now=8))
    assert kinds(state) == [("touched", "a"), ("touched", "a")]
    assert (state.entry_links("a"), state.entry_changed("a")) == ("", 4)
    assert state.has_entries()
    state.commit(StateTransaction(removed=["a"], now=9))
    assert not state.has_entries()


DAY = 86_400_000_000


def made(uri: str, content: str, installed: int = 5) -> Copy:
    digests = f"sha-256:{content * 64}"
    return Copy(uri, f"p/{uri}", len(content), digests, "", None, "", "", "sig", "weak", installed)


def put(state: SqliteMirrorState, new: Copy, before: Copy | None) -> None:
    state.commit(StateTransaction(suspect=[as_unknown(before or new._replace(signature=""))]))
    state.commit(StateTransaction(installed=[new]))


def told(state: SqliteMirrorState, after: int = 0) -> list[tuple[str, str]]:
    return [(row.kind, row.uri) for row in state.changes(after)]


def test_a_life_is_told_in_order_with_the_digests_before(state: SqliteMirrorState) -> None:
    put(state, made("a", "1"), None)
    put(state, made("a", "2", 6), made("a", "1"))
    put(state, made("a", "2", 7), made("a", "2"))
    state.commit(StateTransaction(suspect=[as_unknown(made("a", "2"))]))
    state.commit(StateTransaction(removed=["a"], now=8))

    name, two = (f"sha-256:{content * 64}" for content in "12")
    assert list(state.changes(0)) == [
        LoggedChange(1, 5, "created", "a", "p/a", 1, name, ""),
        LoggedChange(2, 6, "updated", "a", "p/a", 1, two, name),
        LoggedChange(3, 7, "touched", "a", "p/a", 1, two, two),
        LoggedChange(4, 8, "deleted", "a", "p/a", 1, "", two),
    ]
    assert state.change_bounds() == (0, 4)
    assert [row.seq for row in state.changes_of("a")] == [4, 3, 2, 1]
    assert told(state, after=3) == [("deleted", "a")]


@pytest.mark.parametrize(("now", "previous"), [("1", ""), ("2", f"sha-256:{'1' * 64}")])
def test_what_was_in_doubt_when_a_run_was_killed_is_an_update(
    tmp_path: Path, now: str, previous: str
) -> None:
    """Also the same bytes: a program may have read other ones in between, and would keep them."""
    with SqliteMirrorState(tmp_path / "s") as state:
        put(state, made("a", "1"), None)
        state.commit(StateTransaction(suspect=[as_unknown(made("a", "1"))]))
        state.commit(StateTransaction(suspect=[as_unknown(made("b", "1")._replace(signature=""))]))
    with SqliteMirrorState(tmp_path / "s") as state:
        state.commit(StateTransaction(installed=[made("a", now), made("b", "1")]))
    with SqliteMirrorState(tmp_path / "s") as state:
        assert told(state) == [("created", "a"), ("updated", "a"), ("created", "b")]
        assert [row.previous for row in state.changes(1)] == [previous, ""]
        put(state, made("a", now), made("a", now))
        assert told(state, after=3) == [("touched", "a")]


def test_a_copy_that_moves_while_in_doubt_ends_before_another_has_its_path(
    state: SqliteMirrorState,
) -> None:
    put(state, made("a", "1"), None)
    state.commit(StateTransaction(suspect=[as_unknown(made("a", "1"))]))
    moved = made("a", "2")._replace(path="elsewhere")
    state.commit(StateTransaction(suspect=[as_unknown(moved)], now=6))
    put(state, made("b", "1"), None)
    state.commit(StateTransaction(installed=[moved]))
    assert [kind for kind, _ in told(state)] == ["created", "deleted", "created", "created"]


def test_what_a_failed_run_left_in_doubt_is_an_update_and_other_digests_are_none(
    state: SqliteMirrorState,
) -> None:
    put(state, made("a", "1"), None)
    state.commit(StateTransaction(suspect=[as_unknown(made("a", "1"))]))
    state.add_run(RunRow(run="r", started=0, ended=6, mode="", outcome="disk", counts="{}"))
    put(state, made("a", "1", 7), made("a", "1"))
    put(state, made("a", "1", 8), made("a", "1"))
    more = f"md5:{'0' * 32} sha-256:{'1' * 64}"
    state.commit(StateTransaction(installed=[made("a", "1")._replace(digests=more)]))

    assert told(state) == [("created", "a"), ("updated", "a"), ("touched", "a"), ("touched", "a")]


def test_a_first_reading_has_what_is_being_replaced(state: SqliteMirrorState) -> None:
    """If the same bytes are installed, no later change would tell of it."""
    put(state, made("a", "1"), None)
    put(state, made("b", "1"), None)
    new = made("new", "1")._replace(signature="")
    state.commit(StateTransaction(suspect=[as_unknown(made("a", "1")), as_unknown(new)]))
    reader = ChangeLogReader(state=state)

    read = [(row.kind, row.uri, row.digests) for row in reader.read_new()]

    digest = f"sha-256:{'1' * 64}"
    assert read == [("created", "a", digest), ("created", "b", digest)]
    assert reader.position == (2, 5, "")


def test_a_position_whose_change_was_deleted_proves_nothing(
    state: SqliteMirrorState, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(state, made("a", "1"), None)
    reader = ChangeLogReader(state=state)
    assert len(list(reader.read_new())) == 1
    monkeypatch.setattr(change_log, "MAX_CHANGES", 1)
    put(state, made("b", "1"), None)
    assert state.change_bounds() == (1, 2)

    with pytest.raises(DiscontinuityError):
        list(reader.read_new())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["1", "2", ""]), st.booleans()),
        max_size=25,
    )
)
def test_whoever_follows_the_log_has_what_the_mirror_has(
    deeds: list[tuple[str, str, bool]],
) -> None:
    with SqliteMirrorState(":memory:") as state:
        follower: dict[str, str] = {}
        for uri, content, gives_up in deeds:
            before = state.copy(uri)
            if content:
                new = made(uri, content)
                state.commit(
                    StateTransaction(suspect=[as_unknown(before or new._replace(signature=""))])
                )
                if gives_up:
                    taken = {"suspect": [before]} if before else {"removed": [uri]}
                    state.commit(StateTransaction(**taken))
                else:
                    state.commit(StateTransaction(installed=[new]))
            elif before:
                state.commit(StateTransaction(suspect=[as_unknown(before)]))
                state.commit(StateTransaction(removed=[uri], now=9))
        for row in state.changes(0):
            assert follower.get(row.uri, "") == row.previous
            if row.kind == "deleted":
                del follower[row.uri]
            else:
                assert (row.kind == "created") == (row.uri not in follower)
                follower[row.uri] = row.digests

        assert follower == {row.uri: row.digests for row in state.copies()}
        state.close()


def test_changes_are_forgotten_after_ninety_days_but_numbers_go_on(
    state: SqliteMirrorState,
) -> None:
    put(state, made("a", "1", DAY), None)
    put(state, made("b", "1", 2 * DAY), None)
    state.delete_old_changes(200 * DAY)
    put(state, made("c", "1", 200 * DAY), None)

    assert [(row.seq, row.uri) for row in state.changes(0)] == [(2, "b"), (3, "c")]


def test_a_thousand_runs_are_stored_and_the_first_of_those_that_failed(
    state: SqliteMirrorState,
) -> None:
    for number in range(MAX_RUNS + 5):
        mode, ended = "auto" if number < 2 else "", MAX_RUNS + 5 - number
        row = RunRow(run=f"{number}", started=0, ended=ended, mode=mode, outcome="ok", counts="{}")
        state.add_run(row)

    last = state.last_run()
    assert last is not None
    assert last.run == f"{MAX_RUNS + 4}", "whatever its time"
    assert state.failing_since() == MAX_RUNS + 3
    assert state.value(int, "SELECT count(*) FROM run") == MAX_RUNS + 1
