"""One table of the configuration file: its keys are options of a command."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from resourcesync.cli.setting_values import convert_setting
from resourcesync.config.files import ConfigFile
from resourcesync.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value and where it came from.

    Attributes:
        value: As the option of that name takes it.
        written: As it is written in the file or the environment.
        origin: ``file:line``, or the variable's name.
    """

    value: Any
    written: object
    origin: str


def table_mistakes(
    file: ConfigFile, table: tuple[str, ...], keys: Mapping[str, click.Option]
) -> Iterator[ConfigurationError]:
    """Yield what is wrong in a table with these keys."""
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


def read_setting(
    file: ConfigFile, table: tuple[str, ...], key: str, keys: Mapping[str, click.Option]
) -> Setting:
    """Return the value of a key.

    Raises:
        ConfigurationError: There is no such key, or its value is wrong.
    """
    if key not in keys:
        raise file.unknown_key_error(table, key, tuple(keys))
    if key not in file.table(*table):
        raise file.key_error(table, key, "is missing")
    written = file.table(*table)[key]
    try:
        value = convert_setting(keys[key], written)
    except ConfigurationError as error:
        raise file.key_error(table, key, error.message, hint=error.hint) from None
    if key == "ca_file" or (table, key) == (("log",), "file"):
        value = _resolve_file(file, table, key, value)
    return Setting(value=value, written=written, origin=file.location(table, key))


def _resolve_file(file: ConfigFile, table: tuple[str, ...], key: str, value: str) -> str:
    """Return the path of a file, from the folder of the configuration if it is no whole path."""
    if not value or "\0" in value:
        raise file.key_error(table, key, "must be a file")
    try:
        return str(file.path.parent / Path(value).expanduser())
    except RuntimeError:
        raise file.key_error(table, key, "names a user who is not there") from None
