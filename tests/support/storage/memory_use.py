"""Memory that a block of a test takes, as Python counts it."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def memory_use() -> Iterator[Callable[[], int]]:
    gc.collect()
    tracemalloc.start()

    def used() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    before = tracemalloc.get_traced_memory()[0]
    try:
        yield used
    finally:
        tracemalloc.stop()
