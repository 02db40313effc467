"""Times as resync has them: seconds since 1970, and W3C Datetimes in UTC."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from resourcesync.app import machine
from resourcesync.model.timestamps import EPOCH, format_w3c, from_microseconds, parse_w3c

Timestamp = int | float
"""Seconds since 1970-01-01T00:00:00Z; an ``int`` if there is no fraction."""

_MILLION: Final = 1_000_000
_SECOND: Final = timedelta(seconds=1)
_ZONE: Final = re.compile(r"(?:Z|[+-][0-9]{2}:[0-9]{2})\Z")


def now() -> Timestamp:
    """Return the present time."""
    return machine.system_clock().now().timestamp()


def from_moment(moment: datetime | None) -> Timestamp | None:
    """Return a moment in seconds; ``None`` for none."""
    if moment is None:
        return None
    seconds = (moment - EPOCH) // _SECOND
    # The sum that resync computes, to the last digit: programs compare and store it.
    return seconds + moment.microsecond / _MILLION if moment.microsecond else seconds


def to_moment(timestamp: Timestamp | None) -> datetime | None:
    """Return the moment of a timestamp, to the microsecond; ``None`` for none.

    Raises:
        ValueError: It is before the year 1 or after the year 9999.
    """
    if timestamp is None:
        return None
    try:
        return from_microseconds(round(timestamp * _MILLION))
    except OverflowError as error:
        raise ValueError(f"out of range: {timestamp}") from error


def str_to_datetime(s: str | None, context: str = "datetime") -> Timestamp | None:
    """Return the time that a W3C Datetime names; ``None`` for ``None``.

    Args:
        s: The text; a time of the day needs its zone.
        context: Name of the value, for messages.

    Raises:
        ValueError: It is no W3C Datetime.
    """
    if s is None:
        return None
    if not s:
        raise ValueError(f"Attempt to set empty {context}")
    if "T" in s and not _ZONE.search(s):
        raise ValueError(f"{context} has no time zone: {s[:64]!r}")
    return from_moment(parse_w3c(s).replace(fold=0))


def datetime_to_str(
    dt: Timestamp | str | datetime | None = "now", no_fractions: bool = False
) -> str | None:
    """Return a time as a W3C Datetime in UTC; ``None`` for ``None``.

    Args:
        dt: Seconds since 1970; ``now`` for the present time.
        no_fractions: True to cut the fraction of a second.

    Raises:
        ValueError: It is out of range.
    """
    if dt is None:
        return None
    if isinstance(dt, datetime):
        moment = dt.replace(tzinfo=UTC) if dt.tzinfo is None else dt
    else:
        found = to_moment(now() if isinstance(dt, str) else dt)
        assert found is not None, "only None has no moment"
        moment = found
    return format_w3c(moment.replace(microsecond=0) if no_fractions else moment)
