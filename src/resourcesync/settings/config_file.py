"""The configuration: its files, their places and content, and the lines of its mistakes.

This module reads TOML and knows no option: the caller has the keys of each table.
"""

import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from resourcesync.errors import ConfigurationError, quoted
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.settings import FILE
from resourcesync.settings import environment
from resourcesync.settings.schema import Field, from_file

NAME: Final = "resourcesync.toml"
PARTS: Final = "mirrors.d"
"""Folder of the parts of a configuration, beside its file."""
SYSTEM: Final = Path("/etc/resourcesync") / NAME
VARIABLE: Final = f"{environment.PREFIX}_CONFIG"
MOST_BYTES: Final = 16_777_216
"""Most bytes of one file of a configuration."""

_PART_TABLES: Final = ("mirror", "source", "auth")
"""The tables that may be in a part: each has a name of its own for all of its content."""

_NEAR: Final = 0.8
"""Similarity above which an unknown key is a misspelt known one, from 0 to 1."""

_KEY_ALIASES: Final = {
    **dict.fromkeys(("path", "folder", "directory", "dir", "target", "destination"), "dest"),
    **dict.fromkeys(("url", "uri", "address"), "source"),
}
"""Names of our keys in other programs."""

_HEADER: Final = re.compile(r"\s*\[[^\[\]]*\]\s*(?:#.*)?")
_PLAIN_HEADER: Final = re.compile(r"\[([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\]\s*(?:#.*)?")
_KEY: Final = re.compile(r"\s*([\"']?)([A-Za-z0-9_-]+)\1\s*[=.]")
_OVERRIDE: Final = f"{environment.PREFIX}_MIRROR__"


class ConfigLocation(NamedTuple):
    """A possible place of a configuration file."""

    path: Path
    note: str
    """The reason why it counts, or does not."""
    counts: bool = True
    is_named: bool = False
    """True if the operator named it: then it must exist, whoever owns it."""


class ConfigText(NamedTuple):
    """The text of one file of a configuration, to find the lines of its mistakes."""

    path: Path
    text: str


class ConfigFile(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A configuration as it was read: its file, and its parts in ``mirrors.d``."""

    path: Path
    tables: Mapping[str, object]
    texts: tuple[ConfigText, ...]

    def __repr__(self) -> str:
        return f"ConfigFile(path={self.path!r})"

    @cached_property
    def _lines(self) -> Mapping[tuple[str, ...], str]:
        found: dict[tuple[str, ...], str] = {}
        for path, text in self.texts:
            for name, line in _names_in(text):
                found.setdefault(name, f"{path}:{line}")
        return found

    def table(self, *names: str) -> Mapping[str, object]:
        """Return a table; empty when there is none."""
        found: object = self.tables
        for depth, name in enumerate(names):
            assert isinstance(found, Mapping)
            found = found.get(name, {})
            if not isinstance(found, Mapping):
                raise self.key_error(names[:depth], name, "must be a table")
        assert isinstance(found, Mapping)
        return found

    def key_error(
        self, table: tuple[str, ...], key: str, reason: str, *, hint: str = ""
    ) -> ConfigurationError:
        """Return the error that names a key, its table and its line.

        The value is not shown: it may be a secret in the wrong place.
        """
        where = f" in [{'.'.join(table)}]" if table else ""
        return self._error_at(f"`{key}`{where} {reason}", table, key, hint)

    def unknown_key_error(
        self, table: tuple[str, ...], key: str, known: tuple[str, ...]
    ) -> ConfigurationError:
        """Return the error of an unknown key or table, with the most similar known one."""
        where = f"in [{'.'.join(table)}]" if table else "at the top"
        from difflib import get_close_matches  # noqa: PLC0415 - for a mistake only

        word = key.lower().replace("-", "_")
        near = [name for name in (_KEY_ALIASES.get(word),) if name in known]
        near = near or get_close_matches(word, known, n=1, cutoff=_NEAR)
        hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(sorted(known))}"
        return self._error_at(f"unknown key `{key[:64]}` {where}", table, key, hint)

    def location(self, table: tuple[str, ...], key: str) -> str:
        """Return ``file:line`` of a key, or of its table, or the file alone."""
        return self._lines.get((*table, key)) or self._lines.get(table) or str(self.path)

    def _error_at(
        self, message: str, table: tuple[str, ...], key: str, hint: str
    ) -> ConfigurationError:
        evidence = (("file", self.location(table, key)),)
        return ConfigurationError(message, evidence=evidence, hint=hint)


def config_locations(named: Path | None = None, *, system: Path = SYSTEM) -> list[ConfigLocation]:
    """Return the possible places of a configuration file, in order; the first that exists counts.

    A file that is named, also by the variable ``RESOURCESYNC_CONFIG``, is the only place.

    A file in the current folder does not count when that folder is in a mirror or a published
    tree: there a Source wrote it, or everyone can read it.
    """
    if named is not None:
        # The command line uses the variable as the option's default.
        by = VARIABLE if environment.variable(VARIABLE) == str(named) else "the command"
        return [ConfigLocation(named, f"named by {by}", is_named=True)]
    if by_variable := environment.variable(VARIABLE):
        return [ConfigLocation(Path(by_variable), f"named by {VARIABLE}", is_named=True)]
    current = Path.cwd()
    inside = [path for path in (current, *current.parents) if os.path.lexists(path / OWN_FOLDER)]
    note = f"{inside[0]} is a mirror or a published tree" if inside else "the current folder"
    user = environment.configuration_folder()
    return [
        ConfigLocation(Path(NAME), note, counts=not inside),
        ConfigLocation(user / NAME, "the user's settings"),
        ConfigLocation(system, "the settings of this machine"),
    ]


def find(named: Path | None = None, *, system: Path = SYSTEM) -> ConfigFile | None:
    """Read the first configuration file there is; ``None`` when there is none."""
    for place in config_locations(named, system=system):
        if not place.counts:
            continue
        try:
            owner = place.path.stat().st_uid
        except (FileNotFoundError, NotADirectoryError):
            if place.is_named:
                reason = f"there is no configuration file {place.path}"
                raise ConfigurationError(reason, evidence=(("why", place.note),)) from None
            continue
        except OSError as error:
            raise _unreadable(place.path, error.strerror or str(error)) from error
        if not place.is_named and owner not in {0, os.geteuid()}:
            raise ConfigurationError(
                f"{place.path} belongs to another user",
                hint=f"if you trust it, name it: --config {quoted(place.path, 'FILE')}",
            )
        return read(place.path)
    return None


def read(path: Path) -> ConfigFile:
    """Read a configuration: its file, and the files ``mirrors.d/*.toml`` beside it."""
    tables, text = _read_toml(path)
    texts = [ConfigText(path, text)]
    merged = {
        name: dict(table) if name in _PART_TABLES and isinstance(table, dict) else table
        for name, table in tables.items()
    }
    for part in _parts_of(path):
        own, text = _read_toml(part)
        texts.append(ConfigText(part, text))
        _merge(merged, ConfigFile(path=part, tables=own, texts=(texts[-1],)), texts)
    return ConfigFile(path=path, tables=merged, texts=tuple(texts))


def _parts_of(path: Path) -> list[Path]:
    folder = path.parent / PARTS
    try:
        parts = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unreadable(folder, error.strerror or str(error)) from error
    parts = [part for part in parts if part.suffix == ".toml" and part.name[0] != "."]
    owners = {0, os.geteuid(), _owner_of(path)}
    for part in parts:
        if _owner_of(part) not in owners:
            raise _unreadable(part, f"it belongs to another user than {path}")
    return parts


def _owner_of(path: Path) -> int:
    try:
        return path.stat().st_uid
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error


def _merge(merged: dict[str, object], part: ConfigFile, texts: list[ConfigText]) -> None:
    for kind in part.tables:
        if kind not in _PART_TABLES:
            only = ", ".join(f"[{name}.NAME]" for name in _PART_TABLES)
            reason = f"belongs into {NAME}: a part has only {only}"
            raise part.key_error((), kind, reason)
        known = merged.setdefault(kind, {})
        if not isinstance(known, dict):  # a mistake in the file, which is reported later
            continue
        for name in part.table(kind):
            if name in known:
                before = ConfigFile(path=texts[0].path, tables=merged, texts=tuple(texts[:-1]))
                reason = f"is in {before.location((kind,), name)} too"
                raise part.key_error((kind,), name, reason, hint="remove one of them")
        known.update(part.table(kind))


def _read_toml(path: Path) -> tuple[Mapping[str, object], str]:
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    if len(data) > MOST_BYTES:
        raise _unreadable(path, f"it has more than {MOST_BYTES} bytes")
    import tomllib  # noqa: PLC0415 - many have no file

    try:
        text = data.decode("utf-8")
        return tomllib.loads(text), text
    except UnicodeDecodeError:
        raise _unreadable(path, "it is not UTF-8") from None
    except RecursionError:
        raise _unreadable(path, "its values are nested too deep") from None
    except ValueError as error:  # also numbers of more digits than Python turns into one
        raise _unreadable(path, f"it is not TOML: {error}") from error


def override_variables() -> dict[str, str]:
    """Return the variables of the environment that set keys of mirrors."""
    found = os.environ  # noqa: TID251 - this is the reader
    return {name: text for name, text in found.items() if name.startswith(_OVERRIDE)}


def overrides(mirror: str, variables: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the keys of one mirror that the environment sets: the variable and its text.

    ``RESOURCESYNC_MIRROR__ARXIV_PDF__JOBS=5`` is ``jobs`` of the mirror ``arxiv-pdf``.
    """
    if not variables:
        return {}
    head = f"{_OVERRIDE}{re.sub('[^A-Z0-9]', '_', mirror.upper())}__"
    return {
        name.removeprefix(head).lower(): (name, text)
        for name, text in variables.items()
        if name.startswith(head) and name != head
    }


def _unreadable(path: Path, reason: str) -> ConfigurationError:
    return ConfigurationError(f"{path} cannot be used: {reason}")


def _names_in(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if _HEADER.fullmatch(line):
            table = tuple(_path_of(line))
            yield table, number
        elif match := _KEY.match(line):
            yield (*table, match[2]), number


def _path_of(header: str) -> Iterator[str]:
    if plain := _PLAIN_HEADER.fullmatch(header.strip()):
        yield from plain[1].split(".")
        return
    import tomllib  # noqa: PLC0415 - as above

    try:
        found: object = tomllib.loads(header)
    except ValueError:
        return
    while isinstance(found, dict) and found:
        [(name, found)] = found.items()
        yield name


class SettingValue(NamedTuple):
    """One value and its origin."""

    value: Any
    written: object
    origin: str


def read_setting(
    file: ConfigFile, table: tuple[str, ...], key: str, keys: Mapping[str, Field]
) -> SettingValue:
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
        value = str(resolve_path(file, table, key, value, "file"))
    return SettingValue(value=value, written=written, origin=file.location(table, key))


def resolve_path(file: ConfigFile, table: tuple[str, ...], key: str, value: str, kind: str) -> Path:
    """Return the path of a file or folder; a relative one starts at that of the configuration."""
    if not value or "\0" in value:
        raise file.key_error(table, key, f"must be a {kind}")
    try:
        return file.path.parent / Path(value).expanduser()
    except RuntimeError:
        raise file.key_error(table, key, "names a user who does not exist") from None


def table_mistakes(
    file: ConfigFile, table: tuple[str, ...], keys: Mapping[str, Field]
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
