"""What proves that a reading which was cut off still counts: all of its lists, as they began."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from resourcesync.destination.cursor import (
    InterruptedReading,
    ListPrefix,
    PrefixRecord,
    encode_prefixes,
)
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import ChangeKind


def changes(names: str) -> list[Change]:
    time = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        Change(
            resource=Resource(uri=f"http://a.example/{name}"), kind=ChangeKind.UPDATED, time=time
        )
        for name in names
    ]


def read(names: str, from_: int = 1) -> PrefixRecord:
    prefix = ListPrefix()
    for change in changes(names):
        prefix.add(change)
    return from_, prefix.entries, prefix.hexdigest()


def is_lost(noted: Sequence[PrefixRecord], *lists: tuple[int | None, str, bool]) -> bool:
    """Whether what was noted is lost in lists: when they begin, their changes, whether news."""
    found = InterruptedReading.from_notes(encode_prefixes(noted))
    for from_, names, is_news in lists:
        found.begin_list(from_)
        for change in changes(names):
            found.add(change)
        found.end_list(is_news=is_news)
    return found.is_lost


def test_lists_that_begin_as_they_were_prove_it_whatever_stands_behind() -> None:
    assert not is_lost([])
    assert not is_lost([read("ab"), read("cd", 2)], (1, "abx", True), (2, "cd", True))


@pytest.mark.parametrize(
    "lists", [[(1, "ab", True)], [(1, "abcd", True)], [(1, "abcd", True), (2, "xcd", True)]]
)
def test_a_second_list_that_is_missing_or_begins_otherwise_is_a_loss(
    lists: list[tuple[int | None, str, bool]],
) -> None:
    assert is_lost([read("ab"), read("cd", 2)], *lists)


def test_a_list_that_begins_at_another_time_or_tells_of_nothing_new_proves_nothing() -> None:
    assert is_lost([read("ab")], (2, "ab", True))
    assert is_lost([read("ab")], (1, "ab", False))
    assert not is_lost([read("ab", 0)], (None, "ab", True))


def test_more_lists_than_are_worth_a_note_are_never_proven() -> None:
    many = [(number, 1, "digest") for number in range(10_001)]

    assert len(encode_prefixes(many)) < 100
    assert InterruptedReading.from_notes(encode_prefixes(many)).is_lost
    assert InterruptedReading.from_notes("[[1,2]").is_lost
    assert not InterruptedReading.from_notes("", None).is_lost
