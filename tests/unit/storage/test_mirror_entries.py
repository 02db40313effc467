"""What the memory of a mirror knows of the links of entries, and when it tells of others."""

from collections.abc import Iterator

import pytest

from resourcesync.destination.links import encode_entry_links
from resourcesync.destination.listed_rows import store_entry_links
from resourcesync.destination.planner import FILTERED, ListedEntry
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Copy, EntryRow, StateTransaction
from resourcesync.model.links import Link
from resourcesync.model.resources import Resource

ABOUT = '[["describedby","http://h/meta","","",null,null]]'


def copy(uri: str) -> Copy:
    return Copy(uri, uri, 3, "md5:x", "", None, "", "", "sig", "weak", 0)


def row(uri: str, entry: str = ABOUT, change: str = "") -> ListedEntry:
    return ListedEntry(uri, uri, uri, "", None, None, change, entry=entry)


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


def test_a_change_without_links_takes_them_back_and_a_filtered_one_says_nothing(
    state: SqliteMirrorState,
) -> None:
    store_entry_links(state, [row("a"), row("b"), row("c", "")], generation=1, now=1, anew=True)
    news = [row("a", "", "updated"), row("b", "", FILTERED), row("d", "", "created")]
    store_entry_links(state, news, generation=2, now=2, anew=False)
    assert [state.entry_links(uri) for uri in "abcd"] == ["", ABOUT, "", ""]
    store_entry_links(state, [row("b", "", "deleted")], generation=3, now=3, anew=False)
    assert state.entry_links("b") == ABOUT  # its copy is still here


def test_only_links_that_may_be_true_of_a_copy_are_remembered() -> None:
    links = (
        Link(rel="Via up", href="HTTP://H:80/a"),
        Link(rel="duplicate", href="http://h/b"),
        Link(rel="collection", href="urn:x"),
    )
    assert encode_entry_links(Resource(uri="http://h/x", links=links)) == (
        '[["via","http://h/a","","",null,null],["collection","urn:x","","",null,null]]'
    )
    assert encode_entry_links(Resource(uri="http://h/x", links=links[1:2])) == ""
    far = (Link(rel="via", href=f"http://h/{'a' * 20_000}"),)
    assert encode_entry_links(Resource(uri="http://h/x", links=far)) == ""
