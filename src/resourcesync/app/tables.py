"""Tables of settings in the configuration file: their keys, their values and their mistakes.

A value of the command line or the environment overrides the mirror's table, which overrides
``[defaults]``.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from resourcesync.destination.options import PullOptions
from resourcesync.errors import ConfigurationError
from resourcesync.model.settings import FILE
from resourcesync.settings import mirror
from resourcesync.settings.files import ConfigFile
from resourcesync.settings.mirror import Network, PlaceSettings, SecretNames
from resourcesync.settings.schema import Field, fields_of, from_file, in_file

V = TypeVar("V")
Keys = Mapping[str, Field]
TABLES: Final = ("defaults", "mirror", "source", "auth", "watch", "log")
"""The tables of the configuration file."""
MIRROR_NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}")
_CONFLICTS: Final = (frozenset({"set", "all_sets"}), frozenset({"every", "cron"}))
PULL: Final = (PullOptions, PlaceSettings, Network, SecretNames)
"""The settings of pulls."""


def pull_keys() -> Keys:
    """Return the settings of pulls by their names in the configuration file."""
    return in_file(*PULL)


def mirror_keys() -> Keys:
    """Return the keys of ``[mirror.NAME]``."""
    return {
        **in_file(mirror.MirrorPlace, mirror.FreshnessSettings, mirror.ScheduleSettings),
        **pull_keys(),
    }


def default_keys() -> Keys:
    """Return the keys of ``[defaults]``: no secret, since it would go to every mirror's Source."""
    own = in_file(*PULL, mirror.FreshnessSettings, mirror.ScheduleSettings)
    return {key: field for key, field in own.items() if key != "auth"}


def service_keys() -> Keys:
    """Return the keys of ``[watch]``."""
    return fields_of(mirror.ServiceSettings)


def log_keys() -> Keys:
    """Return the keys of ``[log]``."""
    return fields_of(mirror.LogSettings)


def source_keys() -> dict[str, Field]:
    """Return the keys of ``[source.NAME]``."""
    own = fields_of(mirror.SystemSettings, mirror.FreshnessSettings)
    return {key: own[key] for key in ("path", "max_lag")} | publish_keys()


def publish_keys() -> dict[str, Field]:
    """Return the settings of ``publish`` by their names in the configuration file."""
    from resourcesync.settings.mirror import SystemSettings  # noqa: PLC0415 - not for pulls
    from resourcesync.source.publication_settings import PublicationSettings  # noqa: PLC0415 - not for pulls

    network = fields_of(Network, SecretNames)
    connection = {key: network[key] for key in ("auth", "proxy", "proxy_auth", "ca_file")}
    own = {
        key: field
        for key, field in fields_of(PublicationSettings, SystemSettings).items()
        if key != "path"
    }
    return own | connection


class SettingValue(NamedTuple):
    """One value and its origin."""

    value: Any
    written: object
    origin: str


def read_setting(file: ConfigFile, table: tuple[str, ...], key: str, keys: Keys) -> SettingValue:
    """Return the value of a key."""
    if key not in keys:
        raise file.unknown_key_error(table, key, tuple(keys))
    if key not in file.table(*table):
        raise file.key_error(table, key, "is missing")
    written = file.table(*table)[key]
    try:
        value = from_file(keys[key], written)
    except ConfigurationError as error:
        raise file.key_error(table, key, error.message, hint=error.hint) from None
    if keys[key].form is FILE:
        value = _resolve_file(file, table, key, value)
    return SettingValue(value=value, written=written, origin=file.location(table, key))


def _resolve_file(file: ConfigFile, table: tuple[str, ...], key: str, value: str) -> str:
    """Return the path of a file; a relative path starts at the folder of the configuration."""
    if not value or "\0" in value:
        raise file.key_error(table, key, "must be a file")
    try:
        return str(file.path.parent / Path(value).expanduser())
    except RuntimeError:
        raise file.key_error(table, key, "names a user who does not exist") from None


def table_mistakes(
    file: ConfigFile, table: tuple[str, ...], keys: Keys
) -> Iterator[ConfigurationError]:
    """Yield the mistakes in a table with these keys."""
    try:
        names = list(file.table(*table))
    except ConfigurationError as error:
        yield error
        return
    for key in names:
        try:
            read_setting(file, table, key, keys)
        except ConfigurationError as error:
            yield error


def overlay(*layers: Mapping[str, V]) -> dict[str, V]:
    """Return the values of all layers by their keys.

    A layer overrides the ones before it, also in keys that exclude one of its own. A proxy does
    not get the secret that an earlier layer has for another proxy.
    """
    merged: dict[str, V] = {}
    for layer in layers:
        hidden = _hidden_keys(layer.keys())
        merged = {key: value for key, value in merged.items() if key not in hidden}
        merged.update(layer)
    return merged


def _hidden_keys(keys: Collection[str]) -> frozenset[str]:
    hidden = frozenset().union(*(rivals for rivals in _CONFLICTS if rivals.intersection(keys)))
    return hidden | {"proxy_auth"} if "proxy" in keys else hidden
