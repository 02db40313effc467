"""What the memory of a mirror knows of the links of entries, and when it tells of others."""

from collections.abc import Iterator

import pytest

from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Copy, EntryRow, StateTransaction

ABOUT = '[["describedby","http://h/meta","","",null,null]]'


def copy(uri: str) -> Copy:
    return Copy(uri, uri, 3, "md5:x", "", None, "", "", "sig", "weak", 0)


@pytest.fixture
def state() -> Iterator[SqliteMirrorState]:
    with SqliteMirrorState(":memory:") as state:
        state.commit(StateTransaction(installed=[copy("a"), copy("b")]))
        yield state


def kinds(state: SqliteMirrorState) -> list[tuple[str, str]]:
    return [(change.kind, change.uri) for change in state.changes(2)]


def test_links_that_are_new_or_gone_are_told_once_and_only_of_what_is_here(
    state: SqliteMirrorState,
) -> None:
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
