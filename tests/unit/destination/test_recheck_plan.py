"""The plan of the rechecks: the pace of the walk, its period, its sample."""

from hypothesis import given
from hypothesis import strategies as st

from resourcesync.destination.lists.recheck_plan import (
    LIST_PERIOD,
    SITEMAP_PERIOD,
    base_period,
    first_state,
    pace,
    with_next_round,
    with_visit,
)
from resourcesync.mirror_state.rows import Copy, Fixity
from resourcesync.model.timestamps import DAY

HOUR = DAY // 24


@given(
    copies=st.integers(1, 2_000),
    intervals=st.lists(st.integers(HOUR // 4, 4 * HOUR), min_size=1, max_size=20),
)
def test_the_time_between_two_requests_is_at_most_the_period(
    copies: int, intervals: list[int]
) -> None:
    state = first_state(SITEMAP_PERIOD, 0)
    requested, now, turn, place = [0] * copies, 0, 0, 0
    while now < 3 * SITEMAP_PERIOD:
        now += intervals[turn % len(intervals)]
        turn += 1
        due, state = pace(state, copies, now)
        assert due <= max(1, copies // 20)
        for _ in range(due):
            gap = now - requested[place]
            assert gap <= SITEMAP_PERIOD + max(intervals) - min(intervals)
            requested[place] = now
            place = (place + 1) % copies
    assert min(requested) > 0


def test_seldom_pulls_request_a_twentieth_each_and_are_late_and_none_without_a_period() -> None:
    state = first_state(SITEMAP_PERIOD, 0)
    for day in range(1, 22):
        due, state = pace(state, 200, day * DAY)
        assert due == 10
    assert state.is_late
    assert pace(first_state(0, 0), 1_000, 30 * DAY)[0] == 0
    assert not first_state(0, 0).is_late


def test_the_default_is_a_week_for_a_sitemap_and_a_month_for_other_lists() -> None:
    assert base_period(None, is_sitemap=True) == SITEMAP_PERIOD
    assert base_period(None, is_sitemap=False) == LIST_PERIOD
    assert base_period(60.0, is_sitemap=True) == 60_000_000


@given(copies=st.integers(1, 1_000), rounds=st.integers(1, 5))
def test_a_hundredth_of_the_copies_without_validators_is_requested(
    copies: int, rounds: int
) -> None:
    state = with_next_round(first_state(SITEMAP_PERIOD, 0), 0)
    for _ in range(rounds):
        chosen = 0
        for number in range(copies):
            uri = f"{number:04}"
            copy = Copy(uri, uri, 1, "", "", 1, "", "", "1", Fixity.UNVERIFIED, 0)
            is_chosen, state = with_visit(state, copy)
            chosen += is_chosen
        state = with_next_round(state, 0)
        assert max(1, copies // 100) <= chosen <= copies // 100 + 1
