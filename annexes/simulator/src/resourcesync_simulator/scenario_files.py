"""Scenarios of the simulator, read from TOML; sweeps replace any of their values.

A value that was read may still be out of its bounds: ``simulator.bounds`` checks these.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Final

from msgspec.structs import fields, replace

from resourcesync.errors import ConfigurationError
from resourcesync.model.timestamps import parse_w3c
from resourcesync.settings.values import parse_duration, parse_size
from resourcesync_simulator import bounds
from resourcesync_simulator.profiles import PROFILES
from resourcesync_simulator.scenario import (
    Burst,
    DestinationSettings,
    Faults,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
)

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
    """Return the values of a table, each as its reader returns it."""
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
                f"{place} is wrong: {error.message}",
                evidence=error.evidence,
                hint=error.hint,
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
    """Read a string."""
    if not isinstance(value, str):
        raise _value_error("a text", value)
    return value


def read_strategy(value: object) -> str:
    """Read ``"changes"``, ``"lists"`` or ``"sitemap"``."""
    if value not in ("changes", "lists", "sitemap"):
        raise _value_error("changes, lists or sitemap", value)
    return read_text(value)


def read_dumps(value: object) -> str:
    """Read ``"auto"``, ``"never"`` or ``"always"``."""
    if value not in ("auto", "never", "always"):
        raise _value_error("auto, never or always", value)
    return read_text(value)


def read_texts(value: object) -> tuple[str, ...]:
    """Read a list of strings, such as ``["text/html"]``."""
    if not isinstance(value, list):
        raise _value_error("a list of strings", value)
    return tuple(map(read_text, value))


def read_seconds(value: object) -> float:
    """Read a time such as ``"2h"``, or seconds as a number."""
    if isinstance(value, str):
        sign = -1 if value.startswith("-") else 1
        return sign * parse_duration(value.removeprefix("-"))
    return read_number(value)


def read_byte_rate(value: object) -> float:
    """Read bytes per second, such as ``"10M"``, or as a number."""
    return float(parse_size(value)) if isinstance(value, str) else read_number(value)


def read_size(value: object) -> int:
    """Read a size such as ``"64MiB"``, or bytes as a number."""
    return parse_size(value) if isinstance(value, str) else read_integer(value)


def read_rate(value: object) -> float:
    """Read a rate such as ``"20/h"`` or ``"1.4/s"``, or a number per second."""
    if not isinstance(value, str):
        return read_number(value)
    match = _RATE.fullmatch(value.strip())
    span = 0.0 if match is None else parse_duration(f"{match[2] or 1}{match[3]}")
    if match is None or span <= 0:
        raise ConfigurationError(
            f"{value[:_SHOWN]!r} is not a rate", hint="write a number and a time: 20/h, 1.4/s"
        )
    return float(match[1]) / span


def read_moment(value: object) -> datetime:
    """Read a time such as ``"2026-01-04T12:00:00Z"``; without a zone it is UTC."""
    if isinstance(value, datetime):  # TOML has a type for times
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
        first, dash, last = (name.strip() for name in part.strip().lower().partition("-"))
        for day in (first, last) if dash else (first,):
            if day not in DAYS:
                raise ConfigurationError(
                    f"{day[:_SHOWN]!r} is not a day", hint=f"the days are {', '.join(DAYS)}"
                )
        begin = DAYS.index(first)
        end = DAYS.index(last) if dash else begin
        found |= {(begin + number) % len(DAYS) for number in range((end - begin) % len(DAYS) + 1)}
    return frozenset(found)


def read_spans(value: object) -> tuple[tuple[float, float], ...]:
    """Read a list of time spans since the beginning, such as ``["2d..5d"]``."""
    return tuple(_pair(text, "..") for text in read_texts(value))


def read_steps(value: object) -> tuple[tuple[float, float], ...]:
    """Read a list of times since the beginning, each with a step, such as ``["1d:2h"]``."""
    return tuple(_pair(text, ":") for text in read_texts(value))


def read_moments(value: object) -> tuple[float, ...]:
    """Read a list of times since the beginning, such as ``["3d"]``."""
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
        f"the scenario has an unknown key {place}",
        hint=f"{likely}known here: {', '.join(sorted(known))}",
    )


def _value_error(what: str, value: object) -> ConfigurationError:
    shown = "a table" if isinstance(value, dict) else repr(value)[:_SHOWN]
    return ConfigurationError(f"it must be {what}", evidence=(("given", shown),))


_MOST_BYTES: Final = 1 << 20
_DEEPEST: Final = 10
SCALE: Final = bounds.Bound(1e-9, 1e6, "from 0.000000001 to 1,000,000")
"""Bounds of the key ``scale``."""


def read_scenario(path: Path) -> Table:
    """Read and parse a scenario."""
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"there is no file {path}, and no profile of that name",
            hint=f"the profiles are {', '.join(PROFILES)}; to write one as a file: "
            "resourcesync simulate init --profile museum",
        ) from error
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    if len(text) > _MOST_BYTES:
        raise ConfigurationError(f"{path} is longer than 1 MiB")
    return parse_scenario(text.decode("utf-8", "replace"), str(path))


def parse_scenario(text: str, name: str) -> Table:
    """Parse the text of a scenario."""
    try:
        written = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number with too many digits
        raise ConfigurationError(f"{name} is not TOML: {error}") from error
    if _is_deep(written):
        raise ConfigurationError(f"the tables in {name} are nested too deep")
    return written


def _is_deep(value: object) -> bool:
    """True if a value is nested too deep to be processed."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for item in level for inner in _nested_values(item)]
    return bool(level)


def _nested_values(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def with_value(written: Table, key: str, value: str) -> Table:
    """Return a scenario with one value replaced, as for a sweep."""
    if key != _VARIANT:
        return _with_one_value(written, key.split("."), _plain(value))
    variants = _table(written, _VARIANT)
    if value not in variants:
        known = ", ".join(variants) or "none"
        raise ConfigurationError(
            f"the scenario has no variant {value!r}",
            hint=f"it has: {known}; one is a table such as [variant.{value or 'hourly'}]",
        )
    return _with_values(written, _table(variants, value))


def values_of(text: str) -> list[str]:
    """Return the values of a sweep: separated by commas outside lists, tables and strings."""
    found, depth, quote = [""], 0, ""
    for letter in text:
        if letter == "," and not depth and not quote:
            found.append("")
            continue
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'" and (depth or not found[-1].strip()):
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth = max(0, depth - 1)
        found[-1] += letter
    return [name.strip() for name in found]


def _with_values(written: Table, values: Table) -> Table:
    """Return a scenario with replaced values, in the same tables."""
    for names, value in _leaves(values, ()):
        written = _with_one_value(written, names, value)
    return written


def _leaves(table: Table, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*place, key))
        else:
            yield (*place, key), value


def _with_one_value(written: Table, names: Sequence[str], value: object) -> Table:
    changed = deepcopy(written)
    *tables, last = names
    places: list[Any] = [changed]
    for name in tables:
        usual: Any = [{}] if name == "destination" else {}
        found = [place.setdefault(name, usual) for place in places if isinstance(place, dict)]
        places = [entry for item in found for entry in (item if isinstance(item, list) else [item])]
    if not places or not all(isinstance(place, dict) for place in places) or not last:
        raise ConfigurationError(f"there is no table for {'.'.join(names)} in the scenario")
    for place in places:
        place[last] = value
    return changed


def scenario_of(written: Table) -> Scenario:
    """Return the scenario of a parsed file."""
    plain = {key: value for key, value in written.items() if key != _VARIANT}
    variants = _table(written, _VARIANT)
    for name in variants:
        try:
            _scenario_of(_with_values(plain, _table(variants, name)))
        except ConfigurationError as error:
            raise ConfigurationError(
                f"variant {name}: {error.message}",
                evidence=error.evidence,
                hint=error.hint,
            ) from error
    return _scenario_of(plain)


def _scenario_of(written: Table) -> Scenario:
    top = {key: value for key, value in written.items() if key not in TABLES}
    values = read_table(top, TOP, "", [*TABLES, _VARIANT])
    scale = values.pop("scale", 1.0)
    if not SCALE.allows(scale):
        raise ConfigurationError(f"scale must be {SCALE.text}", evidence=(("given", f"{scale:g}"),))
    origin = _origin(_table(written, "source"))
    scenario = Scenario(
        **values,
        origin=_scaled(origin, scale),
        publish=PublishSettings(
            **read_table(_table(written, "publish"), TABLES["publish"], "publish")
        ),
        destinations=_destinations(written.get("destination", [{}])),
        faults=Faults(**read_table(_table(written, "faults"), TABLES["faults"], "faults")),
    )
    bounds.check(scenario)
    return scenario


def _destinations(named: object) -> tuple[DestinationSettings, ...]:
    """Return the Destinations; of several, those without a name are numbered."""
    if not isinstance(named, list):
        raise ConfigurationError("destinations are written as [[destination]]")
    tables = [read_table(item, TABLES["destination"], "destination") for item in named]
    if len(tables) > 1:
        usual = DestinationSettings().name
        tables = [
            {"name": f"{usual}-{place}", **fields} for place, fields in enumerate(tables, start=1)
        ]
    return tuple(DestinationSettings(**table) for table in tables)


def _table(written: Table, name: str) -> Table:
    found = written.get(name, {})
    if not isinstance(found, dict):
        raise ConfigurationError(f"{name} must be a table")
    return found


def _origin(table: Table) -> OriginSettings:
    values = read_table(table, TABLES["source"], "source")
    if "changes" in values:
        values["per_second"] = values.pop("changes")
    return OriginSettings(**values)


def _scaled(origin: OriginSettings, scale: float) -> OriginSettings:
    return replace(
        origin,
        resources=_scale_count(origin.resources, scale),
        per_second=origin.per_second * scale,
        bursts=tuple(
            replace(burst, changes=_scale_count(burst.changes, scale)) for burst in origin.bursts
        ),
    )


def _scale_count(count: int, scale: float) -> int:
    """Return the scaled number of things; none only of none."""
    return max(1, round(count * scale)) if count > 0 else count


def _plain(value: str) -> object:
    """Return a value as TOML reads it; anything else is a string."""
    try:
        found: object = tomllib.loads(f"it = {value}")["it"]
    except (ValueError, RecursionError):
        return value
    return value if _is_deep(found) else found


def _bursts(value: object) -> tuple[Burst, ...]:
    """Read a list of tables, such as ``[{ at = "20:00", days = "sun-thu", changes = 1800 }]``."""
    if not isinstance(value, list):
        raise ConfigurationError("it must be a list of tables")
    found = []
    for item in value:
        values = read_table(item, BURST, "burst")
        for key in ("at", "changes"):
            if key not in values:
                raise ConfigurationError(
                    f"a burst needs {key}", hint='such as { at = "20:00", changes = 1800 }'
                )
        found.append(Burst(**values))
    return tuple(found)


def _sizes(value: object) -> Sizes:
    """Read a table, such as ``{ median = 8000, spread = 1.2 }``."""
    return Sizes(**read_table(value, SIZES, "sizes"))


_VARIANT: Final = "variant"
_SPECIAL: Final[Mapping[str, Reader]] = {
    "clock_steps": read_steps,
    "restarts": read_moments,
    "rollbacks": read_steps,
}
TOP: Final[Mapping[str, Reader]] = {
    "seed": read_integer,
    "start": read_moment,
    "duration": read_seconds,
    "scale": read_number,
}
"""Keys above all tables."""
SIZES: Final[Mapping[str, Reader]] = {
    "median": read_integer,
    "spread": read_number,
    "least": read_integer,
    "most": read_integer,
}
"""Keys of the table ``source.sizes``."""
BURST: Final[Mapping[str, Reader]] = {
    "at": read_time_of_day,
    "zone": read_text,
    "days": read_weekdays,
    "changes": read_integer,
}
"""Keys of each table of ``source.bursts``."""
TABLES: Final[Mapping[str, Mapping[str, Reader]]] = {
    "source": {
        "resources": read_integer,
        "sizes": _sizes,
        "media_types": read_texts,
        "changes": read_rate,
        "bursts": _bursts,
        "create": read_number,
        "update": read_number,
        "delete": read_number,
    },
    "publish": {
        "strategy": read_strategy,
        "every": read_seconds,
        "rotate": read_seconds,
        "rebase": read_seconds,
        "rebase_up_to": read_integer,
        "keep": read_seconds,
        "push": read_flag,
        "dumps": read_flag,
        "dump_every": read_seconds,
        "max_package": read_size,
        "max_entries": read_integer,
    },
    "destination": {
        "name": read_text,
        "every": read_seconds,
        "dumps": read_dumps,
        "jobs": read_integer,
        "latency": read_seconds,
        "bandwidth": read_byte_rate,
        "offline": read_spans,
    },
    # A new kind of fault needs nothing more: it is a rate, or has its times.
    "faults": {
        field.name: _SPECIAL.get(
            field.name, read_share if isinstance(field.default, float) else read_spans
        )
        for field in fields(Faults)
    },
}
"""Keys of each table, each with the reader of its value."""
