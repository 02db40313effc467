"""Proof that lists have the change that was processed last."""

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.destination.changes.intervals import LastChanges
from resourcesync.model.entries import Change, Resource
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


@given(CHANGES, CHANGES)
def test_a_list_that_only_grew_has_the_last_change(
    before: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    before.sort(key=lambda item: item[1])
    later = [(uri, hours + 20) for uri, hours in sorted(after, key=lambda item: item[1])]
    grown = [*before, *later]

    for listed in (grown, grown[::-1]):
        assert read(read([], before).recent, listed).has_last
