"""The mirrors of the configuration file: their settings, in the options of ``pull``, and folders.

No two mirrors may share a folder, or have folders inside one another.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from resourcesync import config
from resourcesync.cli import options
from resourcesync.cli.mirror_options import pull_keys, service_keys, watch_keys
from resourcesync.cli.options import (
    Setting,
    convert_setting,
    merge_connection,
    read_setting,
    table_mistakes,
    without_conflicts,
)
from resourcesync.cli.remedies import with_command
from resourcesync.config import files
from resourcesync.config.files import ConfigFile
from resourcesync.errors import ConfigurationError

if TYPE_CHECKING:
    from resourcesync.wiring.credentials import Credentials
    from resourcesync.wiring.mirrors import Network


def configured_folder(
    file: ConfigFile, table: tuple[str, ...], dest: str, key: str = "dest"
) -> Path:
    """Return the folder of ``dest``; a relative path starts at the folder of the file.

    Raises:
        ConfigurationError: It is not a folder.
    """
    if not dest or "://" in dest or "\0" in dest:
        raise file.key_error(table, key, "must be a folder")
    try:
        return file.path.parent / Path(dest).expanduser()
    except RuntimeError:
        raise file.key_error(table, key, "names a user who does not exist") from None


def locate_mirror(place: str, state: str | None) -> tuple[Path, str]:
    """Return a mirror's folder on this machine, and the address of its store; empty for none.

    Args:
        place: A folder, or the address of a store.
        state: The folder that was named for the mirror's state.

    Raises:
        ConfigurationError: No plug-in knows the address, or a folder got a ``state`` of its own.
    """
    if ":" in place:
        from resourcesync.wiring import stores  # noqa: PLC0415 - help stays quick

        if stores.is_store_address(place):
            home = stores.home_of(place, state)
            return home.folder, home.store
    if state is not None:
        raise ConfigurationError(
            f"{place} is a folder, which contains its own state",
            hint="--state is only for copies in a store: leave it out",
        )
    return Path(place), ""


def locate_configured_mirror(
    file: ConfigFile, table: tuple[str, ...], dest: str, state: str | None
) -> tuple[Path, str]:
    """Return the same for the values of a table; relative paths start at the folder of the file.

    Raises:
        ConfigurationError: As `locate_mirror` and `configured_folder` do.
    """
    where = None if state is None else str(configured_folder(file, table, state, "state"))
    try:
        folder, store = locate_mirror(dest, where)
    except ConfigurationError as error:
        key = "dest" if "://" in dest else "state"
        reason = "must be a folder" if key == "dest" else "is for the address of a store in `dest`"
        raise file.key_error(table, key, reason, hint=error.message) from error
    return (folder, store) if store else (configured_folder(file, table, dest), "")


def check_no_overlap(file: ConfigFile, name: str, dest: Path, folders: Mapping[str, Path]) -> None:
    """Refuse a mirror's folder that is, contains, or lies inside the folder of another mirror.

    Each of the two would take the other's files for damage, and pulls would undo each other.

    Args:
        file: The configuration file.
        name: The mirror.
        dest: The mirror's folder.
        folders: The folders of all mirrors, resolved, as far as their tables are valid.

    Raises:
        ConfigurationError: The folders overlap.
    """
    own = resolve_folder(dest)
    for other, folder in folders.items():
        if other == name:
            continue
        if own == folder:
            reason = f"is the folder of [mirror.{other}] too"
        elif own.is_relative_to(folder):
            reason = f"is inside the folder of [mirror.{other}]"
        elif folder.is_relative_to(own):
            reason = f"contains the folder of [mirror.{other}]"
        else:
            continue
        hint = "give each mirror its own folder"
        raise file.key_error(("mirror", name), "dest", reason, hint=hint)


def no_mirrors_error(
    file: ConfigFile | None, looked: tuple[tuple[str, str], ...]
) -> ConfigurationError:
    """Return the error that no mirror is configured.

    Args:
        file: The configuration file; ``None`` when there is none.
        looked: The places that were searched, as evidence.
    """
    hint = "resourcesync config init writes an example file"
    if file is not None:
        hint = f"edit that file: add a table [mirror.NAME] with source and dest to {file.path}"
    return ConfigurationError("no mirror is configured", evidence=looked, hint=hint)


def resolve_folder(folder: Path) -> Path:
    """Return the path of a folder, with all links resolved."""
    try:
        return folder.resolve()
    except (OSError, RuntimeError):  # a circle of links: it cannot be used anyway
        return folder.absolute()


TABLES: Final = ("defaults", "mirror", "source", "auth", "watch", "log")

NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}")
_LIMITS: Final = {
    "max_lag": click.Option(["--max-lag"], type=options.DURATION),
    "max_quiet": click.Option(["--max-quiet"], type=options.DURATION),
}


@cache
def mirror_keys() -> Mapping[str, click.Option]:
    """Return the keys of ``[mirror.NAME]``."""
    return {
        "source": click.Option(["--source"]),
        "dest": click.Option(["--dest"]),
        **_LIMITS,
        **watch_keys(),
        **pull_keys(),
    }


@cache
def default_keys() -> Mapping[str, click.Option]:
    """Return the keys of ``[defaults]``: no secret, since it would go to every mirror's Source."""
    own = {name: option for name, option in pull_keys().items() if name != "auth"}
    return {**own, **_LIMITS, **watch_keys()}


@cache
def log_keys() -> Mapping[str, click.Option]:
    """Return the keys of ``[log]``."""
    return {
        "file": click.Option(["--file"]),
        "format": click.Option(["--format"], type=click.Choice(["text", "json"])),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredMirror:
    """One table ``[mirror.NAME]``, with the values of ``[defaults]`` and the environment.

    Attributes:
        name: The mirror's name.
        dest: The mirror's folder.
        store: The address of the store with the copies; empty for the folder.
        settings: All keys: those of the table, and those of ``[defaults]``.
    """

    name: str
    dest: Path
    settings: Mapping[str, Setting] = field(repr=False)
    store: str = ""

    @property
    def source(self) -> str:
        """The Source's address."""
        return str(self.settings["source"].value)

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """Accepted seconds of lag, and accepted seconds without a publication of the Source."""
        lag, quiet = (self.settings.get(name) for name in _LIMITS)
        return _seconds(lag), _seconds(quiet)


def _seconds(setting: Setting | None) -> float | None:
    return None if setting is None else float(setting.value)


class MirrorConfiguration:
    """The mirrors and secrets of a configuration file; empty without a file.

    A mistake in one mirror's table is reported when that mirror is requested, so that the others
    still work; a mistake in the shared tables is reported at once.

    Args:
        file: The file.

    Raises:
        ConfigurationError: A table is unknown, or ``[defaults]`` has a mistake.
    """

    def __init__(self, file: ConfigFile | None) -> None:
        self.file = file
        for error in () if file is None else global_mistakes(file):
            raise error
        self.defaults: Mapping[str, Setting] = self._settings(("defaults",), default_keys)
        self.service: Mapping[str, Setting] = self._settings(("watch",), service_keys)
        self.log: Mapping[str, Setting] = self._settings(("log",), log_keys)
        self.names: tuple[str, ...] = tuple(self._table("mirror"))

    def _table(self, *names: str) -> Mapping[str, object]:
        return {} if self.file is None else self.file.table(*names)

    def _settings(
        self, table: tuple[str, ...], keys: Callable[[], Mapping[str, click.Option]]
    ) -> dict[str, Setting]:
        if self.file is None:
            return {}
        return {key: read_setting(self.file, table, key, keys()) for key in self.file.table(*table)}

    def mirror(self, name: str) -> ConfiguredMirror:
        """Return one mirror.

        Raises:
            ConfigurationError: It does not exist, or its table has a mistake.
        """
        if name not in self.names or self.file is None:
            raise ConfigurationError(
                f"there is no mirror {name} in the configuration",
                evidence=self._searched_files(),
                hint=f"known: {', '.join(self.names)}" if self.names else "",
            )
        table = ("mirror", name)
        if not NAME.fullmatch(name):
            raise self.file.key_error(
                ("mirror",), name, "is not a valid name: use letters, digits, . _ -"
            )
        overrides = dict(_overridden(name))
        own = {**without_conflicts(self._settings(table, mirror_keys), overrides), **overrides}
        for key in ("source", "dest"):
            if key not in own:
                raise self.file.key_error(table, key, "is missing")
        settings = {**without_conflicts(self.defaults, own), **own}
        self._check(table, settings)
        dest, store = self._home(table, own["dest"], own.get("state"))
        check_no_overlap(self.file, name, dest, self._folders)
        return ConfiguredMirror(name=name, dest=dest, settings=settings, store=store)

    @cached_property
    def _folders(self) -> Mapping[str, Path]:
        """The folders of the mirrors, as far as their tables are valid."""
        assert self.file is not None
        found = {}
        for name in self.names:
            table = ("mirror", name)
            with suppress(ConfigurationError):
                text = dict(_overridden(name, "dest")).get("dest")
                dest = text or read_setting(self.file, table, "dest", mirror_keys())
                state = dict(_overridden(name, "state")).get("state")
                if state is None and "state" in self.file.table(*table):
                    state = read_setting(self.file, table, "state", mirror_keys())
                found[name] = resolve_folder(self._home(table, dest, state)[0])
        return found

    def _home(
        self, table: tuple[str, ...], dest: Setting, state: Setting | None
    ) -> tuple[Path, str]:
        assert self.file is not None
        where = None if state is None else str(state.value)
        return locate_configured_mirror(self.file, table, str(dest.value), where)

    def _check(self, table: tuple[str, ...], settings: Mapping[str, Setting]) -> None:
        assert self.file is not None
        if "://" not in str(settings["source"].value):
            raise self.file.key_error(table, "source", "must be an address, such as https://HOST/")
        for key in ("auth", "proxy_auth"):
            auth = settings.get(key)
            if auth is not None and auth.value not in self._table("auth"):
                raise self.file.key_error(
                    table, key, f"names [auth.{auth.value}], which does not exist"
                )
        if "set" in settings and "all_sets" in settings and settings["all_sets"].value:
            raise self.file.key_error(table, "all_sets", "excludes `set`: choose one")
        if "every" in settings and "cron" in settings:
            raise self.file.key_error(table, "cron", "excludes `every`: choose one")

    def folder(self, place: str) -> Path:
        """Return the folder of a mirror, from its name or its folder.

        Raises:
            ConfigurationError: The mirror's table has a mistake, or the path is a file.
        """
        if place in self.names:
            return self.mirror(place).dest
        if is_file(place):
            raise ConfigurationError(
                f"{place} is a file, not a mirror's folder", hint="name the mirror's folder"
            )
        return locate_mirror(place, None)[0]

    def network(self, place: str, way: Mapping[str, Any]) -> "Network":
        """Return the network settings for the Source of a mirror, with its secrets.

        Args:
            place: The mirror's name or folder.
            way: The options of ``options.CONNECTION`` that were given.

        Raises:
            ConfigurationError: The mirror's table has a mistake, or a secret cannot be read.
        """
        settings = self.mirror(place).settings if place in self.names else self.defaults
        values = merge_connection(settings, way)
        return self.network_from(values, str(values.get("source", "")))

    def network_from(self, values: Mapping[str, Any], source: str) -> "Network":
        """Return the network settings from the values of options, with their secrets.

        Raises:
            ConfigurationError: A secret cannot be read.
        """
        found = network_of(values, self.credentials(values.get("auth") or "", source))
        name = values.get("proxy_auth") or ""
        if not name:
            return found
        from resourcesync.wiring.credentials import read_proxy_secret  # noqa: PLC0415 - as below

        return replace(found, proxy_auth=read_proxy_secret(name, self._auth(name)))

    def credentials(self, name: str, source: str) -> "tuple[Credentials, ...]":
        """Return the secret of ``[auth.NAME]`` for a Source; none for an empty name.

        Raises:
            ConfigurationError: There is no such table, it has a mistake, or the secret cannot be
                read.
        """
        if not name:
            return ()
        from resourcesync.wiring.credentials import read_credentials  # noqa: PLC0415 - help quick
        from resourcesync.wiring.mirrors import origin_of  # noqa: PLC0415 - help stays quick

        table = self._auth(name)
        home = origin_of(source) if source else ""
        return (read_credentials(name, table, home=home),)

    def _auth(self, name: str) -> Mapping[str, object]:
        if name not in self._table("auth"):
            raise ConfigurationError(
                f"there is no [auth.{name}] in the configuration",
                evidence=self._searched_files(),
                hint="add the table, or name another one",
            )
        return self._table("auth", name)

    def no_mirrors(self) -> ConfigurationError:
        """Return the error that no mirror is configured."""
        return no_mirrors_error(self.file, self._searched_files())

    def _searched_files(self) -> tuple[tuple[str, str], ...]:
        if self.file is not None:
            return (("file", str(self.file.path)),)
        return tuple(
            ("tried", str(place.path)) for place in files.config_locations() if place.counts
        )

    def problems(self) -> Iterator[ConfigurationError]:
        """Yield every mistake in the tables of mirrors and secrets; no secret is read."""
        if self.file is None:
            return
        from resourcesync.wiring.credentials import check_credentials  # noqa: PLC0415 - as above

        for name in self.names:
            found = list(table_mistakes(self.file, ("mirror", name), mirror_keys()))
            yield from found
            try:
                if not found:
                    self.mirror(name)
                elif name in self._folders:  # a table with a mistake may still have a folder
                    folders = self._folders
                    check_no_overlap(self.file, name, folders[name], folders)
            except ConfigurationError as error:
                yield error
        for name in self._table("auth"):
            try:
                check_credentials(name, self._table("auth", name))
            except ConfigurationError as error:
                yield error


def warnings_of(file: ConfigFile) -> Iterator[Mapping[str, object]]:
    """Yield a warning for each secret that is missing in this environment."""
    from resourcesync.wiring.credentials import missing_secrets  # noqa: PLC0415 - help stays quick

    for name, table in file.table("auth").items():
        for reason in missing_secrets(name, table) if isinstance(table, Mapping) else ():
            yield {"code": "no-secret", "message": reason, "evidence": ()}


def is_file(place: str) -> bool:
    """True if a path is a file; False if it cannot be read."""
    try:
        return Path(place).is_file()
    except (OSError, ValueError):
        return False


def load(named: Path | None) -> MirrorConfiguration:
    """Read the configuration file.

    Args:
        named: The file that the operator named; ``None`` searches for one.

    Raises:
        ConfigurationError: The file cannot be used.
    """
    configuration = MirrorConfiguration(files.find(named))
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[options.LOG] = {
            key: setting.value for key, setting in configuration.log.items()
        }
    return configuration


def network_of(values: Mapping[str, Any], credentials: "tuple[Credentials, ...]" = ()) -> "Network":
    """Return the network settings from the values of options."""
    from resourcesync.wiring.mirrors import Network  # noqa: PLC0415 - help stays quick

    return Network(
        jobs=values.get("jobs"),
        per_host=values.get("per_host"),
        rate=values.get("rate"),
        bandwidth=values.get("bwlimit"),
        timeout=values.get("timeout"),
        retries=values.get("retries"),
        robots=values.get("robots") or "obey",
        headers=values.get("header") or (),
        credentials=credentials,
        allow_origins=values.get("allow_origin") or (),
        proxy=values.get("proxy"),
        ca_file=values.get("ca_file") or config.ca_file(),
        contact=values.get("contact") or "",
    )


def global_mistakes(file: ConfigFile) -> Iterator[ConfigurationError]:
    """Yield the mistakes in the shared tables: with one, no mirror can be read."""
    for key in file.tables:
        if key not in TABLES:
            yield file.unknown_key_error((), key, TABLES)
    for table in ("mirror", "source", "auth"):
        try:
            file.table(table)
        except ConfigurationError as error:
            yield error
    yield from table_mistakes(file, ("defaults",), default_keys())
    yield from table_mistakes(file, ("watch",), service_keys())
    yield from table_mistakes(file, ("log",), log_keys())


def _overridden(mirror: str, only: str = "") -> Iterator[tuple[str, Setting]]:
    for key, (variable, text) in files.overrides(mirror).items():
        if only and key != only:
            continue
        if key not in mirror_keys():
            raise ConfigurationError(
                f"{variable}: a mirror has no key `{key}`",
                hint="the keys of a mirror: resourcesync config show --origin",
            )
        option = mirror_keys()[key]
        written: object = text
        if option.is_flag:
            written = text.strip().lower() in {"1", "true", "yes", "on"}
        elif option.multiple:
            written = text.split()
        elif isinstance(option.type, click.IntRange) and text.strip().isdecimal():
            written = int(text)
        try:
            yield (
                key,
                Setting(value=convert_setting(option, written), written=written, origin=variable),
            )
        except ConfigurationError as error:
            hint = with_command(error.hint, error.remedy)
            raise ConfigurationError(f"{variable} {error.message}", hint=hint) from None
