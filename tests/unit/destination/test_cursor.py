"""The cursor, and the judgement whether lists continue what was processed."""

from io import BytesIO
from operator import attrgetter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.destination.changes.times import ChangeHistory, ReadList
from resourcesync.destination.cursor import Cursor, Following, Gap, Phase, Rewritten, Stale, judge
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.lists.proof import ListMoments
from resourcesync.mirror_state.rows import ProcessedDocument

OPEN = ProcessedDocument("open", 10, None, 2, "digest", "", "")
CLOSED = ProcessedDocument("closed", 10, 20, 2, "digest", "", "")
NEXT = ProcessedDocument("next", 20, None, 1, "other", "", "")


def read(*lists: ReadList, **values: Any) -> ChangeHistory:
    history = ChangeHistory(
        head="head",
        sorter=ExternalSorter(key=attrgetter("uri"), dump=repr, load=repr, spill=BytesIO),  # type: ignore[arg-type]
        checkpoint=30,
        list_clock=30,
        reported=30,
        lists=lists,
        starts_in_time=True,
        is_contiguous=True,
        change_count=1,
        has_undated=False,
        documents=(),
        last_changes=(),
        has_last_change=False,
        is_resource_clock_ahead=False,
        is_unchanged_head=False,
        is_of_dump=False,
        archive="",
    )
    return replace(history, **values)


def at(*processed: ProcessedDocument, **values: Any) -> Cursor:
    return replace(Cursor(checkpoint=15, list_clock=15, processed=processed), **values)


def same(done: ProcessedDocument, **now: Any) -> ReadList:
    return ReadList(done._replace(**now), done)


def new(record: ProcessedDocument) -> ReadList:
    return ReadList(record, None)


@pytest.mark.parametrize(
    ("cursor", "history"),
    [
        (at(OPEN), read(same(OPEN, entries=5))),  # it grew
        (at(OPEN), read(same(OPEN, until=20), new(NEXT))),  # it was closed
        (at(CLOSED), read(same(CLOSED), new(NEXT))),
        (at(CLOSED), read(new(NEXT))),  # it was dropped; the next one begins where it ended
        (at(OPEN), read(is_unchanged_head=True)),
        (at(), read(new(NEXT))),  # no list was processed since the Resource List
        (at(OPEN), read(new(NEXT), has_last_change=True)),  # a list that always has the last day
        (at(OPEN), read(new(NEXT), has_last_change=True, starts_in_time=False)),
        (at(CLOSED), read(new(OPEN._replace(from_=5)), has_last_change=True)),  # merged lists
    ],
)
def test_a_processed_prefix_a_chain_or_the_last_change_proves_that_lists_continue(
    cursor: Cursor, history: ChangeHistory
) -> None:
    assert judge(cursor, history) == Following()


@pytest.mark.parametrize(
    "history",
    [
        read(replace(same(OPEN), is_intact=False)),  # sorted, merged, or restored
        read(replace(same(OPEN), is_intact=False), has_last_change=True),
        read(new(NEXT)),  # the list is gone, and the next one begins elsewhere
        read(),
        read(same(OPEN), replace(same(CLOSED), is_intact=False)),  # an older one was changed
        read(replace(same(OPEN, uri="moved"), is_intact=False), has_last_change=True),
        read(ReadList(CLOSED, None, has_news=True), same(OPEN)),  # that may be older than these
        read(ReadList(CLOSED, None, has_news=True), same(OPEN), has_last_change=True),
    ],
)
def test_what_nothing_proves_was_rewritten(history: ChangeHistory) -> None:
    assert isinstance(judge(at(OPEN), history), Rewritten)


def test_a_closed_list_with_another_end_was_rewritten() -> None:
    assert judge(at(CLOSED), read(same(CLOSED, until=25))) == Rewritten("closed")
    assert judge(at(CLOSED), read(same(CLOSED, until=None))) == Rewritten("closed")


def test_all_open_lists_must_be_there() -> None:
    other = OPEN._replace(uri="another")

    assert judge(at(OPEN, other), read(same(OPEN))) == Rewritten("another")
    assert judge(at(OPEN, other), read(same(OPEN), same(other))) == Following()


def test_the_last_change_proves_nothing_of_another_list_that_is_gone() -> None:
    other = OPEN._replace(uri="another")

    for history in (read(same(OPEN), has_last_change=True), read(new(NEXT), has_last_change=True)):
        assert isinstance(judge(at(OPEN, other), history), Rewritten)


def test_an_open_list_that_another_one_replaced_behind_an_unchanged_index_was_rewritten() -> None:
    history = read(new(OPEN._replace(from_=18)), is_unchanged_head=True)

    assert judge(at(OPEN), history) == Rewritten("open")


@pytest.mark.parametrize("processed", [(), (OPEN,)])
def test_lists_that_begin_too_late_leave_a_gap(processed: tuple[ProcessedDocument, ...]) -> None:
    assert judge(at(*processed), read(new(NEXT), starts_in_time=False)) == Gap()


def test_a_hole_between_lists_is_a_gap_whatever_else_they_have() -> None:
    history = read(same(OPEN), is_contiguous=False, has_last_change=True)

    assert judge(at(OPEN), history) == Gap()


def test_lists_that_report_less_than_was_processed_are_stale() -> None:
    shorter = replace(same(OPEN, entries=1), is_intact=False)

    assert judge(at(OPEN), read(shorter, reported=12)) == Stale(12)
    assert judge(at(OPEN), read(shorter, reported=15)) == Rewritten("open")
    assert judge(at(OPEN), read(shorter, reported=None)) == Rewritten("open")
    assert judge(at(OPEN, moments=ListMoments(head=15)), read(shorter, reported=12)) == Rewritten(
        "open"
    )


def test_the_cursor_stands_behind_the_open_lists_or_the_newest_closed_one() -> None:
    older = CLOSED._replace(from_=1, until=10)

    assert at().after(read(new(older), new(CLOSED))).processed == (CLOSED,)
    assert at().after(read(new(CLOSED), new(NEXT))).processed == (NEXT,)
    other = NEXT._replace(uri="another")
    assert at().after(read(new(NEXT), new(other))).processed == (NEXT, other)


def test_what_was_not_requested_behind_an_unchanged_head_stays() -> None:
    other = OPEN._replace(uri="another")
    grown = same(OPEN, entries=3)

    after = at(OPEN, other).after(read(grown, is_unchanged_head=True))

    assert set(after.processed) == {grown.record, other}


CURSORS = st.builds(
    Cursor,
    phase=st.sampled_from(Phase),
    checkpoint=st.none() | st.integers(0, 9),
    list_clock=st.none() | st.integers(0, 9),
    processed=st.sampled_from([(), (OPEN,), (CLOSED,), (OPEN, NEXT)]),
    last_changes=st.sampled_from([(), (("a", 1),), (("a", 1), ("b", None))]),
    positions=st.dictionaries(st.text(), st.integers(0, 9)),
)


@given(CURSORS)
def test_a_cursor_is_read_as_it_was_stored(cursor: Cursor) -> None:
    assert msgspec.json.decode(msgspec.json.encode(cursor), type=Cursor) == cursor


@given(CURSORS)
def test_a_cursor_whose_baseline_is_due_forgets_nothing_worse(cursor: Cursor) -> None:
    due, repaired = cursor.with_baseline_due(), cursor.repaired()

    assert due.is_baseline_due
    assert due.is_incomplete
    assert repaired.is_baseline_due
    assert repaired.is_incomplete is cursor.is_incomplete
    for later in (due, repaired):
        assert cursor.phase is not Phase.ROLLED_BACK or later == cursor
