"""The log of changes: true to what happened, also through kills, and bounded."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.destination.change_log_reader import ChangeLogReader
from resourcesync.destination.planner import as_unknown
from resourcesync.errors import DiscontinuityError
from resourcesync.mirror_state import change_log
from resourcesync.mirror_state.database import MAX_RUNS, SqliteMirrorState
from resourcesync.mirror_state.rows import Copy, LoggedChange, RunRow, StateTransaction

DAY = 86_400_000_000


def copy(uri: str, content: str, installed: int = 5) -> Copy:
    digests = f"sha-256:{content * 64}"
    return Copy(uri, f"p/{uri}", len(content), digests, "", None, "", "", "sig", "weak", installed)


def put(state: SqliteMirrorState, new: Copy, before: Copy | None) -> None:
    """Install a copy in the two steps of a transfer."""
    state.commit(StateTransaction(suspect=[as_unknown(before or new._replace(signature=""))]))
    state.commit(StateTransaction(installed=[new]))


def told(state: SqliteMirrorState, after: int = 0) -> list[tuple[str, str]]:
    return [(row.kind, row.uri) for row in state.changes(after)]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqliteMirrorState]:
    with SqliteMirrorState(tmp_path / "state.db") as state:
        yield state


def test_a_life_is_told_in_order_with_the_digests_before(state: SqliteMirrorState) -> None:
    put(state, copy("a", "1"), None)
    put(state, copy("a", "2", 6), copy("a", "1"))
    put(state, copy("a", "2", 7), copy("a", "2"))
    state.commit(StateTransaction(suspect=[as_unknown(copy("a", "2"))]))
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
        put(state, copy("a", "1"), None)
        state.commit(StateTransaction(suspect=[as_unknown(copy("a", "1"))]))
        state.commit(StateTransaction(suspect=[as_unknown(copy("b", "1")._replace(signature=""))]))
    with SqliteMirrorState(tmp_path / "s") as state:
        state.commit(StateTransaction(installed=[copy("a", now), copy("b", "1")]))
    with SqliteMirrorState(tmp_path / "s") as state:
        assert told(state) == [("created", "a"), ("updated", "a"), ("created", "b")]
        assert [row.previous for row in state.changes(1)] == [previous, ""]
        put(state, copy("a", now), copy("a", now))
        assert told(state, after=3) == [("touched", "a")]


def test_what_a_failed_run_left_in_doubt_is_an_update_and_other_digests_are_none(
    state: SqliteMirrorState,
) -> None:
    put(state, copy("a", "1"), None)
    state.commit(StateTransaction(suspect=[as_unknown(copy("a", "1"))]))
    state.add_run(RunRow(run="r", started=0, ended=6, mode="", outcome="disk", counts="{}"))
    put(state, copy("a", "1", 7), copy("a", "1"))
    put(state, copy("a", "1", 8), copy("a", "1"))
    more = f"md5:{'0' * 32} sha-256:{'1' * 64}"
    state.commit(StateTransaction(installed=[copy("a", "1")._replace(digests=more)]))

    assert told(state) == [("created", "a"), ("updated", "a"), ("touched", "a"), ("touched", "a")]


def test_a_first_reading_has_what_is_being_replaced(state: SqliteMirrorState) -> None:
    """If the same bytes are installed, no later change would tell of it."""
    put(state, copy("a", "1"), None)
    put(state, copy("b", "1"), None)
    new = copy("new", "1")._replace(signature="")
    state.commit(StateTransaction(suspect=[as_unknown(copy("a", "1")), as_unknown(new)]))
    reader = ChangeLogReader(state=state)

    read = [(row.kind, row.uri, row.digests) for row in reader.read_new()]

    digest = f"sha-256:{'1' * 64}"
    assert read == [("created", "a", digest), ("created", "b", digest)]
    assert reader.position == (2, 5, "")


def test_a_position_whose_change_was_deleted_proves_nothing(
    state: SqliteMirrorState, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(state, copy("a", "1"), None)
    reader = ChangeLogReader(state=state)
    assert len(list(reader.read_new())) == 1
    monkeypatch.setattr(change_log, "MAX_CHANGES", 1)
    put(state, copy("b", "1"), None)
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
                new = copy(uri, content)
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
    put(state, copy("a", "1", DAY), None)
    put(state, copy("b", "1", 2 * DAY), None)
    state.delete_old_changes(200 * DAY)
    put(state, copy("c", "1", 200 * DAY), None)

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
