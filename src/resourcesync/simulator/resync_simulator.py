"""Configurations of the resync-simulator (YAML), as settings of our simulated Source."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from resourcesync.errors import ConfigurationError
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.simulator.live import CAPABILITIES, WELL_KNOWN, LiveSettings

_MOST_BYTES: Final = 1 << 20
_MOST_RESOURCES: Final = 1_000_000
_MOST_PAYLOAD: Final = 100_000_000
_MOST_CHANGES: Final = 100_000
_YEAR: Final = 366 * 86_400
_SHORTEST: Final = 0.001
_ANY: Final = -1
_RESERVED_PATHS: Final = frozenset({"", "resources", CAPABILITIES, WELL_KNOWN})
_KINDS: Final = {
    "create": ChangeKind.CREATED,
    "update": ChangeKind.UPDATED,
    "delete": ChangeKind.DELETED,
}

Table = Mapping[str, Any]


class SimulatorConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a configuration.

    Attributes:
        settings: The behaviour of the Source.
        ignored: Keys that have no meaning here, such as ``changememory.uri_file``.
    """

    settings: LiveSettings
    ignored: tuple[str, ...] = ()


def is_configuration(path: Path) -> bool:
    """True if a file has the name of a configuration of the resync-simulator."""
    return path.suffix in {".yaml", ".yml"}


def read_configuration(path: Path) -> SimulatorConfiguration:
    """Read a configuration of the resync-simulator.

    Raises:
        ConfigurationError: It cannot be read, or has a mistake.
    """
    try:
        return _parse_configuration(_load_yaml(path))
    except _MistakeError as mistake:
        raise ConfigurationError(
            f"{path} is not a configuration of the resync-simulator: {mistake}", hint=mistake.hint
        ) from mistake


class _MistakeError(ValueError):
    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def _load_yaml(path: Path) -> object:
    try:
        import yaml  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{path} is YAML, and a package that reads it is not installed",
            hint="pip install 'resourcesync[simulate]'",
        ) from error
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise ConfigurationError(f"{path} is longer than 1 MiB")
        return yaml.safe_load(text)
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} is not YAML: {error}"[:500]) from error


def _parse_configuration(written: object) -> SimulatorConfiguration:
    top = _table(written, "the file")
    if "source" not in top:
        raise _MistakeError("it has no table source")
    _check_keys(top, {"source", "resource_list_builder", "changememory", "publisher"}, "")
    source, lists, changes = (
        _read(top.get(name) or {}, name, _READERS[name])
        for name in ("source", "resource_list_builder", "changememory")
    )
    usual = LiveSettings()
    listed = changes.get("uri_path", usual.change_list)
    if changes.get("class") == "StaticChangeList":
        listed = f"{listed}/{changes.get('uri_file', 'most_recent.xml')}"
    settings = LiveSettings(
        **{key: source[key] for key in source.keys() & set(LiveSettings.__struct_fields__)},
        max_changes=changes.get("max_changes", usual.max_changes),
        resource_list=lists.get("uri_path", usual.resource_list),
        change_list=listed,
    )
    paths = settings.resource_list, settings.change_list
    if paths[0] == paths[1]:
        raise _MistakeError(f"both lists are at {paths[0]!r}", "give one another uri_path")
    for path in paths:
        if path in _RESERVED_PATHS or path.startswith("resources/"):
            raise _MistakeError(f"the path {path!r} of a list is used already")
    return SimulatorConfiguration(
        settings=settings, ignored=tuple(_ignored(top, source, lists, changes))
    )


def _ignored(top: Table, source: Table, lists: Table, changes: Table) -> list[str]:
    found = ["publisher"] if top.get("publisher") else []
    if "source_description_uri" in source:
        found.append("source.source_description_uri")
    for name, table in (("resource_list_builder", lists), ("changememory", changes)):
        if str(table.get("class", "")).startswith("Static"):
            found.append(f"{name}.class")
        found += [f"{name}.{key}" for key in ("interval", "max_sitemap_entries") if key in table]
    if "uri_file" in changes and changes.get("class") != "StaticChangeList":
        found.append("changememory.uri_file")
    return found


def _read(table: object, name: str, readers: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    found = _table(table, name)
    _check_keys(found, set(readers), f"{name}.")
    values: dict[str, Any] = {}
    for key, value in found.items():
        try:
            values[key] = readers[key](value)
        except ValueError as error:
            raise _MistakeError(
                f"{name}.{key} is {value!r}"[:200] + f", but must be {error}"
            ) from None
    return values


def _table(value: object, name: str) -> Table:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise _MistakeError(f"{name} must be a table")
    return value


def _check_keys(table: Table, known: set[str], place: str) -> None:
    for key in table:
        if key not in known:
            raise _MistakeError(
                f"unknown key {place}{key}", f"known here: {', '.join(sorted(known))}"
            )


def _integer_reader(least: int, most: int) -> Callable[[Any], int]:
    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"a whole number from {least:,} to {most:,}")
        return value

    return read


def _delay(value: object) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and _SHORTEST <= value <= _YEAR):  # type: ignore[arg-type,operator]
        raise ValueError("seconds, from 0.001 to a year")
    return float(value)  # type: ignore[arg-type]


def _text(value: object) -> str:
    if not isinstance(value, str | int | float):
        raise ValueError("a string")  # noqa: TRY004 - of a configuration, as all others
    return str(value)


def _path(value: object) -> str:
    path = _text(value).strip("/")
    if any(name in path for name in " ?#%\\") or not path.isascii() or not path.isprintable():
        raise ValueError("a path such as lists/changelist.xml")
    return path


def _kinds(value: object) -> tuple[ChangeKind, ...]:
    if not isinstance(value, list) or not value or not all(str(item) in _KINDS for item in value):
        raise ValueError(f"a list of some of {', '.join(_KINDS)}")
    return tuple(_KINDS[item] for item in value)


def _one_of(*names: str) -> Callable[[Any], str]:
    def read(value: object) -> str:
        if value not in names:
            raise ValueError(" or ".join(names))
        return str(value)

    return read


def _changes(value: object) -> int:
    return _MOST_CHANGES if value == _ANY else _integer_reader(1, _MOST_CHANGES)(value)


_READERS: Final[Mapping[str, Mapping[str, Callable[[Any], Any]]]] = {
    "source": {
        "name": _text,
        "number_of_resources": _integer_reader(0, _MOST_RESOURCES),
        "change_delay": _delay,
        "event_types": _kinds,
        "average_payload": _integer_reader(0, _MOST_PAYLOAD),
        "max_events": _integer_reader(_ANY, 1 << 62),
        "stats_interval": _text,  # of the log of the resync-simulator
        "source_description_uri": _text,
    },
    "resource_list_builder": {
        "class": _one_of("DynamicResourceListBuilder", "StaticResourceListBuilder"),
        "uri_path": _path,
        "interval": _text,
        "max_sitemap_entries": _text,
    },
    "changememory": {
        "class": _one_of("DynamicChangeList", "StaticChangeList"),
        "uri_path": _path,
        "uri_file": _path,
        "max_changes": _changes,
        "max_sitemap_entries": _text,
    },
}
