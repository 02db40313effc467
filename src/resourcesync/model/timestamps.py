"""W3C Datetimes: the times of the specification, always aware and in UTC (§7)."""

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Annotated, Final

import msgspec

Microseconds = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000_000, le=253_402_300_799_999_999)]
"""A stored moment: microseconds since 1970-01-01T00:00:00Z, of the years 1 to 9999."""
ClockMicroseconds = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999_999)]
"""The same, by the clock of this machine: not before 1970."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_W3C: Final = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,30}))?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?)?)?)?"
)
SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
DAY: Final = 24 * 60 * MINUTE
"""A day, as the two before in microseconds."""
_LAST_ZONE: Final = DAY // 2
"""In the last time zone a day ends so much later than in UTC."""
_LAST_SECOND: Final = 253_402_300_799  # 9999-12-31T23:59:59Z
_LOOSE: Final = re.compile(
    r"([0-9]{4})([-/])([0-9]{1,2})\2([0-9]{1,2})"
    r"(?:[Tt ]([0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?)(?:[.,]([0-9]{1,30}))?)?"
    r" ?(?:([Zz]|UTC|GMT)|([+-][0-9]{2})(?::?([0-9]{2}))?)?"
)
_RFC_822: Final = re.compile(
    r"(?:[A-Za-z]{3,9},? )?([0-9]{1,2})[ -]([A-Za-z]{3})[a-z]{0,6}[ -]([0-9]{4})"
    r"(?: ([0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?)(?: ?(?:([A-Z]{1,3})|([+-][0-9]{2}):?([0-9]{2})))?)?"
)
_MONTHS: Final = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
_ZONES: Final = {
    **dict.fromkeys(("Z", "UT", "UTC", "GMT"), "Z"),
    "EST": "-05:00",
    "EDT": "-04:00",
    "CST": "-06:00",
    "CDT": "-05:00",
    "MST": "-07:00",
    "MDT": "-06:00",
    "PST": "-08:00",
    "PDT": "-07:00",
}
"""Names of time zones (RFC 822 §5.1)."""
_PLAIN_LENGTH: Final = len("2013-01-03T09:00:00Z")


def parse_w3c(text: str) -> datetime:
    """Return the moment that a W3C Datetime names, in UTC (§7).

    Missing parts mean the start: ``2013`` is 2013-01-01T00:00:00Z; its ``fold``, which means
    nothing in UTC, is 1 when no day was written. A time without a zone is read as UTC, as old
    Sources write it. Fractions finer than a microsecond are cut.

    Raises:
        ValueError: ``text`` is not a W3C Datetime, or names no moment (month 13, year 0000).
    """
    # The two forms that nearly every Source writes, recognized by their punctuation.
    # fromisoformat then accepts digits only, and newer Pythons hour 24, which W3C does not.
    if (
        (text[4::3] == "--T::Z" and len(text) == _PLAIN_LENGTH)
        or (text[4:20:3] == "--T::." and text[26:] == "Z")
    ) and text[11:13] != "24":
        return datetime.fromisoformat(text)
    match = _W3C.fullmatch(text)
    if match is None:
        raise ValueError(f"not a W3C Datetime: {text[:64]!r}")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    if day is None:
        return datetime(int(year), int(month or 1), 1, tzinfo=UTC, fold=1)
    local = datetime(
        int(year),
        int(month),
        int(day),
        int(hour or 0),
        int(minute or 0),
        int(second or 0),
        int((fraction or "0")[:6].ljust(6, "0")),
        tzinfo=_zone(zone),
    )
    try:
        return local.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"out of range: {text[:64]!r}") from error


def parse_loosely(text: str) -> datetime:
    """Return the moment that a text clearly names, though it is not a W3C Datetime.

    Databases and languages write a blank for ``T``, ``+0000``, ``+00`` or ``UTC`` for the zone, a
    lower-case ``z``, a comma before the fraction, slashes or single digits in the day; feeds write
    times as mail does (RFC 822). The zone of a mere day is ignored.
    """
    mail = _RFC_822.fullmatch(text)
    if mail is not None:
        return parse_w3c(_from_mail(mail))
    match = _LOOSE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a time: {text[:64]!r}")
    year, _, month, day, clock, fraction, utc, hours, minutes = match.groups()
    date = f"{year}-{month:0>2}-{day:0>2}"
    if clock is None:
        return parse_w3c(date)
    if fraction and clock.count(":") == 1:
        raise ValueError(f"a fraction of a minute: {text[:64]!r}")
    zone = "Z" if utc else f"{hours}:{minutes or '00'}" if hours else ""
    fine = f".{fraction}" if fraction else ""
    return parse_w3c(f"{date}T{_padded(clock)}{fine}{zone}")


def _padded(clock: str) -> str:
    clock = clock if clock[2] == ":" else f"0{clock}"
    return f"{clock[:6]}59" if clock[6:] == "60" else clock


def _from_mail(match: re.Match[str]) -> str:
    day, month, year, clock, name, hours, minutes = match.groups()
    number, rest = divmod(_MONTHS.find(month.title()), len("Jan "))
    if rest or (name and name not in _ZONES):
        raise ValueError(f"not a time: {match[0][:64]!r}")
    date = f"{year}-{number + 1:02}-{day:0>2}"
    if clock is None:
        return date
    zone = f"{hours}:{minutes}" if hours else _ZONES[name] if name else ""
    return f"{date}T{_padded(clock)}{zone}"


def _zone(text: str | None) -> timezone:
    if text is None or text == "Z":
        return UTC
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 14 or minutes > 59:  # noqa: PLR2004 - the widest zone there is, and a clock's minutes
        raise ValueError(f"no such time zone: {text}")
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)


def format_w3c(moment: datetime) -> str:
    """Return ``moment`` as a complete UTC W3C Datetime, with a fraction only when it has one.

    Raises:
        ValueError: ``moment`` has no time zone.
    """
    if moment.tzinfo is None:
        raise ValueError(f"the time {moment} has no zone")
    # isoformat pads the year and writes six digits of fraction, or none, on every platform.
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def to_microseconds(moment: datetime) -> int:
    """Return ``moment`` as whole microseconds since 1970-01-01T00:00:00Z."""
    return (moment - _EPOCH) // _MICROSECOND


def known_microseconds(moment: datetime | None) -> int | None:
    """Return ``moment`` as `to_microseconds` does; ``None`` when it is not known."""
    return None if moment is None else to_microseconds(moment)


def lastmod_microseconds(moment: datetime | None) -> int | None:
    """Return a ``lastmod`` as `to_microseconds` does; ``None`` when it names no day.

    A month does not show a change within it, so it is no better than no ``lastmod``.
    """
    return None if moment is None or moment.fold else (moment - _EPOCH) // _MICROSECOND


def from_microseconds(value: int) -> datetime:
    """Return the UTC moment ``value`` microseconds after 1970-01-01T00:00:00Z."""
    return _EPOCH + timedelta(microseconds=value)


@lru_cache(maxsize=1_024)  # many files share the second of their last change
def from_seconds(value: int) -> datetime:
    """Return the UTC moment ``value`` seconds after 1970-01-01T00:00:00Z."""
    return _EPOCH + timedelta(0, min(max(value, 0), _LAST_SECOND))


def end_of_lastmod(value: int) -> int:
    """Return the moment at which the interval that a ``lastmod`` names is surely over.

    A time says what is modified in its second, its minute or its day, as far as it is written. A
    time at midnight is taken as a day, since most sitemaps write no more, and it lasts until it is
    over in every time zone; one on a minute as a minute.
    """
    if value % DAY == 0:
        return value + DAY + _LAST_ZONE
    if value % MINUTE == 0:
        return value + MINUTE
    return value - value % SECOND + SECOND


def resolve_moment(moment: datetime | timedelta, now: datetime) -> datetime:
    """Return the moment itself, or the one that lies that far from ``now``; never before year 1."""
    if isinstance(moment, datetime):
        return moment
    try:
        return now + moment
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)
