"""The configuration file: its places, its content, and the lines of its mistakes.

This module reads TOML and knows no option: the caller interprets the keys.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from resourcesync.errors import ConfigurationError, Remedy
from resourcesync.settings import environment

NAME: Final = "resourcesync.toml"
SYSTEM: Final = Path("/etc/resourcesync") / NAME
VARIABLE: Final = f"{environment.PREFIX}_CONFIG"
MOST_BYTES: Final = 1_048_576

_NEAR: Final = 0.8
"""Similarity above which an unknown key is a misspelt known one, from 0 to 1."""

_KEY_ALIASES: Final = {
    **dict.fromkeys(("path", "folder", "directory", "dir", "target", "destination"), "dest"),
    **dict.fromkeys(("url", "uri", "address"), "source"),
}
"""Names of our keys in other programs."""

_OWN_FOLDER: Final = ".resourcesync"
_HEADER: Final = re.compile(r"\s*\[[^\[\]]*\]\s*(?:#.*)?")
_KEY: Final = re.compile(r"\s*([\"']?)([A-Za-z0-9_-]+)\1\s*[=.]")
_OVERRIDE: Final = f"{environment.PREFIX}_MIRROR__"


class ConfigLocation(NamedTuple):
    """A possible place of a configuration file.

    Attributes:
        path: The path.
        note: The reason why it counts, or does not.
        counts: True if a file there counts.
        is_named: True if the operator named it: then it must exist, whoever owns it.
    """

    path: Path
    note: str
    counts: bool = True
    is_named: bool = False


class ConfigFile(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration file as it was read.

    Attributes:
        path: Its path.
        tables: Its content.
        text: Its text, to find the line of a mistake.
    """

    path: Path
    tables: Mapping[str, object]
    text: str

    def __repr__(self) -> str:
        return f"ConfigFile(path={self.path!r})"

    def table(self, *names: str) -> Mapping[str, object]:
        """Return a table; empty when there is none.

        Raises:
            ConfigurationError: It is not a table.
        """
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
        line = _line_of(self.text, table, key)
        return f"{self.path}:{line}" if line else str(self.path)

    def _error_at(
        self, message: str, table: tuple[str, ...], key: str, hint: str
    ) -> ConfigurationError:
        evidence = (("file", self.location(table, key)),)
        return ConfigurationError(message, evidence=evidence, hint=hint)


def config_locations(named: Path | None = None, *, system: Path = SYSTEM) -> list[ConfigLocation]:
    """Return the possible places of a configuration file, in order; the first that exists counts.

    A file in the current folder does not count when that folder is in a mirror or a published
    tree: there a Source wrote it, or everyone can read it.

    Args:
        named: The file that the operator named; then there is no other place. The variable
            ``RESOURCESYNC_CONFIG`` names one too.
        system: The place for the whole machine.
    """
    if named is not None:
        # The command line uses the variable as the option's default.
        by = VARIABLE if environment.variable(VARIABLE) == str(named) else "the command"
        return [ConfigLocation(named, f"named by {by}", is_named=True)]
    if by_variable := environment.variable(VARIABLE):
        return [ConfigLocation(Path(by_variable), f"named by {VARIABLE}", is_named=True)]
    current = Path.cwd()
    inside = [path for path in (current, *current.parents) if os.path.lexists(path / _OWN_FOLDER)]
    note = f"{inside[0]} is a mirror or a published tree" if inside else "the current folder"
    user = environment.configuration_folder()
    return [
        ConfigLocation(Path(NAME), note, counts=not inside),
        ConfigLocation(user / NAME, "the user's settings"),
        ConfigLocation(system, "the settings of this machine"),
    ]


def find(named: Path | None = None, *, system: Path = SYSTEM) -> ConfigFile | None:
    """Read the first configuration file there is; ``None`` when there is none.

    Raises:
        ConfigurationError: It cannot be read, is not TOML, or is in the current folder and
            belongs to somebody else.
    """
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
                hint="if you trust it, name it",
                remedy=Remedy("name-configuration", value=str(place.path)),
            )
        return read(place.path)
    return None


def read(path: Path) -> ConfigFile:
    """Read a configuration file.

    Raises:
        ConfigurationError: It cannot be read, is too large, or is not TOML.
    """
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
        return ConfigFile(path=path, tables=tomllib.loads(text), text=text)
    except UnicodeDecodeError:
        raise _unreadable(path, "it is not UTF-8") from None
    except RecursionError:
        raise _unreadable(path, "its values are nested too deep") from None
    except ValueError as error:  # also numbers of more digits than Python turns into one
        raise _unreadable(path, f"it is not TOML: {error}") from error


def overrides(mirror: str, environ: Mapping[str, str] | None = None) -> dict[str, tuple[str, str]]:
    """Return the keys of one mirror that the environment sets: the variable and its text.

    ``RESOURCESYNC_MIRROR__ARXIV_PDF__JOBS=5`` is ``jobs`` of the mirror ``arxiv-pdf``.
    """
    found = os.environ if environ is None else environ  # noqa: TID251 - this is the reader
    head = f"{_OVERRIDE}{re.sub('[^A-Z0-9]', '_', mirror.upper())}__"
    return {
        name.removeprefix(head).lower(): (name, text)
        for name, text in found.items()
        if name.startswith(head) and name != head
    }


def _unreadable(path: Path, reason: str) -> ConfigurationError:
    return ConfigurationError(f"{path} cannot be used: {reason}")


def _line_of(text: str, table: tuple[str, ...], key: str) -> int:
    """Return the line of a key, else of its table, else 0: good enough for a message."""
    at: tuple[str, ...] = ()
    best = 0
    for number, line in enumerate(text.splitlines(), 1):
        if _HEADER.fullmatch(line):
            at = tuple(_path_of(line))
            if at == (*table, key):
                return number
            best = best or (number if at == table else 0)
        elif at == table and (match := _KEY.match(line)) and match[2] == key:
            return number
    return best


def _path_of(header: str) -> Iterator[str]:
    """Yield the names in ``[a.b]``; nothing for another line, inside a long text."""
    import tomllib  # noqa: PLC0415 - as above

    try:
        found: object = tomllib.loads(header)
    except ValueError:
        return
    while isinstance(found, dict) and found:
        [(name, found)] = found.items()
        yield name
