"""What the memory of a mirror knows of links and patches."""

from pathlib import Path

import pytest

from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Copy, LinkRow, PatchRow, StateTransaction
from tests.support.storage.sqlite_connections import plan_of, statements

COPY = Copy("x", "x", 3, "", "", None, "", "", "sig", "weak", 0)


def state_with(*links: tuple[str, str], path: Path | str = ":memory:") -> SqliteMirrorState:
    state = SqliteMirrorState(path)
    state.commit(
        StateTransaction(linked=[LinkRow(uri, via, 1) for uri, via in links], installed=[COPY])
    )
    return state


def test_who_links_to_a_thing_is_remembered_in_order_and_within_a_limit() -> None:
    with state_with(("x", "b"), ("x", "a"), ("x", "c"), ("y", "a"), ("x", "a")) as state:
        assert state.referrers("x", 2) == ["a", "b"]
        assert state.is_linked("x")
        assert not state.is_linked("a")
        assert state.linked_count() == 1  # y is not here


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


@pytest.mark.parametrize(
    "step",
    [StateTransaction(listed=["x"]), StateTransaction(removed=["x"]), StateTransaction(outdated=2)],
)
def test_links_end_when_a_thing_is_listed_or_gone_or_a_newer_reading_knows_none(
    step: StateTransaction,
) -> None:
    with state_with(("x", "a")) as state:
        state.commit(StateTransaction(linked=[LinkRow("z", "a", 2)]))
        state.commit(step)
        assert not state.is_linked("x")
        assert state.is_linked("z")


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


def test_what_became_of_a_patch_is_remembered_until_its_copy_goes() -> None:
    with state_with() as state:
        assert state.last_patch("x") is None
        state.commit(StateTransaction(patched=[PatchRow("x", 5, "why")]))
        state.commit(StateTransaction(patched=[PatchRow("x", 6, "")]))
        assert state.last_patch("x") == PatchRow("x", 6, "")
        state.commit(StateTransaction(removed=["x"]))
        assert state.last_patch("x") is None
