"""Long passes over rows, in which somebody may still ask for the run to stop."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

from resourcesync.ports import Clock

_CHECK_INTERVAL: Final = 256
T = TypeVar("T")


def check_cancelled(
    items: Iterable[T], clock: Clock, *, every: int = _CHECK_INTERVAL
) -> Iterator[T]:
    """Yield items, and ask for the time now and then: a clock may end a run by what it raises.

    Args:
        items: Rows, or what was decided about them.
        clock: Asked before every group of items.
        every: How many items one group has.
    """
    rest = iter(items)
    while group := list(islice(rest, every)):
        clock.monotonic()
        yield from group
