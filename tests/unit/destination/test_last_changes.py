"""Proof that lists have the change that was processed last."""

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.destination.changes.times import LastChanges
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import ChangeKind

Listed = tuple[str, int | None]
HOUR = 3_600_000_000
CHANGES = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 20)), min_size=1)


def read(
    known: Sequence[Listed], listed: Iterable[Listed], begin: int | None = None
) -> LastChanges:
    last = LastChanges(known)
    for uri, hours in listed:
        time = None if hours is None else from_microseconds(hours * HOUR)
        last.add(Change(kind=ChangeKind.UPDATED, time=time, resource=Resource(uri=uri)), begin)
    return last


def noted(*listed: Listed) -> list[Listed]:
    return [(uri, None if hours is None else hours * HOUR) for uri, hours in listed]


@pytest.mark.parametrize(
    ("listed", "is_proven"),
    [
        ([("a", 1), ("b", 2), ("c", 3)], True),  # all still there
        ([("c", 3), ("d", 9)], True),  # cut at the old end
        ([("c", 3), ("b", 2), ("a", 1)], True),  # sorted
        ([("a", 1), ("b", 2), ("c", 9)], False),  # merged: c changed again
        ([("a", 1), ("b", 2), ("d", 9)], False),  # c was withdrawn
        ([("a", 1), ("b", 2), ("c", 2)], False),  # of c only an older change is left
        ([("b", 2), ("c", None)], False),  # a change without a time proves nothing
        ([], False),
    ],
)
def test_lists_prove_that_they_continue_by_the_very_change_that_was_last(
    listed: list[Listed], is_proven: bool
) -> None:
    assert read(noted(("a", 1), ("b", 2), ("c", 3)), listed).has_last is is_proven


def test_a_change_without_a_time_is_never_known_to_be_the_same() -> None:
    assert not read(noted(("a", 1), ("b", None)), [("a", 1), ("b", None)]).has_last


def test_a_change_before_the_start_of_its_list_proves_nothing() -> None:
    known = noted(("a", 1))

    assert read(known, [("a", 1)], begin=HOUR).has_last
    assert not read(known, [("a", 1)], begin=2 * HOUR).has_last


def test_nothing_is_proven_where_nothing_was_processed() -> None:
    assert not read([], [("a", 1)]).has_last


def test_only_the_newest_is_stored() -> None:
    assert read([], [("a", 1), ("b", 2)]).recent == tuple(noted(("b", 2)))
    assert read(noted(("a", 1), ("b", 2)), []).recent == tuple(noted(("b", 2)))


@given(CHANGES, CHANGES)
def test_a_list_that_only_grew_has_the_last_change(
    before: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    before.sort(key=lambda item: item[1])
    later = [(uri, hours + 20) for uri, hours in sorted(after, key=lambda item: item[1])]
    grown = [*before, *later]

    for listed in (grown, grown[::-1]):
        assert read(read([], before).recent, listed).has_last
