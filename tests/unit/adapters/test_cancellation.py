"""Long passes can be stopped at the places where the time is asked for."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.adapters.in_memory import ManualClock
from resourcesync.destination.budget import check_cancelled


class Counting(ManualClock):
    """A clock that counts how often it is asked, and raises when it was asked too often."""

    def __init__(self, most: int = 1_000_000) -> None:
        super().__init__()
        self.asked = 0
        self.most = most

    def monotonic(self) -> float:
        self.asked += 1
        if self.asked > self.most:
            raise KeyboardInterrupt
        return super().monotonic()


@given(st.lists(st.integers(), max_size=40), st.integers(min_value=1, max_value=10))
def test_every_item_is_given_in_order_and_the_time_asked_once_a_group(
    items: list[int], every: int
) -> None:
    clock = Counting()

    assert list(check_cancelled(items, clock, every=every)) == items
    assert clock.asked == -(-len(items) // every)


def test_what_the_clock_raises_ends_the_pass() -> None:
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        yield from range(10_000)

    with pytest.raises(KeyboardInterrupt):
        taken.extend(check_cancelled(numbers(), Counting(most=3), every=10))

    assert len(taken) <= 30
