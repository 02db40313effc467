"""A Resource List and a change of unknown age: what is known of a resource if they differ."""

from typing import Any

import pytest

from resourcesync.destination.planner import (
    DISPUTED,
    FILTERED,
    ListedEntry,
    Match,
    algorithms_for,
    deduplicate,
    match_copy,
)
from resourcesync.destination.transfers.verification import verify_bytes
from resourcesync.mirror_state.rows import Copy
from resourcesync.model.vocabulary import ChangeKind

OLD, NEW, OTHER = (f"sha-256:{letter * 64}" for letter in "abc")
MD5 = "md5:" + "0" * 32


def row(digest: str, lastmod: int | None = None, change: str = "", **more: Any) -> ListedEntry:
    listed = ListedEntry("u", "u", "p", digest, 5 if digest else None, lastmod, change)
    return listed._replace(**more)


def last(
    first: ListedEntry, digest: str, lastmod: int | None = None, change: str = "updated"
) -> ListedEntry:
    changed = row(digest, lastmod, change, undated=True)
    (settled,) = deduplicate([first, changed])
    return settled


def copy(digest: str) -> Copy:
    known: dict[str, Any] = {"uri": "u", "path": "p", "length": 5, "lastmod": None}
    known |= {"digests": digest, "listed": digest}
    return Copy._make(known.get(name, "") for name in Copy._fields)


def test_a_change_to_what_the_list_has_says_nothing_new() -> None:
    assert last(row(OLD), OLD) == row(OLD)
    assert last(row("", 7), "", 7) == row("", 7)


@pytest.mark.parametrize(("digest", "lastmod"), [("", None), ("", 7), (NEW, 7)])
def test_a_change_that_does_not_say_the_same_is_not_taken_for_the_same(
    digest: str, lastmod: int | None
) -> None:
    settled = last(row(OLD, 7), digest, lastmod)

    assert settled.undated
    assert settled.rivals[0] == (OLD, 5)
    assert match_copy(copy(OLD), settled) is Match.UNKNOWN


def test_two_rows_that_tell_nothing_of_the_content_do_not_contradict() -> None:
    settled = last(row(""), "")

    assert not settled.undated
    assert match_copy(copy(OLD), settled) is Match.UNKNOWN


def test_a_copy_that_is_neither_is_different_and_one_that_is_either_is_asked_for() -> None:
    settled = last(row(OLD), NEW)

    assert match_copy(copy(OTHER), settled) is Match.DIFFERENT
    assert {match_copy(copy(name), settled) for name in (OLD, NEW)} == {Match.UNKNOWN}


def test_only_bytes_that_one_of_the_rows_lists_are_accepted() -> None:
    settled = last(row(OLD), NEW)

    assert [verify_bytes(settled, 5, name)[1] is None for name in (OLD, NEW, OTHER)] == [
        True,
        True,
        False,
    ]
    assert "md5" in algorithms_for(last(row(MD5), NEW), "sha-256")


def test_a_deletion_of_what_the_list_has_is_disputed_and_one_of_what_it_lacks_is_not() -> None:
    assert last(row(OLD), "", change=ChangeKind.DELETED).change == DISPUTED
    alone = row("", change=ChangeKind.DELETED, undated=True)
    assert list(deduplicate([alone])) == [alone]


def test_a_deletion_takes_no_copy_whose_entry_cannot_be_used() -> None:
    protected = row("", change=FILTERED)

    assert last(protected, "", change=ChangeKind.DELETED) == protected
