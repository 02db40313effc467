"""When something is due again."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.errors import ConfigurationError
from resourcesync.watch.scheduler import Cron, Every, Now

_MONDAY = datetime(2026, 11, 16, tzinfo=UTC).timestamp()


class _Sharp(Random):
    """No jitter."""

    def uniform(self, a: float, _b: float) -> float:
        return a


def _next(line: str, last: datetime, now: datetime) -> datetime:
    at = now.timestamp()
    due = Cron(line).next_due(last.timestamp() - at, Now(at, 0.0), _Sharp())
    return now + timedelta(seconds=due)


@given(
    seconds=st.floats(1, 1e6),
    last=st.floats(0, 1e6),
    gone=st.floats(0, 1e7),
    dice=st.randoms(use_true_random=False),
)
def test_an_interval_is_kept_and_never_longer_than_its_jitter(
    seconds: float, last: float, gone: float, dice: Random
) -> None:
    now = Now(_MONDAY + gone, last + gone)

    due = Every(seconds).next_due(last, now, dice)

    least = max(last + seconds, now.steady)
    assert least <= due <= least + min(seconds * 0.1, 300.0)


@given(minute=st.integers(0, 59), hour=st.integers(0, 23), gone=st.integers(0, 200_000))
def test_a_line_of_crontab_names_the_minute_and_what_was_missed_is_due_now(
    minute: int, hour: int, gone: int
) -> None:
    last = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    now = last + timedelta(seconds=gone)

    due = _next(f"{minute} {hour} * * *", last, now)

    first = last.replace(hour=hour, minute=minute)
    first += timedelta(days=first <= last)
    assert due == max(first, now)


def test_a_clock_that_was_set_back_does_not_postpone_for_days() -> None:
    tomorrow, now = datetime(2030, 1, 1, tzinfo=UTC), datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    assert _next("0 * * * *", tomorrow, now) == datetime(2026, 11, 16, 13, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "line", ["", "* * * *", "61 * * * *", "a b c d e", "0 0 30 2 *", "0 0 * * * Mars/Base", "\0"]
)
def test_a_line_that_makes_no_sense_is_refused(line: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Cron(line)
    assert caught.value.hint
