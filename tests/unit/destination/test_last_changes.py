"""Whether lists that were written anew account for the changes that were read last."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.destination.cursor import MAX_RECENT, LastChanges
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import ChangeKind

Listed = tuple[str, int | None]
HOUR = 3_600_000_000
CHANGES = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 20)), min_size=1)


def read(known: Iterable[Listed], listed: Iterable[Listed]) -> LastChanges:
    last = LastChanges(dict(known))
    for uri, hours in listed:
        time = None if hours is None else from_microseconds(hours * HOUR)
        last.add(Change(kind=ChangeKind.UPDATED, time=time, resource=Resource(uri=uri)))
    return last


def noted(*listed: Listed) -> list[Listed]:
    return [(uri, None if hours is None else hours * HOUR) for uri, hours in listed]


@pytest.mark.parametrize(
    ("listed", "are_taken_back"),
    [
        ([("a", 1), ("b", 2), ("c", 3)], False),  # all still there
        ([("c", 3), ("d", 9)], False),  # cut at the old end
        ([("c", 3), ("b", 2), ("a", 1)], False),  # sorted anew
        ([("a", 1), ("b", 2), ("c", 9)], False),  # merged: c changed again
        ([("c", 8), ("b", 9), ("a", 1)], False),  # merged: c and b did
        ([("c", 7), ("b", 8), ("a", 9)], False),  # merged: all did
        ([("a", 1), ("b", 2), ("d", 9)], True),  # c was taken back
        ([("a", 1), ("c", 9)], True),  # c changed again, but b was taken back
        ([("a", 1), ("b", 2), ("c", 2)], True),  # of c only an older change is left
        ([("a", 1), ("c", None)], True),  # no time proves nothing, and b is gone
        ([], True),
    ],
)
def test_changes_are_taken_back_where_neither_they_nor_later_ones_are_listed(
    listed: list[Listed], are_taken_back: bool
) -> None:
    last = read(noted(("a", 1), ("b", 2), ("c", 3)), listed)

    assert last.are_withdrawn is are_taken_back


def test_of_a_change_without_a_time_its_resource_must_be_listed() -> None:
    known = noted(("a", 1), ("b", None))

    assert read(known, [("a", 1)]).are_withdrawn
    assert not read(known, [("b", 5), ("a", 1)]).are_withdrawn
    assert read(known, [("b", None)]).are_withdrawn  # a is gone


def test_another_change_of_the_same_resource_is_not_the_known_one_however_near_it_is() -> None:
    last = LastChanges({"a": HOUR})
    moment = from_microseconds(HOUR + 1)
    last.add(Change(kind=ChangeKind.UPDATED, time=moment, resource=Resource(uri="a")))

    assert not last.are_found(None)


def test_only_the_newest_are_noted_however_long_the_lists_are() -> None:
    last = read([], [(f"u{number % 1_000}", number) for number in range(3_500)])

    known = LastChanges.from_note(last.encode())

    assert known.encode() == last.encode()
    assert len(last.encode()) < MAX_RECENT * 40
    newest = [(f"u{number % 1_000}", number) for number in range(3_500 - MAX_RECENT, 3_500)]
    assert LastChanges(dict(noted(*newest)), 3_499 * HOUR).encode() == last.encode()


@pytest.mark.parametrize("note", [None, "", "[]", "nonsense", "[1]", '[null,[["a"]]]'])
def test_a_note_that_tells_nothing_takes_nothing_back(note: str | None) -> None:
    assert not LastChanges.from_note(note).are_withdrawn


@given(CHANGES, CHANGES)
def test_a_list_that_only_grew_or_was_merged_takes_nothing_back(
    before: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    before.sort(key=lambda item: item[1])
    later = [(uri, hours + 20) for uri, hours in sorted(after, key=lambda item: item[1])]
    known = LastChanges.from_note(read([], before).encode())
    grown = [*before, *later]
    merged = sorted(dict(grown).items(), key=lambda item: item[1])
    for listed in (grown, merged, grown[::-1]):
        again = LastChanges.from_note(known.encode())
        for uri, hours in listed:
            time = from_microseconds(hours * HOUR)
            again.add(Change(kind=ChangeKind.UPDATED, time=time, resource=Resource(uri=uri)))

        assert not again.are_withdrawn


def test_the_newest_time_is_one_that_a_change_has_of_its_own() -> None:
    last = read([], [("a", 3), ("b", 2)])
    lastmod = from_microseconds(9 * HOUR)
    resource = Resource(uri="c", lastmod=lastmod)
    last.add(Change(kind=ChangeKind.UPDATED, time=lastmod, resource=resource))

    assert last.newest == LastChanges.from_note(last.encode()).newest == 3 * HOUR
