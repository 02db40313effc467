"""The entries of one resource as one: which of them count, in whatever order they are listed."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.destination.listed_rows import unite, unite_all
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
    assert unite(rows) == unite(data.draw(st.permutations(rows)))
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
