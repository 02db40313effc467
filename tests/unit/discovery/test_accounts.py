"""Accounts: what holds for a URI in the end, and how two tellings are judged."""

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.discovery.listing import ListingComparison, ListingRow, compare_rows, latest_rows

HASHES = st.sampled_from(
    ["", "md5:" + "0" * 32, "md5:" + "1" * 32, "sha-256:" + "a" * 64, "sha-256:" + "b" * 64]
)
TOLD = st.builds(
    ListingRow,
    uri=st.sampled_from(["a", "b", "c"]),
    hash=HASHES,
    length=st.none() | st.integers(0, 3),
    lastmod=st.none() | st.integers(0, 3),
    change=st.sampled_from(["", "", "created", "updated", "deleted"]),
)


@given(st.lists(TOLD, max_size=12))
def test_the_last_telling_of_a_uri_holds(tellings: list[ListingRow]) -> None:
    held: dict[str, ListingRow] = {told.uri: told for told in tellings}
    expected = [held[uri] for uri in sorted(held) if held[uri].change != "deleted"]

    assert list(latest_rows(sorted(tellings, key=lambda told: told.uri))) == expected


@given(TOLD, TOLD)
def test_both_sides_are_judged_alike(row: ListingRow, other: ListingRow) -> None:
    assert compare_rows(row, other)[0] is compare_rows(other, row)[0]


@given(TOLD)
def test_nothing_differs_from_itself(told: ListingRow) -> None:
    assert compare_rows(told, told)[0] is (
        ListingComparison.SAME if told.hash else ListingComparison.UNPROVEN
    )


@given(TOLD, TOLD)
def test_what_is_the_same_shares_a_hash_and_no_length_speaks_against_it(
    row: ListingRow, other: ListingRow
) -> None:
    if compare_rows(row, other)[0] is ListingComparison.SAME:
        assert row.hash == other.hash != ""
        assert None in (row.length, other.length) or row.length == other.length


def test_a_newer_lastmod_is_no_difference_when_the_hash_is_the_same() -> None:
    digest = "sha-256:" + "a" * 64

    assert (
        compare_rows(ListingRow("a", digest, 1, 1), ListingRow("a", digest, 1, 2))[0]
        is ListingComparison.SAME
    )
    assert (
        compare_rows(ListingRow("a", "", 1, 1), ListingRow("a", digest, 1, 2))[0]
        is ListingComparison.DIFFERENT
    )
