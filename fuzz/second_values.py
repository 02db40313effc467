"""Numbers, digests and times as the second reader reads them: written from the specification."""

import calendar
import re
from typing import Final

_LENGTHS: Final = {"md5": 32, "sha-1": 40, "sha-224": 56, "sha-256": 64, "sha-384": 96}


def number(text: str) -> int | None:
    """Return a number of ASCII digits that fits into 63 bits."""
    is_number = 0 < len(text) <= 19 and all(c in "0123456789" for c in text)  # noqa: PLR2004
    return int(text) if is_number and int(text) >> 63 == 0 else None


def digests(text: str) -> tuple[tuple[str, str], ...]:
    """Return the algorithms and values of a ``hash``."""
    found = []
    for token in text.split()[:16]:
        name, value = token.split(":", 1) if ":" in token else (token, "")
        algorithm = re.sub(r"^(sha)(?=\d+$)", r"\1-", name.lower()).replace("md-5", "md5")
        if _LENGTHS.get(algorithm, 128 if algorithm == "sha-512" else 0) == len(value) > 0:
            value = value.lower()
        found.append((algorithm, value))
    return tuple(found)


def sound(found: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return those that are written as a digest is, as far as their algorithm is known."""
    lengths = {**_LENGTHS, "sha-512": 128}
    return tuple(
        (name, value)
        for name, value in found
        if name
        and value
        and (
            name not in lengths
            or (len(value) == lengths[name] and set(value) <= set("0123456789abcdef"))
        )
    )


def disagree(found: tuple[tuple[str, str], ...]) -> bool:
    """Whether two digests of one algorithm, both of its form, differ."""
    sound = {
        (name, value)
        for name, value in found
        if len(value) == {**_LENGTHS, "sha-512": 128}.get(name, -1)
        and set(value) <= set("0123456789abcdef")
    }
    return len(sound) > len({name for name, _ in sound})


def time(text: str) -> int | None:
    """Return microseconds since 1970 of a W3C Datetime, or nothing when it is none."""
    day, mark, clock = text.partition("T")
    if not day.isascii() or not clock.isascii() or (mark and len(day) != 10):  # noqa: PLR2004
        return None
    parts = day.split("-")
    if [len(part) for part in parts] not in ([4], [4, 2], [4, 2, 2]):
        return None
    if not all(part.isdigit() for part in parts):
        return None
    year, month, date = [*map(int, parts), 1, 1][:3]
    if year < 1 or not 1 <= month <= 12 or not 1 <= date <= calendar.monthrange(year, month)[1]:  # noqa: PLR2004
        return None
    seconds = _clock(clock) if mark else 0
    if seconds is None:
        return None
    total = calendar.timegm((year, month, date, 0, 0, 0)) * 10**6 + seconds
    return total if _FIRST <= total <= _LAST else None


def loose_time(text: str) -> int | None:
    """Return what `time` does, also for a time that a database wrote."""
    for word in ("UTC", "GMT", "z"):
        if text.endswith(word):
            text = text[: -len(word)].rstrip(" ") + "Z"
    day, clock = text[:10], text[11:]
    if text[10:11] not in ("T", "t", " ") or not clock:
        return time(text)
    clock = clock.replace(" +", "+").replace(" -", "-").replace(",", ".")
    clock = re.sub(r"([+-]\d\d)(\d\d)?$", lambda match: f"{match[1]}:{match[2] or '00'}", clock)
    return time(f"{day}T{clock}")


_FIRST: Final = -62_135_596_800 * 10**6
_LAST: Final = 253_402_300_800 * 10**6 - 1


def _clock(text: str) -> int | None:
    """Return the microseconds since midnight, UTC; less than none before it, east of there."""
    match = re.match(r"^(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,30}))?)?(Z|[+-]\d\d:\d\d)?$", text)
    if match is None or text.endswith("\n"):
        return None
    hour, minute, second = (int(part or 0) for part in match.groups()[:3])
    zone = match[5] or "Z"
    ahead = 0 if zone == "Z" else int(zone[1:3]) * 60 + int(zone[4:])
    too_late = hour > 23 or minute > 59 or second > 59  # noqa: PLR2004 - what a clock shows
    if too_late or (zone != "Z" and (int(zone[1:3]) > 14 or int(zone[4:]) > 59)):  # noqa: PLR2004
        return None
    minutes = hour * 60 + minute - (ahead if zone[0] == "+" else -ahead)
    return (minutes * 60 + second) * 10**6 + int((match[4] or "0")[:6].ljust(6, "0"))
