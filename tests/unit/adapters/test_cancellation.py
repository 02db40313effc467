"""Long work can be stopped at the places where it checks its token."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.errors import StoppedError
from resourcesync.ports import CancelToken
from tests.support.in_memory import ManualClock


@given(st.integers(min_value=1, max_value=30), st.integers(min_value=1, max_value=10))
def test_a_pass_ends_at_the_first_group_after_the_request(after: int, every: int) -> None:
    cancel, taken = CancelToken(ManualClock()), list[int]()

    def numbers() -> Iterator[int]:
        for number in range(10_000):
            if number == after:
                cancel.cancel()
            yield number

    with pytest.raises(StoppedError):
        taken.extend(cancel.checked(numbers(), every=every))
    assert len(taken) <= after + every
