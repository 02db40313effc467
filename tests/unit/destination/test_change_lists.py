"""Which Change Lists are read, and how far they move the checkpoint."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from resourcesync.destination.changes.times import (
    DAY,
    ChangeListSpan,
    LatestChangeTime,
    ListPrefix,
    advance_checkpoint,
    chain,
    check_announced,
    count_old_entries,
    without_borrowed_time,
)
from resourcesync.destination.changes.window import OVERLAP
from resourcesync.errors import SourceUnavailableError
from resourcesync.model.capabilities import Header
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import from_microseconds, to_microseconds
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


def test_lists_that_ended_before_t_are_not_read() -> None:
    found = chain(
        [span("old", 0, NOON - HOUR), span("last", NOON - HOUR, NOON), span("open", NOON)], NOON
    )

    assert names(found.lists) == ["last", "open"]
    assert found.reaches_back


def test_a_list_that_ends_exactly_at_t_is_read_since_both_ends_belong_to_it() -> None:
    assert names(chain([span("a", 0, NOON)], NOON).lists) == ["a"]
    assert names(chain([span("a", 0, NOON - OVERLAP)], NOON).lists) == ["a"]
    assert names(chain([span("a", 0, NOON - OVERLAP - 1)], NOON).lists) == []


def test_lists_that_start_after_t_do_not_reach_back() -> None:
    assert not chain([span("late", NOON + 1)], NOON).reaches_back
    assert chain([span("just", NOON)], NOON).reaches_back


def test_nothing_behind_a_hole_is_read() -> None:
    found = chain(
        [span("a", 0, NOON), span("c", NOON + HOUR, NOON + 2 * HOUR), span("d", NOON + 2 * HOUR)],
        NOON,
    )

    assert names(found.lists) == ["a"]
    assert not found.reaches_back


def test_overlapping_lists_are_all_read() -> None:
    found = chain([span("a", 0, NOON), span("b", NOON - HOUR)], 0)

    assert names(found.lists) == ["a", "b"]
    assert found.reaches_back


def test_the_chain_is_ordered_by_time_whatever_the_order_of_the_index() -> None:
    found = chain([span("c", 2 * HOUR), span("a", 0, HOUR), span("b", HOUR, 2 * HOUR)], 0)

    assert names(found.lists) == ["a", "b", "c"]


def test_a_list_that_does_not_say_when_it_begins_stands_after_the_one_before_it() -> None:
    closed = [span("a", 0, HOUR), span("x", None), span("b", HOUR, 2 * HOUR), span("y", None)]
    shuffled = [span("b", HOUR), span("y", None), span("a", 0, HOUR)]

    assert names(chain(closed, 0).lists) == ["a", "x", "b", "y"]
    assert names(chain(shuffled, 0).lists) == ["a", "b", "y"]


def test_a_list_that_does_not_say_when_it_begins_is_never_left_out() -> None:
    found = chain([span("a", 0, HOUR), span("x", None), span("b", HOUR, 2 * HOUR)], NOON)

    assert names(found.lists) == ["x"]
    assert found.reaches_back


def test_no_list_after_t_means_nothing_new_and_no_hole() -> None:
    found = chain([span("a", 0, HOUR)], NOON)

    assert found.lists == ()
    assert found.reaches_back


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


def test_a_list_that_was_closed_since_the_index_was_read_is_fine() -> None:
    check_announced(span("a", HOUR, announced=True), header(HOUR, 2 * HOUR))


def test_an_index_that_announces_nothing_is_believed_anything() -> None:
    check_announced(span("a", None), header(HOUR, 2 * HOUR))


def test_times_of_resources_move_t_only_where_no_change_has_its_own() -> None:
    def moved(uri: str, moment: int) -> Change:
        at = from_microseconds(moment)
        return replace(change(uri, moment), resource=Resource(uri=uri, lastmod=at))

    both, borrowed = LatestChangeTime(NOON, NOON), LatestChangeTime(NOON, NOON)
    for item in (moved("a", NOON + 3 * HOUR), change("b", NOON + HOUR), change("c", None)):
        both.add(item)
    for item in (moved("a", NOON + 3 * HOUR), change("far", NOON + 3 * DAY)):
        borrowed.add(item)

    assert both.moment == NOON + HOUR
    assert borrowed.moment == NOON
    earlier = LatestChangeTime(NOON - DAY, NOON)
    earlier.add(moved("a", NOON - HOUR))
    assert earlier.moment == NOON - HOUR
    assert LatestChangeTime(NOON, NOON).moment == NOON


def test_only_times_of_their_own_are_told_of_changes_as_the_clock_of_the_lists_has_them() -> None:
    latest = LatestChangeTime(NOON, NOON)
    ahead = from_microseconds(NOON + 3 * HOUR)
    latest.add(replace(change("a", NOON + 3 * HOUR), resource=Resource(uri="a", lastmod=ahead)))
    assert (latest.change_time, latest.reported) == (None, None)

    latest.add(change("b", NOON + HOUR))
    assert (latest.change_time, latest.reported) == (NOON + HOUR, NOON + HOUR)
    late = LatestChangeTime(NOON, NOON)
    late.add(change("c", NOON - HOUR))
    assert (late.change_time, late.reported) == (NOON, NOON - HOUR)


def test_what_is_missing_before_t_is_no_hole() -> None:
    closed = [span("a", 0, NOON - 1), span("b", NOON)]

    assert names(chain(closed, NOON).lists) == ["a", "b"]
    assert chain(closed, NOON).reaches_back
    assert not chain(closed, NOON - 2).reaches_back


def test_t_is_the_end_of_a_closed_list_and_the_last_change_of_an_open_one() -> None:
    assert advance_checkpoint(0, until=HOUR, last=5, now=NOON) == HOUR
    assert advance_checkpoint(0, until=None, last=5, now=NOON) == 5
    assert advance_checkpoint(7, until=None, last=None, now=NOON) == 7


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


@pytest.mark.parametrize(
    ("kind", "from_", "lastmod", "is_told"),
    [
        (ChangeKind.DELETED, None, NOON, False),
        (ChangeKind.DELETED, None, NOON - HOUR, True),
        (ChangeKind.DELETED, None, None, True),
        (ChangeKind.DELETED, NOON - HOUR, NOON, True),
        (ChangeKind.UPDATED, None, NOON, True),
    ],
)
def test_a_deletion_that_borrows_the_time_of_its_resource_tells_none(
    kind: ChangeKind, from_: int | None, lastmod: int | None, is_told: bool
) -> None:
    moment = None if lastmod is None else from_microseconds(lastmod)
    told = Change(
        kind=kind, time=from_microseconds(NOON), resource=Resource(uri="a", lastmod=moment)
    )

    found = without_borrowed_time(told, span("list", from_))

    assert found.time == (told.time if is_told else None)
    assert found.resource == told.resource


def test_what_stands_before_a_change_older_than_t_is_older_too() -> None:
    def old(*moments: int | None) -> int:
        return count_old_entries([change("u", moment) for moment in moments], NOON)

    before, after = NOON - HOUR, NOON + HOUR

    assert old(before, None, before + 1, None, after, None) == 3
    assert old(None, None, before) == 3
    assert old(None, None) == old(None, after) == old() == 0
    assert old(None, NOON) == 0  # it may be new
    assert old(None, NOON - 1) == 2


def test_where_times_are_in_no_order_the_order_tells_nothing() -> None:
    moments = (NOON - HOUR, None, NOON - 2 * HOUR, NOON - HOUR)

    assert count_old_entries([change("u", moment) for moment in moments], NOON) == 0


def test_a_time_that_may_be_the_one_of_the_resource_says_nothing_of_the_order() -> None:
    moment = from_microseconds(NOON - HOUR)
    resource = Resource(uri="u", lastmod=moment)
    borrowed = Change(kind=ChangeKind.UPDATED, time=moment, resource=resource)

    assert count_old_entries([change("v", None), borrowed], NOON) == 0
