"""Scenarios of the simulator, read from TOML; any value of them can be given anew, for sweeps."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from resourcesync.errors import ConfigurationError
from resourcesync.simulator import bounds
from resourcesync.simulator.profiles import PROFILES
from resourcesync.simulator.scenario import (
    Burst,
    DestinationSettings,
    Faults,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
)
from resourcesync.wiring import scenario_values as of
from resourcesync.wiring.scenario_values import Reader, Table, read_table

_MOST_BYTES: Final = 1 << 20
_DEEPEST: Final = 10
SCALE: Final = bounds.Bound(1e-9, 1e6, "from 0.000000001 to 1,000,000")
"""What the key ``scale`` may be."""


def read_scenario(path: Path) -> Table:
    """Read a scenario as it is written.

    Raises:
        ConfigurationError: It cannot be read, or is no TOML.
    """
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"there is no file {path}, and no profile of that name",
            hint=f"the profiles are {', '.join(PROFILES)}; "
            "resourcesync simulate init --profile NAME writes one as a file",
        ) from error
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    if len(text) > _MOST_BYTES:
        raise ConfigurationError(f"{path} is longer than 1 MiB, which no scenario is")
    return parse_scenario(text.decode("utf-8", "replace"), str(path))


def parse_scenario(text: str, name: str) -> Table:
    """Read the text of a scenario.

    Raises:
        ConfigurationError: It is no TOML.
    """
    try:
        written = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of too many digits
        raise ConfigurationError(f"{name} is no TOML: {error}") from error
    if _is_deep(written):
        raise ConfigurationError(f"{name} has tables in tables in tables, as no scenario has")
    return written


def _is_deep(value: object) -> bool:
    """Whether a value has more in it than can be gone through."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for it in level for inner in _nested_values(it)]
    return bool(level)


def _nested_values(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


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
    """Return the values of a sweep: between commas, but not those within a list, table or text.

    Args:
        text: Such as ``5m,1h`` or ``["1h..2h","3h..4h"],[]``.
    """
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
    return [it.strip() for it in found]


def _with_values(written: Table, values: Table) -> Table:
    """Return a scenario with other values, in tables as it has them."""
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
            _scenario_of(_with_values(plain, _table(variants, name)))
        except ConfigurationError as error:
            raise ConfigurationError(
                f"variant {name}: {error.message}", evidence=error.evidence, hint=error.hint
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
    """Return who follows; of several, those without a name are numbered."""
    if not isinstance(named, list):
        raise ConfigurationError("destinations are written as [[destination]]")
    tables = [read_table(it, TABLES["destination"], "destination") for it in named]
    if len(tables) > 1:
        usual = DestinationSettings().name
        tables = [{"name": f"{usual}-{place}", **it} for place, it in enumerate(tables, start=1)]
    return tuple(DestinationSettings(**it) for it in tables)


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
        bursts=tuple(replace(it, changes=_scale_count(it.changes, scale)) for it in origin.bursts),
    )


def _scale_count(many: int, scale: float) -> int:
    """Return how many there are when so many would be there in truth; none only of none."""
    return max(1, round(many * scale)) if many > 0 else many


def _plain(value: str) -> object:
    """Return a value as TOML has it; what is none is a text."""
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
    for it in value:
        values = read_table(it, BURST, "burst")
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
    "clock_steps": of.read_steps,
    "restarts": of.read_moments,
    "rollbacks": of.read_steps,
}
TOP: Final[Mapping[str, Reader]] = {
    "seed": of.read_integer,
    "start": of.read_moment,
    "duration": of.read_seconds,
    "scale": of.read_number,
}
"""What stands above all tables."""
SIZES: Final[Mapping[str, Reader]] = {
    "median": of.read_integer,
    "spread": of.read_number,
    "least": of.read_integer,
    "most": of.read_integer,
}
"""What the table ``source.sizes`` has."""
BURST: Final[Mapping[str, Reader]] = {
    "at": of.read_time_of_day,
    "zone": of.read_text,
    "days": of.read_weekdays,
    "changes": of.read_integer,
}
"""What each table of ``source.bursts`` has."""
TABLES: Final[Mapping[str, Mapping[str, Reader]]] = {
    "source": {
        "resources": of.read_integer,
        "sizes": _sizes,
        "media_types": of.read_texts,
        "changes": of.read_rate,
        "bursts": _bursts,
        "create": of.read_number,
        "update": of.read_number,
        "delete": of.read_number,
    },
    "publish": {
        "strategy": of.read_strategy,
        "every": of.read_seconds,
        "rotate": of.read_seconds,
        "rebase": of.read_seconds,
        "keep": of.read_seconds,
        "push": of.read_flag,
        "dumps": of.read_flag,
        "dump_every": of.read_seconds,
        "max_package": of.read_size,
        "max_entries": of.read_integer,
    },
    "destination": {
        "name": of.read_text,
        "every": of.read_seconds,
        "dumps": of.read_dumps,
        "jobs": of.read_integer,
        "latency": of.read_seconds,
        "bandwidth": of.read_byte_rate,
        "offline": of.read_spans,
    },
    # A new kind of fault needs nothing here: it is a rate, or has its times.
    "faults": {
        it.name: _SPECIAL.get(
            it.name, of.read_share if isinstance(it.default, float) else of.read_spans
        )
        for it in fields(Faults)
    },
}
"""What each table has: its keys, each with the function that reads its value."""
