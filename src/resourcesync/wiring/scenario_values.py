"""The forms of the values of a scenario: each is read by a function, which says what it takes.

What a function returns may still be out of its bounds: ``simulator.bounds`` says so.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time
from typing import Any, Final

from resourcesync import config
from resourcesync.errors import ConfigurationError
from resourcesync.model.timestamps import parse_w3c

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_RATE: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?) ?/ ?([0-9.]*)([smhdw])")
_HALF: Final = 2
_ENDLESS: Final = 10**18
_SHOWN: Final = 60

Table = dict[str, Any]
Reader = Callable[[Any], Any]


def read_table(
    table: object, readers: Mapping[str, Reader], name: str, tables: Iterable[str] = ()
) -> Table:
    """Return the values of a table, each as its reader understands it.

    Args:
        table: As it is written.
        readers: By the keys that it may have.
        name: What the table is called, for who made a mistake.
        tables: What else is known at this place, and read elsewhere.

    Raises:
        ConfigurationError: It has another key, or a value that is none.
    """
    if not isinstance(table, dict):
        raise ConfigurationError(f"{name} must be a table")
    values: Table = {}
    for key, value in table.items():
        place = f"{name}.{key}" if name else key
        if key not in readers:
            raise _unknown_key_error(key, place, [*readers, *tables])
        try:
            values[key] = readers[key](value)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{place} is wrong: {error.message}", evidence=error.evidence, hint=error.hint
            ) from error
        except (ValueError, OverflowError) as error:
            raise ConfigurationError(f"{place} is wrong: {error}") from error
    return values


def read_number(value: object) -> float:
    """Read a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _value_error("a number", value)
    return float(value)


def read_share(value: object) -> float:
    """Read a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _value_error("a number from 0 to 1", value)
    return float(value)


def read_integer(value: object) -> int:
    """Read a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _value_error("a whole number", value)
    if abs(value) >= _ENDLESS:
        raise ConfigurationError("it must be a whole number of less than 19 digits")
    return value


def read_flag(value: object) -> bool:
    """Read ``true`` or ``false``."""
    if not isinstance(value, bool):
        raise _value_error("true or false", value)
    return value


def read_text(value: object) -> str:
    """Read a text."""
    if not isinstance(value, str):
        raise _value_error("a text", value)
    return value


def read_strategy(value: object) -> str:
    """Read ``"changes"`` or ``"lists"``."""
    if value not in ("changes", "lists"):
        raise _value_error("changes or lists", value)
    return read_text(value)


def read_dumps(value: object) -> str:
    """Read ``"auto"``, ``"never"`` or ``"always"``."""
    if value not in ("auto", "never", "always"):
        raise _value_error("auto, never or always", value)
    return read_text(value)


def read_texts(value: object) -> tuple[str, ...]:
    """Read a list of texts, such as ``["text/html"]``."""
    if not isinstance(value, list):
        raise _value_error("a list of texts", value)
    return tuple(map(read_text, value))


def read_seconds(value: object) -> float:
    """Read a time such as ``"2h"``, or seconds as a number."""
    if isinstance(value, str):
        sign = -1 if value.startswith("-") else 1
        return sign * config.parse_duration(value.removeprefix("-"))
    return read_number(value)


def read_byte_rate(value: object) -> float:
    """Read bytes a second, such as ``"10M"``, or as a number."""
    return float(config.parse_size(value)) if isinstance(value, str) else read_number(value)


def read_size(value: object) -> int:
    """Read a size such as ``"64MiB"``, or bytes as a number."""
    return config.parse_size(value) if isinstance(value, str) else read_integer(value)


def read_rate(value: object) -> float:
    """Read a rate such as ``"20/h"`` or ``"1.4/s"``, or how many a second as a number."""
    if not isinstance(value, str):
        return read_number(value)
    match = _RATE.fullmatch(value.strip())
    span = 0.0 if match is None else config.parse_duration(f"{match[2] or 1}{match[3]}")
    if match is None or span <= 0:
        raise ConfigurationError(
            f"{value[:_SHOWN]!r} is no rate", hint="write how many in which time: 20/h, 1.4/s"
        )
    return float(match[1]) / span


def read_moment(value: object) -> datetime:
    """Read a time such as ``"2026-01-04T12:00:00Z"``; without a zone it is UTC."""
    if isinstance(value, datetime):  # TOML has times of its own
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), tzinfo=UTC)
    try:
        return parse_w3c(read_text(value))
    except ValueError as error:
        raise ConfigurationError(str(error), hint="such as 2026-01-04T12:00:00Z") from error


def read_time_of_day(value: object) -> float:
    """Read a time of the day, ``"00:00"`` to ``"23:59"``."""
    match = _CLOCK.fullmatch(read_text(value))
    if match is None:
        raise _value_error("a time of the day, 00:00 to 23:59", value)
    return int(match[1]) * 3_600.0 + int(match[2]) * 60.0


def read_weekdays(value: object) -> frozenset[int]:
    """Read days of the week, such as ``"mon"``, ``"sun-thu"`` or ``"sat,sun"``."""
    found: set[int] = set()
    for part in read_text(value).split(","):
        first, dash, last = (it.strip() for it in part.strip().lower().partition("-"))
        for day in (first, last) if dash else (first,):
            if day not in DAYS:
                raise ConfigurationError(
                    f"{day[:_SHOWN]!r} is no day", hint=f"the days are {', '.join(DAYS)}"
                )
        begin = DAYS.index(first)
        end = DAYS.index(last) if dash else begin
        found |= {(begin + it) % len(DAYS) for it in range((end - begin) % len(DAYS) + 1)}
    return frozenset(found)


def read_spans(value: object) -> tuple[tuple[float, float], ...]:
    """Read a list of times from the beginning, from and until, such as ``["2d..5d"]``."""
    return tuple(_pair(it, "..") for it in read_texts(value))


def read_steps(value: object) -> tuple[tuple[float, float], ...]:
    """Read a list of times from the beginning, each with how far, such as ``["1d:2h"]``."""
    return tuple(_pair(it, ":") for it in read_texts(value))


def read_moments(value: object) -> tuple[float, ...]:
    """Read a list of times from the beginning, such as ``["3d"]``."""
    return tuple(map(read_seconds, read_texts(value)))


def _pair(written: str, mark: str) -> tuple[float, float]:
    parts = written.split(mark)
    if len(parts) != _HALF:
        raise ConfigurationError(
            f"{written[:_SHOWN]!r} must be two times with {mark!r} between them",
            hint=f'such as ["1d{mark}{"2d" if mark == ".." else "2h"}"]',
        )
    return read_seconds(parts[0].strip()), read_seconds(parts[1].strip())


def _unknown_key_error(key: str, place: str, known: list[str]) -> ConfigurationError:
    from difflib import get_close_matches  # noqa: PLC0415 - for a mistake only

    near = get_close_matches(key.lower().replace("-", "_"), known, n=1)
    likely = f"did you mean {near[0]}? " if near else ""
    return ConfigurationError(
        f"the scenario says {place}, which means nothing",
        hint=f"{likely}known here: {', '.join(sorted(known))}",
    )


def _value_error(what: str, value: object) -> ConfigurationError:
    shown = "a table" if isinstance(value, dict) else repr(value)[:_SHOWN]
    return ConfigurationError(f"it must be {what}", evidence=(("given", shown),))
