"""Long work can be stopped at the places where it checks its token."""

import os
import signal
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resourcesync.errors import BudgetError, StoppedError
from resourcesync.ports.cancellation import CancelToken
from tests.support.in_memory import ManualClock
from tests.support.waiting import NoticedClock, once


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


def test_a_request_is_raised_again_when_it_got_lost_but_not_while_it_is_on_its_way() -> None:
    cancel = CancelToken(ManualClock())
    cancel.cancel()
    assert cancel.is_cancelled

    with pytest.raises(StoppedError) as first:
        cancel.raise_if_cancelled()
    with pytest.raises(StoppedError) as again:
        cancel.raise_if_cancelled()
    assert first.value is again.value
    try:
        cancel.raise_if_cancelled()
    except StoppedError:
        cancel.raise_if_cancelled()
    cancel.reset()

    cancel.raise_if_cancelled()


def test_a_request_comes_before_the_end_of_the_time() -> None:
    clock = ManualClock()
    cancel = CancelToken(clock)
    with cancel.within(5):
        clock.sleep(6)
        with pytest.raises(BudgetError):
            cancel.raise_if_cancelled()
        cancel.cancel()
        with pytest.raises(StoppedError) as error:
            cancel.raise_if_cancelled()
    assert error.value.code == "stopped"
    assert cancel.is_cancelled


def test_a_wait_ends_soon_after_another_thread_requests_it() -> None:
    clock = NoticedClock()
    cancel = CancelToken(clock)
    began = time.monotonic()

    with once(clock.is_waited_for.wait, cancel.cancel), pytest.raises(StoppedError):
        cancel.wait(60)
    assert time.monotonic() - began < 10


def test_a_wait_ends_soon_after_a_signal_whose_handler_requests_it() -> None:
    clock = NoticedClock()
    cancel = CancelToken(clock)
    former = signal.signal(signal.SIGUSR1, lambda *_: cancel.cancel())
    began = time.monotonic()

    def signalled() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)

    try:
        with once(clock.is_waited_for.wait, signalled), pytest.raises(StoppedError):
            cancel.wait(60)
    finally:
        signal.signal(signal.SIGUSR1, former)
    assert time.monotonic() - began < 10


def test_a_wait_whose_time_is_over_ends_without_an_error_while_clean_up_runs() -> None:
    clock = ManualClock()
    cancel = CancelToken(clock)
    with cancel.within(1):
        try:
            cancel.wait(5)
        except BudgetError:
            cancel.wait(5)
    assert clock.monotonic() < 5
