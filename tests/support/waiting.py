"""Waits for events, never for a time."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def once(event: Callable[[], object], act: Callable[[], object]) -> Iterator[None]:

    def wait_and_act() -> None:
        wait_until(event)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def wait_until(event: Callable[[], object], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not event():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)
