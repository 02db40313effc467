"""What the memory of a mirror knows of links and patches."""

from pathlib import Path

import pytest

from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Copy, LinkRow, StateTransaction
from tests.support.storage.sqlite_connections import plan_of, statements

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
