"""The position in a log whose changes become visible in another order than that of their times."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.errors import DiscontinuityError
from resourcesync_elasticsearch import change_log
from resourcesync_elasticsearch.change_log import (
    LogPosition,
    ReportedEntry,
    advance_position,
    decode_position,
    narrow_start,
)

WINDOW = 50


class Event(NamedTuple):
    """A change: its time by the writer's clock, and when it can be seen."""

    at: int
    visible: int


EVENTS = st.lists(
    st.builds(lambda at, lag: Event(at, at + lag), st.integers(0, 400), st.integers(0, WINDOW)),
    max_size=30,
)


def poll(
    position: LogPosition, events: list[Event], now: int, skew: int
) -> tuple[LogPosition, set[str]]:
    """Read the log as `IndexChangeLog` does; the writer's clock is behind ours by ``skew``."""
    entries = [
        ReportedEntry(str(number), event.at)
        for number, event in enumerate(events)
        if event.visible <= now and event.at >= position.start
    ]
    newest = max((entry.logged for entry in entries), default=position.start)
    fresh = {entry.name for entry in entries} - position.seen
    boundary = min(newest, now + skew) - WINDOW
    return advance_position(position, entries, boundary=boundary, held=None), fresh


@given(EVENTS, st.lists(st.integers(0, 500), max_size=12), st.integers(0, 1000))
def test_each_change_is_told_once_however_late_it_is_seen(
    events: list[Event], polls: list[int], skew: int
) -> None:
    position, told = LogPosition(log="a"), list[str]()
    for now in [*sorted(polls), 1000]:
        position, fresh = poll(decode_position(position.encode()), events, now, skew)
        told += fresh

    assert sorted(told) == sorted(map(str, range(len(events))))


@given(EVENTS, st.integers(0, 400), st.integers(0, 400))
def test_what_is_held_back_is_seen_again(events: list[Event], start: int, held: int) -> None:
    told = [ReportedEntry(str(number), event.at) for number, event in enumerate(events)]
    after = advance_position(
        LogPosition(log="a", start=start), told, boundary=450, held=max(start, held)
    )

    assert after.start <= max(start, held)
    assert after.seen == {entry.name for entry in told if entry.logged >= after.start}


@given(st.lists(st.integers(0, 20), max_size=60), st.integers(0, 20))
def test_no_more_are_remembered_than_there_is_room_for(times: list[int], start: int) -> None:
    known = [ReportedEntry(str(number), at) for number, at in enumerate(times)]
    most, positions_most = 10, change_log.MAX_REMEMBERED
    try:
        setattr(change_log, "MAX_REMEMBERED", most)  # noqa: B010 - it is final elsewhere
        moment = narrow_start(known, start)
    finally:
        setattr(change_log, "MAX_REMEMBERED", positions_most)  # noqa: B010 - it is final elsewhere

    assert sum(entry.logged >= moment for entry in known) <= most
    assert moment == start or sum(entry.logged >= start for entry in known) > most


@pytest.mark.parametrize("text", ["", "17", "{}", "[]", '{"log": "a", "version": 2}', "\x00"])
def test_a_position_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(DiscontinuityError):
        decode_position(text)
