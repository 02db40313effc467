"""Scenarios of the simulator, read from TOML; sweeps replace any of their values."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta, inspect
from msgspec.structs import replace

from resourcesync.errors import ConfigurationError
from resourcesync.model.timestamps import parse_w3c
from resourcesync.settings.schema import parse_duration, parse_size
from resourcesync_simulator.bounds import check, refusals
from resourcesync_simulator.profiles import PROFILES
from resourcesync_simulator.scenario import DestinationSettings, OriginSettings, Scenario

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_RATE: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?) ?/ ?([0-9.]*)([smhdw])")
_VALUE: Final = re.compile(r"""((?:\[[^]]*]|\{[^}]*}|"[^"]*"|'[^']*'|[^,])*),""")
"""A value of a sweep: no comma in brackets or quotes ends it."""
_HALF: Final = 2
_SHOWN: Final = 60
_MOST_BYTES: Final = 1 << 20
_VARIANT: Final = "variant"
_UNWRITTEN: Final = "phase"
"""The key that a seed decides."""
SCALE = Annotated[float, Meta(ge=1e-9, le=1e6)]
"""The type of the key ``scale``."""

Table = dict[str, Any]


class KeyForm(NamedTuple):
    """How a file writes a value.

    Attributes:
        text: What may be written, for people.
        read: Returns the value of what is written; any other thing unchanged.
    """

    text: str
    read: Callable[[Any], Any]


def _seconds(value: object) -> object:
    if not isinstance(value, str):
        return value
    return (-1 if value.startswith("-") else 1) * parse_duration(value.removeprefix("-"))


def _age(value: object) -> object:
    seconds = _seconds(value)
    if isinstance(seconds, int | float) and 0 < seconds < 1:
        raise ValueError("it must be 0, or 1 second at least")
    return seconds


def _rate(value: object) -> object:
    if not isinstance(value, str):
        return value
    match = _RATE.fullmatch(value.strip())
    span = 0.0 if match is None else parse_duration(f"{match[2] or 1}{match[3]}")
    if match is None or span <= 0:
        raise ValueError(f"{value[:_SHOWN]!r} is not a rate")
    return float(match[1]) / span


def _size(value: object) -> object:
    return parse_size(value) if isinstance(value, str) else value


def _moment(value: object) -> object:
    if isinstance(value, datetime):  # TOML has a type for times
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), tzinfo=UTC)
    return parse_w3c(value) if isinstance(value, str) else value


def _time_of_day(value: object) -> object:
    match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("it must be a time of the day, 00:00 to 23:59")
    return int(match[1]) * 3_600.0 + int(match[2]) * 60.0


def _weekdays(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("it must be days of the week")  # noqa: TRY004 - of a file
    found: set[int] = set()
    for part in value.split(","):
        first, dash, last = (name.strip() for name in part.strip().lower().partition("-"))
        for day in (first, last) if dash else (first,):
            if day not in DAYS:
                raise ValueError(f"{day[:_SHOWN]!r} is not a day; the days are {', '.join(DAYS)}")
        begin = DAYS.index(first)
        end = DAYS.index(last) if dash else begin
        found |= {(begin + number) % len(DAYS) for number in range((end - begin) % len(DAYS) + 1)}
    return sorted(found)


def _texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("it must be a list of strings")
    return value


def _pairs(mark: str, value: object) -> object:
    pairs = [text.split(mark) for text in _texts(value)]
    if any(len(pair) != _HALF for pair in pairs):
        raise ValueError(f"each must be two times with {mark!r} between them")
    return [[_seconds(part.strip()) for part in pair] for pair in pairs]


FORMS: Final[Mapping[str, KeyForm]] = {
    "time": KeyForm('a time such as `"2h"`, or seconds as a number', _seconds),
    "age": KeyForm('a time such as `"2h"`, or seconds as a number; 0 for none', _age),
    "rate": KeyForm('a rate such as `"20/h"` or `"1.4/s"`, or a number per second', _rate),
    "size": KeyForm('a size such as `"64MiB"`, or bytes as a number', _size),
    "byte rate": KeyForm('bytes per second, such as `"10M"`, or as a number', _size),
    "moment": KeyForm('a time such as `"2026-01-04T12:00:00Z"`; without a zone it is UTC', _moment),
    "clock": KeyForm('a time of the day, `"00:00"` to `"23:59"`', _time_of_day),
    "days": KeyForm('days of the week, such as `"mon"`, `"sun-thu"` or `"sat,sun"`', _weekdays),
    "spans": KeyForm(
        'a list of time spans since the beginning, such as `["2d..5d"]`',
        lambda value: _pairs("..", value),
    ),
    "steps": KeyForm(
        'a list of times since the beginning, each with a step, such as `["1d:2h"]`',
        lambda value: _pairs(":", value),
    ),
    "times": KeyForm(
        'a list of times since the beginning, such as `["3d"]`',
        lambda value: [_seconds(text) for text in _texts(value)],
    ),
}
"""Forms of values, by the names that the types of a scenario have."""


def form_of(kind: inspect.Type) -> str:
    """Return the name of the form of a type; empty for what TOML writes itself."""
    return str((kind.extra or {}).get("form", "")) if isinstance(kind, inspect.Metadata) else ""


def _values(written: object, kind: inspect.Type, place: str) -> object:
    """Return what is written with all texts as values; ``msgspec`` checks these."""
    form = form_of(kind)
    inner = kind.type if isinstance(kind, inspect.Metadata) else kind
    if form:
        try:
            return FORMS[form].read(written)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{place} is wrong: {error.message}", hint=error.hint
            ) from error
        except (ValueError, OverflowError) as error:
            hint = f"write {FORMS[form].text}".replace("`", "")
            raise ConfigurationError(f"{place} is wrong: {error}", hint=hint) from error
    if isinstance(inner, inspect.StructType) and isinstance(written, dict):
        known = {field.encode_name: field.type for field in inner.fields}
        known.pop(_UNWRITTEN, None)
        values = {}
        for key, value in written.items():
            at = f"{place}.{key}".removeprefix(".")
            if key not in known:
                raise _unknown_key_error(key, at, [*known, *([] if place else ["scale", _VARIANT])])
            values[key] = _values(value, known[key], at)
        return values
    if isinstance(inner, inspect.VarTupleType) and isinstance(written, list):
        return [_values(item, inner.item_type, place) for item in written]
    return written


def _unknown_key_error(key: str, place: str, known: list[str]) -> ConfigurationError:
    from difflib import get_close_matches  # noqa: PLC0415 - for a mistake only

    near = get_close_matches(key.lower().replace("-", "_"), known, n=1)
    likely = f"did you mean {near[0]}? " if near else ""
    return ConfigurationError(
        f"the scenario has an unknown key {place}",
        hint=f"{likely}known here: {', '.join(sorted(known))}",
    )


def read_scenario(path: Path) -> Table:
    """Read and parse a scenario."""
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"there is no file {path}, and no profile of that name",
            hint=f"the profiles are {', '.join(PROFILES)}; to write one as a file: "
            "resourcesync simulate init museum",
        ) from error
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    if len(text) > _MOST_BYTES:
        raise ConfigurationError(f"{path} is longer than 1 MiB")
    return parse_scenario(text.decode("utf-8", "replace"), str(path))


def parse_scenario(text: str, name: str) -> Table:
    """Parse the text of a scenario."""
    try:
        return deepcopy(tomllib.loads(text))  # what cannot be copied is nested too deep
    except (ValueError, RecursionError) as error:  # also a number with too many digits
        raise ConfigurationError(f"{name} is not TOML that can be read: {error}") from error


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
    found = [name.strip() for name in _VALUE.findall(f"{text},")]
    return found if "".join(found) else [""]


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
                f"variant {name}: {error.message}", evidence=error.evidence, hint=error.hint
            ) from error
    return _scenario_of(plain)


def _scenario_of(written: Table) -> Scenario:
    values = {key: value for key, value in written.items() if key != "scale"}
    named = values.get("destination")
    if isinstance(named, list) and len(named) > 1:  # those without a name are numbered
        usual = DestinationSettings().name
        values["destination"] = [
            {"name": f"{usual}-{place}", **item} if isinstance(item, dict) else item
            for place, item in enumerate(named, start=1)
        ]
    with refusals():
        scenario = msgspec.convert(_values(values, inspect.type_info(Scenario), ""), Scenario)
    with refusals("scale"):
        scale = msgspec.convert(written.get("scale", 1.0), SCALE)
    scenario = replace(scenario, origin=_scaled(scenario.origin, scale))
    check(scenario)
    return scenario


def _table(written: Table, name: str) -> Table:
    found = written.get(name, {})
    if not isinstance(found, dict):
        raise ConfigurationError(f"{name} must be a table")
    return found


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
        found: object = deepcopy(tomllib.loads(f"it = {value}")["it"])
    except (ValueError, RecursionError):
        return value
    return found
