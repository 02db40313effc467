"""The plan of the rechecks: the pace of the walk, its period, its sample."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync.destination.lists.recheck_plan import (
    DAY,
    LIST_PERIOD,
    LONGEST_PERIOD,
    SITEMAP_PERIOD,
    base_period,
    first_state,
    pace,
    time_limit,
    with_base,
    with_next_round,
    with_result,
    with_visit,
)
from resourcesync.mirror_state.rows import Copy, Fixity

HOUR = DAY // 24


def copy(uri: str, etag: str = "") -> Copy:
    return Copy(uri, uri, 1, "", "", 1, etag, "", "1", Fixity.UNVERIFIED, 0)


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


def test_seldom_pulls_request_a_twentieth_each_and_are_late() -> None:
    state = first_state(SITEMAP_PERIOD, 0)
    for day in range(1, 22):
        due, state = pace(state, 200, day * DAY)
        assert due == 10
    assert state.is_late


def test_a_pause_of_a_year_is_not_caught_up_beyond_one_round() -> None:
    due, state = pace(first_state(SITEMAP_PERIOD, 0), 200, 365 * DAY)
    assert due == 10
    walked = 0
    for hour in range(1, 24 * 7):
        due, state = pace(state, 200, 365 * DAY + hour * HOUR)
        walked += due
    assert walked <= 2 * 200 + 10


def test_small_mirrors_wait_until_a_copy_is_due() -> None:
    state, walked = first_state(SITEMAP_PERIOD, 0), []
    for hour in range(1, 7 * 24 + 1):
        due, state = pace(state, 7, hour * HOUR)
        walked.append(due)
    assert set(walked) == {0, 1}
    assert sum(walked) == 7


def test_two_hundred_clean_rechecks_double_the_period_up_to_ninety_days() -> None:
    state, periods = first_state(SITEMAP_PERIOD, 0), []
    for _ in range(6):
        state = with_result(with_result(state, 199, 0), 1, 0)
        periods.append(state.period // DAY)
    assert periods == [14, 28, 56, 90, 90, 90]
    assert with_result(state, 50, 1).period == SITEMAP_PERIOD


def test_a_chosen_period_above_ninety_days_stays() -> None:
    state = with_result(first_state(200 * DAY, 0), 200, 0)
    assert state.period == 200 * DAY < 2 * LONGEST_PERIOD + 21 * DAY


def test_another_chosen_period_is_learnt_anew_where_the_walk_is() -> None:
    state = replace(first_state(SITEMAP_PERIOD, 0), after="b", clean=7, period=14 * DAY)
    assert with_base(state, SITEMAP_PERIOD) == state
    other = with_base(state, DAY)
    assert (other.period, other.clean, other.after) == (DAY, 0, "b")
    assert pace(other, 100, DAY // 2)[0] > 0, "what was due stays due"


def test_a_period_of_zero_requests_nothing() -> None:
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
            is_chosen, state = with_visit(state, copy(f"{number:04}"))
            chosen += is_chosen
        state = with_next_round(state, 0)
        assert max(1, copies // 100) <= chosen <= copies // 100 + 1


def test_a_copy_with_a_validator_is_always_requested() -> None:
    is_chosen, state = with_visit(first_state(SITEMAP_PERIOD, 0), copy("a", '"1"'))
    assert is_chosen
    assert (state.after, state.unvalidated) == ("a", 0)


def test_rechecks_have_a_tenth_of_the_time_between_pulls_or_of_the_limit_of_a_run() -> None:
    state = first_state(SITEMAP_PERIOD, 0)
    assert time_limit(state, DAY, None) == 8_640
    assert time_limit(state, DAY, 600) == 60
    assert time_limit(state, 0, 600) == 0
