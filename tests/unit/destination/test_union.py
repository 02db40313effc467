"""The entries of one resource as one: which of them count, in whatever order they are listed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.destination.listed_rows import MAX_RIVALS, unite, unite_all
from resourcesync.destination.planner import FILTERED, ListedEntry, Match, match_copy
from resourcesync.destination.transfers.verification import verify_bytes
from resourcesync.mirror_state.rows import Copy

SHA, OTHER = (f"sha-256:{letter * 64}" for letter in "ab")
MD5, ODD = "md5:" + "c" * 32, "odd:1"


def row(uri: str = "u", **more: Any) -> ListedEntry:
    return ListedEntry(uri, uri, "p", "", None, None, "")._replace(**more)


rows_of_one = st.builds(
    row,
    loc=st.sampled_from(["u", "u#x"]),
    hash=st.sampled_from(["", SHA, OTHER, MD5, f"{MD5} {SHA}", ODD]),
    length=st.sampled_from([None, 3, 4]),
    lastmod=st.sampled_from([None, -5, 5]),
    mirrors=st.sampled_from([(), ("m",), ("n", "m")]),
    links=st.sampled_from([(), (("l", "", None, None),)]),
)
unwanted = st.sampled_from([row(change=FILTERED), row(change=FILTERED, loc="", lastmod=None)])


@given(st.data(), st.lists(rows_of_one | unwanted, min_size=1, max_size=20))
def test_the_order_of_the_entries_makes_no_difference(
    data: st.DataObject, rows: list[ListedEntry]
) -> None:
    turned = data.draw(st.permutations(rows))

    assert unite(rows) == unite(turned)
    assert unite([unite(rows)]) == unite(rows)
    assert list(unite_all(rows * 9)) == [unite(rows)]


@given(st.lists(rows_of_one, min_size=1, max_size=6))
def test_what_an_entry_of_the_newest_date_lists_is_never_taken_for_wrong(
    rows: list[ListedEntry],
) -> None:
    dates = [each.lastmod for each in rows if each.lastmod is not None]
    newest = [each for each in rows if each.lastmod == max(dates, default=None)]
    united = unite(rows)

    for entry in newest:
        digests = entry.hash if entry.hash in (SHA, OTHER, MD5) else ""
        copy = Copy("u", "p", entry.length or 3, digests, "", entry.lastmod, "", "", "s", "", 0)
        if all(match_copy(copy, each) is not Match.DIFFERENT for each in newest):
            assert match_copy(copy, united) is not Match.DIFFERENT
        if united.undated and digests:
            assert match_copy(copy, united) is Match.UNKNOWN
            assert verify_bytes(united, entry.length or 3, digests)[1] is None


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ((row(lastmod=1, hash=OTHER), row(lastmod=2, length=4)), row(lastmod=2, length=4)),
        ((row(lastmod=1, length=4), row(hash=SHA)), row(lastmod=1, length=4)),
        ((row(hash=MD5), row(hash=SHA, length=3)), row(hash=f"{MD5} {SHA}", length=3)),
        ((row(hash=SHA), row(hash=f"{SHA} {ODD}")), row(hash=f"{ODD} {SHA}")),
        ((row(hash=SHA), row(change=FILTERED, loc="")), row(hash=SHA)),
        ((row(lastmod=1), row(change=FILTERED, lastmod=1)), row(lastmod=1)),
    ],
)
def test_entries_that_do_not_disagree_are_one(
    entries: tuple[ListedEntry, ...], expected: ListedEntry
) -> None:
    assert unite(entries) == unite(entries[::-1]) == expected


def test_entries_that_disagree_are_candidates_and_too_many_are_none() -> None:
    few = unite([row(hash=SHA, lastmod=1), row(hash=OTHER, length=3, lastmod=1), row(lastmod=1)])
    many = unite(row(hash=f"sha-256:{number:064}") for number in range(MAX_RIVALS + 1))

    assert few == row(lastmod=1, undated=True, rivals=((SHA, None), (OTHER, 3)))
    assert many == row(undated=True)
