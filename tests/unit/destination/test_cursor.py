"""The cursor, and the judgement whether lists continue what was processed."""

from io import BytesIO
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.destination.changes.intervals import ChangeHistory, ReadList
from resourcesync.destination.cursor import Cursor, Following, Gap, Phase, Rewritten, Stale, judge
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.lists.absence_proof import CompleteReading, ListMoments
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


OTHER = OPEN._replace(uri="another")
SHORTER = replace(same(OPEN, entries=1), is_intact=False)
DAMAGED = replace(same(OPEN), is_intact=False)
NEWS = ReadList(CLOSED, None, has_news=True)
LAST = {"has_last_change": True}
LATE = {"starts_in_time": False}

JUDGED: dict[str, tuple[Cursor, ChangeHistory, Following | Rewritten | Gap | Stale]] = {
    "a list that grew": (at(OPEN), read(same(OPEN, entries=5)), Following()),
    "it was closed": (at(OPEN), read(same(OPEN, until=20), new(NEXT)), Following()),
    "behind a closed list": (at(CLOSED), read(same(CLOSED), new(NEXT)), Following()),
    "it was dropped; the next begins where it ended": (at(CLOSED), read(new(NEXT)), Following()),
    "an unchanged index": (at(OPEN), read(is_unchanged_head=True), Following()),
    "no list since the Resource List": (at(), read(new(NEXT)), Following()),
    "a list that always has the last day": (at(OPEN), read(new(NEXT), **LAST), Following()),
    "it begins too late": (at(OPEN), read(new(NEXT), **LAST, **LATE), Following()),
    "merged lists": (at(CLOSED), read(new(OPEN._replace(from_=5)), **LAST), Following()),
    "all open lists": (at(OPEN, OTHER), read(same(OPEN), same(OTHER)), Following()),
    "sorted, merged, or restored": (at(OPEN), read(DAMAGED), Rewritten("open")),
    "with the last change": (at(OPEN), read(DAMAGED, **LAST), Rewritten("open")),
    "the list is gone, the next begins elsewhere": (at(OPEN), read(new(NEXT)), Rewritten("open")),
    "no list": (at(OPEN), read(), Rewritten("open")),
    "an older one was changed": (
        *(at(OPEN), read(same(OPEN), replace(same(CLOSED), is_intact=False))),
        Rewritten("closed"),
    ),
    "it moved": (
        *(at(OPEN), read(replace(same(OPEN, uri="moved"), is_intact=False), **LAST)),
        Rewritten("moved"),
    ),
    "news that may be older": (at(OPEN), read(NEWS, same(OPEN)), Rewritten("closed")),
    "such news and the last change": (
        at(OPEN),
        read(NEWS, same(OPEN), **LAST),
        Rewritten("closed"),
    ),
    "a closed list with a later end": (
        at(CLOSED),
        read(same(CLOSED, until=25)),
        Rewritten("closed"),
    ),
    "a closed list that is open": (at(CLOSED), read(same(CLOSED, until=None)), Rewritten("closed")),
    "one of two open lists": (at(OPEN, OTHER), read(same(OPEN)), Rewritten("another")),
    "the last change proves nothing of a list that is gone": (
        *(at(OPEN, OTHER), read(same(OPEN), **LAST)),
        Rewritten("another"),
    ),
    "nor where another list has it": (at(OPEN, OTHER), read(new(NEXT), **LAST), Rewritten("open")),
    "another open list behind an unchanged index": (
        *(at(OPEN), read(new(OPEN._replace(from_=18)), is_unchanged_head=True)),
        Rewritten("open"),
    ),
    "no list was read and all begin too late": (at(), read(new(NEXT), **LATE), Gap()),
    "all begin too late": (at(OPEN), read(new(NEXT), **LATE), Gap()),
    "a hole between lists": (at(OPEN), read(same(OPEN), is_contiguous=False, **LAST), Gap()),
    "lists report less than was processed": (at(OPEN), read(SHORTER, reported=12), Stale(12)),
    "as much": (at(OPEN), read(SHORTER, reported=15), Rewritten("open")),
    "nobody knows how much": (at(OPEN), read(SHORTER, reported=None), Rewritten("open")),
    "the Resource List proves that they are not stale": (
        *(at(OPEN, moments=ListMoments(head=15)), read(SHORTER, reported=12)),
        Rewritten("open"),
    ),
}


@pytest.mark.parametrize(("cursor", "history", "expected"), JUDGED.values(), ids=JUDGED)
def test_lists_continue_what_was_processed_only_where_something_proves_it(
    cursor: Cursor, history: ChangeHistory, expected: Following | Rewritten | Gap | Stale
) -> None:
    assert judge(cursor, history) == expected


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
def test_a_cursor_whose_baseline_is_due_forgets_nothing_worse(cursor: Cursor) -> None:
    due, repaired = cursor.with_baseline_due(), cursor.repaired()

    assert due.is_baseline_due
    assert due.is_incomplete
    assert repaired.is_baseline_due
    assert repaired.is_incomplete is cursor.is_incomplete
    for later in (due, repaired):
        assert cursor.phase is not Phase.ROLLED_BACK or later == cursor


@pytest.mark.parametrize("is_correction", [True, False])
def test_after_a_move_the_newest_list_counts_that_was_read_though_it_proved_nothing(
    *, is_correction: bool
) -> None:
    older, newer = (ListMoments(head=head) for head in (10, 20))
    for last, complete in ((newer, older), (older, newer)):
        cursor = Cursor(moments=last, complete_reading=CompleteReading(moments=complete))
        moved = cursor.after_move(is_correction=is_correction)
        assert moved.complete_reading.moments == newer
        assert moved.is_baseline_due
