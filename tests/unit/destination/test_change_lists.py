"""Which Change Lists are read, and how far they move the checkpoint."""

from datetime import UTC, datetime

import pytest

from resourcesync.destination.changes.intervals import (
    OVERLAP,
    ChangeListSpan,
    ListPrefix,
    advance_checkpoint,
    chain,
    check_announced,
    count_old_entries,
)
from resourcesync.errors import SourceUnavailableError
from resourcesync.model.entries import Change, Header, Resource
from resourcesync.model.timestamps import DAY, from_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability, ChangeKind

NOON = to_microseconds(datetime(2026, 1, 1, 12, tzinfo=UTC))
HOUR = 3_600_000_000


def span(
    name: str, from_: int | None, until: int | None = None, *, announced: bool = False
) -> ChangeListSpan:
    return ChangeListSpan(uri=name, from_=from_, until=until, announced=announced)


def names(spans: tuple[ChangeListSpan, ...]) -> list[str]:
    return [each.uri for each in spans]


def change(uri: str, moment: int | None) -> Change:
    time = None if moment is None else from_microseconds(moment)
    return Change(kind=ChangeKind.UPDATED, time=time, resource=Resource(uri=uri))


def test_a_list_that_ends_exactly_at_t_is_read_since_both_ends_belong_to_it() -> None:
    assert names(chain([span("a", 0, NOON)], NOON).lists) == ["a"]
    assert names(chain([span("a", 0, NOON - OVERLAP)], NOON).lists) == ["a"]
    assert names(chain([span("a", 0, NOON - OVERLAP - 1)], NOON).lists) == []


def test_overlapping_lists_are_all_read_and_nothing_behind_a_hole() -> None:
    holed = [
        *(span("a", 0, NOON), span("c", NOON + HOUR, NOON + 2 * HOUR)),
        span("d", NOON + 2 * HOUR),
    ]
    for spans, since, read, reaches_back in (
        (holed, NOON, ["a"], False),
        ([span("a", 0, NOON), span("b", NOON - HOUR)], 0, ["a", "b"], True),
    ):
        found = chain(spans, since)
        assert (names(found.lists), found.reaches_back) == (read, reaches_back)


def header(from_: int, until: int | None = None) -> Header:
    return Header(
        capability=Capability.CHANGE_LIST,
        from_=from_microseconds(from_),
        until=None if until is None else from_microseconds(until),
    )


def test_a_list_with_another_interval_than_announced_is_a_mixed_copy() -> None:
    announced = span("a", HOUR, 2 * HOUR, announced=True)

    check_announced(announced, header(HOUR, 2 * HOUR))
    for wrong in (header(0, 2 * HOUR), header(HOUR, 3 * HOUR), header(HOUR)):
        with pytest.raises(SourceUnavailableError) as caught:
            check_announced(announced, wrong)
        assert caught.value.code == "mixed-copies"


def test_t_never_goes_back_and_never_far_into_the_future() -> None:
    assert advance_checkpoint(NOON, until=HOUR, last=None, now=NOON) == NOON
    assert advance_checkpoint(5, until=NOON * 3, last=7, now=NOON) == 7
    assert advance_checkpoint(0, until=NOON + DAY, last=None, now=NOON) == NOON + DAY


def test_the_prefix_tells_order_kind_time_and_content_apart() -> None:
    def digest(*changes: Change) -> str:
        prefix = ListPrefix()
        for each in changes:
            prefix.add(each)
        return prefix.hexdigest()

    a, b = change("a", 1), change("b", 1)
    deleted = Change(kind=ChangeKind.DELETED, time=a.time, resource=a.resource)

    assert len({digest(a, b), digest(b, a), digest(a), digest(deleted), digest()}) == 5
    assert digest(a) != digest(change("a", 2)) != digest(change("a", None))


def test_where_times_are_in_no_order_the_order_tells_nothing() -> None:
    moments = (NOON - HOUR, None, NOON - 2 * HOUR, NOON - HOUR)

    assert count_old_entries([change("u", moment) for moment in moments], NOON) == 0
