"""Scenarios of the simulator, read from TOML; any value of them can be given anew, for sweeps."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from resourcesync import config
from resourcesync.errors import ConfigurationError
from resourcesync.model.timestamps import parse_w3c
from resourcesync.simulator.scenario import (
    Burst,
    DestinationSettings,
    Faults,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
)

_MOST_BYTES: Final = 1 << 20
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK: Final = 2
_HALF: Final = 2

Table = dict[str, Any]
Reader = Callable[[Any], Any]


def read(path: Path) -> Table:
    """Read a scenario as it is written.

    Raises:
        ConfigurationError: It cannot be read, or is no TOML.
    """
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {error.strerror}",
            hint=f"resourcesync simulate init > {path}",
        ) from error
    return parse(text[:_MOST_BYTES].decode("utf-8", "replace"), str(path))


def parse(text: str, name: str) -> Table:
    """Read the text of a scenario.

    Raises:
        ConfigurationError: It is no TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{name} is no TOML: {error}") from error


def with_value(written: Table, key: str, value: str) -> Table:
    """Return a scenario with another value, as for a sweep.

    Args:
        written: The scenario as it is written.
        key: Where the value is, such as ``publish.rotate``; ``destination.every`` is that of all.
            ``variant`` takes all values of the variant that the scenario has by this name.
        value: As it would be written in TOML; a text needs no quotes.

    Raises:
        ConfigurationError: There is no such table, or no such variant.
    """
    if key != _VARIANT:
        return _with(written, key.split("."), _plain(value))
    variants = _table(written, _VARIANT)
    if value not in variants:
        known = ", ".join(variants) or "none"
        raise ConfigurationError(
            f"the scenario has no variant {value!r}",
            hint=f"it has: {known}; one is a table such as [variant.{value or 'hourly'}]",
        )
    return _with_all(written, _table(variants, value))


def _with_all(written: Table, values: Table) -> Table:
    """Return a scenario with other values, in tables as it has them."""
    for names, value in _leaves(values, ()):
        written = _with(written, names, value)
    return written


def _leaves(table: Table, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*place, key))
        else:
            yield (*place, key), value


def _with(written: Table, names: Sequence[str], value: object) -> Table:
    changed = deepcopy(written)
    *tables, last = names
    places: list[Any] = [changed]
    for name in tables:
        usual: Any = [{}] if name == "destination" else {}
        found = [place.setdefault(name, usual) for place in places if isinstance(place, dict)]
        places = [one for it in found for one in (it if isinstance(it, list) else [it])]
    if not places or not all(isinstance(place, dict) for place in places) or not last:
        raise ConfigurationError(f"there is no table for {'.'.join(names)} in the scenario")
    for place in places:
        place[last] = value
    return changed


def scenario_of(written: Table) -> Scenario:
    """Return what a scenario says.

    Raises:
        ConfigurationError: It has a mistake, or one of its variants has.
    """
    plain = {key: value for key, value in written.items() if key != _VARIANT}
    variants = _table(written, _VARIANT)
    for name in variants:
        try:
            _scenario_of(_with_all(plain, _table(variants, name)))
        except ConfigurationError as error:
            raise ConfigurationError(f"variant {name}: {error.message}", hint=error.hint) from error
    return _scenario_of(plain)


def _scenario_of(written: Table) -> Scenario:
    scale = _number(written.get("scale", 1.0), "scale", least=1e-9)
    top = {key: value for key, value in written.items() if key not in _TABLES | {"scale"}}
    values = _read(top, {"seed": _whole, "duration": _seconds, "start": _moment}, "")
    named = written.get("destination", [{}])
    if not isinstance(named, list):
        raise ConfigurationError("destinations are written as [[destination]]")
    origin = _origin(_table(written, "source"))
    scenario = Scenario(
        **values,
        origin=_scaled(origin, scale),
        publish=PublishSettings(**_read(_table(written, "publish"), _PUBLISH, "publish")),
        destinations=tuple(
            DestinationSettings(**_read(it, _DESTINATION, "destination")) for it in named
        ),
        faults=Faults(**_read(_table(written, "faults"), _FAULTS, "faults")),
    )
    scenario.check()
    return scenario


def _table(written: Table, name: str) -> Table:
    found = written.get(name, {})
    if not isinstance(found, dict):
        raise ConfigurationError(f"{name} must be a table")
    return found


def _read(table: object, readers: Mapping[str, Reader], name: str) -> Table:
    """Return the values of a table, each as its reader understands it."""
    if not isinstance(table, dict):
        raise ConfigurationError(f"{name} must be a table")
    values: Table = {}
    for key, value in table.items():
        place = f"{name}.{key}" if name else key
        if key not in readers:
            raise ConfigurationError(
                f"the scenario says {place}, which means nothing",
                hint=f"known here: {', '.join(sorted(readers))}",
            )
        try:
            values[key] = readers[key](value)
        except (ConfigurationError, ValueError, TypeError, OverflowError) as error:
            raise ConfigurationError(f"{place} is wrong: {error}") from error
    return values


def _origin(table: Table) -> OriginSettings:
    values = _read(table, _ORIGIN, "source")
    if "changes" in values:
        values["per_second"] = values.pop("changes")
    return OriginSettings(**values)


def _scaled(origin: OriginSettings, scale: float) -> OriginSettings:
    return replace(
        origin,
        resources=max(1, round(origin.resources * scale)),
        per_second=origin.per_second * scale,
        bursts=tuple(
            replace(it, changes=max(1, round(it.changes * scale))) for it in origin.bursts
        ),
    )


def _plain(value: str) -> object:
    try:
        return tomllib.loads(f"it = {value}")["it"]
    except tomllib.TOMLDecodeError:
        return value


def _number(value: object, name: str, *, least: float = 0.0) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
        raise ConfigurationError(f"{name} must be a number")
    return float(value)


def _real(value: object) -> float:
    return _number(value, "it")


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigurationError("it must be a whole number")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError("it must be true or false")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ConfigurationError("it must be a text")
    return value


def _strategy(value: object) -> str:
    if value not in {"changes", "lists"}:
        raise ConfigurationError("it must be changes or lists")
    return _text(value)


def _dumps(value: object) -> str:
    if value not in {"auto", "never", "always"}:
        raise ConfigurationError("it must be auto, never or always")
    return _text(value)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ConfigurationError("it must be a list of texts")
    return tuple(map(_text, value))


def _seconds(value: object) -> float:
    if isinstance(value, str):
        sign = -1 if value.startswith("-") else 1
        return sign * config.parse_duration(value.removeprefix("-"))
    return _real(value)


def _bytes(value: object) -> float:
    return float(config.parse_size(value)) if isinstance(value, str) else _real(value)


def _size(value: object) -> int:
    return config.parse_size(value) if isinstance(value, str) else _whole(value)


def _per_second(value: object) -> float:
    if isinstance(value, str):
        number, _, unit = value.partition("/")
        return float(number) / config.parse_duration(f"1{unit or 's'}")
    return _real(value)


def _moment(value: object) -> object:
    return parse_w3c(_text(value))


def _time_of_day(value: object) -> float:
    hours, minutes = _text(value).split(":")[:_CLOCK]
    return int(hours) * 3_600.0 + int(minutes) * 60.0


def _weekdays(value: object) -> frozenset[int]:
    found: set[int] = set()
    for part in _text(value).split(","):
        first, dash, last = part.strip().partition("-")
        begin = _DAYS.index(first)
        end = _DAYS.index(last) if dash else begin
        found |= {(begin + it) % len(_DAYS) for it in range((end - begin) % len(_DAYS) + 1)}
    return frozenset(found)


def _bursts(value: object) -> tuple[Burst, ...]:
    if not isinstance(value, list):
        raise ConfigurationError("it must be a list of tables")
    return tuple(Burst(**_read(it, _BURST, "burst")) for it in value)


def _sizes(value: object) -> Sizes:
    return Sizes(**_read(value, _SIZES, "sizes"))


def _spans(value: object) -> tuple[tuple[float, float], ...]:
    return tuple(_pair(it, "..") for it in _texts(value))


def _steps(value: object) -> tuple[tuple[float, float], ...]:
    return tuple(_pair(it, ":") for it in _texts(value))


def _pair(text: str, mark: str) -> tuple[float, float]:
    parts = text.split(mark)
    if len(parts) != _HALF:
        raise ConfigurationError(f"{text!r} must be two durations with {mark!r} between them")
    return _seconds(parts[0].strip()), _seconds(parts[1].strip())


def _moments(value: object) -> tuple[float, ...]:
    return tuple(map(_seconds, _texts(value)))


_VARIANT: Final = "variant"
_TABLES: Final = frozenset({"source", "publish", "destination", "faults"})
_SIZES: Final[Mapping[str, Reader]] = {
    "median": _whole,
    "spread": _real,
    "least": _whole,
    "most": _whole,
}
_BURST: Final[Mapping[str, Reader]] = {
    "at": _time_of_day,
    "zone": _text,
    "days": _weekdays,
    "changes": _whole,
}
_ORIGIN: Final[Mapping[str, Reader]] = {
    "resources": _whole,
    "sizes": _sizes,
    "media_types": _texts,
    "changes": _per_second,
    "bursts": _bursts,
    "create": _real,
    "update": _real,
    "delete": _real,
}
_PUBLISH: Final[Mapping[str, Reader]] = {
    "strategy": _strategy,
    "every": _seconds,
    "rotate": _seconds,
    "rebase": _seconds,
    "keep": _seconds,
    "push": _flag,
    "dumps": _flag,
    "dump_every": _seconds,
    "max_package": _size,
    "max_entries": _whole,
}
_DESTINATION: Final[Mapping[str, Reader]] = {
    "name": _text,
    "every": _seconds,
    "dumps": _dumps,
    "jobs": _whole,
    "latency": _seconds,
    "bandwidth": _bytes,
    "offline": _spans,
}
_SPECIAL: Final[Mapping[str, Reader]] = {
    "outages": _spans,
    "clock_steps": _steps,
    "restarts": _moments,
    "rollbacks": _steps,
}
_FAULTS: Final[Mapping[str, Reader]] = {
    it.name: _SPECIAL.get(it.name, _real) for it in fields(Faults)
}


def known_keys() -> Sequence[str]:
    """Return all that a scenario can say, as ``table.key``."""
    named = {"source": _ORIGIN, "publish": _PUBLISH, "destination": _DESTINATION, "faults": _FAULTS}
    inner = [f"{table}.{key}" for table, readers in named.items() for key in readers]
    return ("seed", "duration", "start", "scale", *inner)
