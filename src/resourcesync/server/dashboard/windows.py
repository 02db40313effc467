"""The windows of time that pages tell of, and the intervals that plots divide them into."""

from datetime import UTC, datetime, timedelta
from typing import Final

from resourcesync.server.dashboard.markup import Markup, address, tag

WINDOWS: Final = (1, 7, 30)
"""The days that may be looked at."""
DEFAULT_DAYS: Final = 7

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
INTERVALS: Final = {1: HOUR, 7: 6 * HOUR, 30: DAY}
"""How long the intervals of a window are."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def interval_start(moment: datetime, step: timedelta) -> datetime:
    """Return when the interval begins that a moment lies in."""
    return moment - (moment - _EPOCH) % step


def interval_name(days: int) -> str:
    """Return how long an interval of a window is, in words."""
    return {1: "hour", 7: "6 hours", 30: "day"}[days]


def window_links(page: str, days: int, **query: str) -> Markup:
    """Return the links to a page for each window."""
    links = [
        tag(
            "a",
            "24 hours" if number == 1 else f"{number} days",
            href=address(page, **query, days=number),
            aria_current="true" if number == days else None,
        )
        for number in WINDOWS
    ]
    return tag("nav", links, class_="choice", aria_label="Window of time")
