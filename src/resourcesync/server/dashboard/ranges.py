"""Ranges of time of a mirror's page, and the intervals of their charts.

A chart begins when its mirror began, so the intervals follow from the time that it shows, not from
the range that was chosen.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import msgspec

from resourcesync.server.dashboard.markup import Markup, address, tag

_MOST_INTERVALS: Final = 32
_STEPS: Final = (
    (timedelta(minutes=1), "minute"),
    (timedelta(minutes=2), "2 minutes"),
    (timedelta(minutes=5), "5 minutes"),
    (timedelta(minutes=15), "15 minutes"),
    (timedelta(hours=1), "hour"),
    (timedelta(hours=2), "2 hours"),
    (timedelta(hours=6), "6 hours"),
    (timedelta(days=1), "day"),
    (timedelta(days=7), "week"),
    (timedelta(days=30), "30 days"),
    (timedelta(days=365), "365 days"),
)


class TimeRange(msgspec.Struct, frozen=True):
    """A range of time up to now.

    Attributes:
        key: Its name in addresses.
        name: Its name on the page.
        length: Its length; ``None`` for all that is recorded.
    """

    key: str
    name: str
    length: timedelta | None


RANGES: Final = (
    TimeRange("1h", "1 hour", timedelta(hours=1)),
    TimeRange("24h", "24 hours", timedelta(days=1)),
    TimeRange("7d", "7 days", timedelta(days=7)),
    TimeRange("30d", "30 days", timedelta(days=30)),
    TimeRange("all", "all", None),
)
DEFAULT_RANGE: Final = RANGES[2]


def parse_range(fields: Mapping[str, str]) -> TimeRange:
    """Return the range of a query; the default one if none is named."""
    key = fields.get("range")
    return next((found for found in RANGES if found.key == key), DEFAULT_RANGE)


def range_links(page: str, chosen: TimeRange, **query: str) -> Markup:
    """Return the links to a page for each range."""
    links = [
        tag(
            "a",
            found.name,
            href=address(page, **query, range=found.key),
            aria_current="true" if found == chosen else None,
        )
        for found in RANGES
    ]
    return tag("nav", links, class_="choice", aria_label="Range of time")


def interval_of(span: timedelta) -> timedelta:
    """Return the length of the intervals of a chart of this span."""
    return next((step for step, _ in _STEPS if span / step <= _MOST_INTERVALS), _STEPS[-1][0])


def interval_text(step: timedelta) -> str:
    """Return the length of an interval, in words."""
    return dict(_STEPS)[step]
