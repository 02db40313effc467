"""The mirrors of the configuration file: their settings, in the options of ``pull``, and folders.

No two mirrors may share a folder, or have folders inside one another.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import structs

from resourcesync import app
from resourcesync.destination.options import PullOptions
from resourcesync.discovery.uris import is_same
from resourcesync.errors import ConfigurationError, ResourceSyncError, quoted
from resourcesync.model.formatting import some
from resourcesync.settings import config_file, environment
from resourcesync.settings.config_file import ConfigFile, SettingValue
from resourcesync.settings.mirror import (
    Credentials,
    FreshnessSettings,
    LogSettings,
    MirrorPlace,
    Network,
    PlaceSettings,
    ScheduleSettings,
    SecretNames,
    ServiceSettings,
)
from resourcesync.settings.precedence import overlay
from resourcesync.settings.schema import Field, fields_of, from_variable, in_file, make

Keys = Mapping[str, Field]
TABLES: Final = ("defaults", "mirror", "source", "auth", "watch", "log")
"""The tables of the configuration file."""
_MIRROR_NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}")
PULL: Final = (PullOptions, PlaceSettings, Network, SecretNames)
"""The settings of pulls."""
_NEAR: Final = 0.75
"""Similarity of a mistyped name to the name of a mirror, from 0 to 1."""


def mirror_keys() -> Keys:
    """Return the keys of ``[mirror.NAME]``."""
    return in_file(MirrorPlace, FreshnessSettings, ScheduleSettings, *PULL)


def default_keys() -> Keys:
    """Return the keys of ``[defaults]``: no secret, since it would go to every mirror's Source."""
    own = in_file(*PULL, FreshnessSettings, ScheduleSettings)
    return {key: field for key, field in own.items() if key != "auth"}


def configured_folder(
    file: ConfigFile, table: tuple[str, ...], dest: str, key: str = "dest"
) -> Path:
    """Return the folder of ``dest``; a relative path starts at the folder of the file."""
    if "://" in dest:
        raise file.key_error(table, key, "must be a folder")
    folder = config_file.resolve_path(file, table, key, dest, "folder")
    if key != "path" and is_file(str(folder)):  # a catalogue is a file
        raise file.key_error(table, key, "is a file, not a folder")
    return folder


def locate_mirror(place: str, state: str | None) -> tuple[Path, str]:
    """Return a mirror's folder on this machine, and the address of its store; empty for none."""
    if ":" in place and app.mirror_home.is_store_address(place):
        home = app.mirror_stores.home_of(place, state)
        return home.folder, home.store
    if state is not None:
        raise ConfigurationError(
            f"{place} is a folder, which contains its own state",
            hint="`state` is only for copies in a store: leave it out",
        )
    return Path(place), ""


def check_state(place: str, folder: Path) -> None:
    """Refuse the address of a store whose state is elsewhere: only the operator knows where."""
    if ":" not in place or folder.exists():
        return
    if app.mirror_home.is_store_address(place):
        raise ConfigurationError(
            f"the state of {place} is not on this machine, or was made with -o state=",
            evidence=(("tried", f"{folder}: there is no such folder"),),
            hint="name the folder that was given as -o state=DIR, in place of the address",
            code="not-a-mirror",
        )


def find_overlaps(folders: Mapping[str, Path]) -> dict[str, str]:
    """Return what is wrong with the folders that are, contain, or lie inside another one.

    Each of two mirrors would take the other's files for damage, and pulls would undo each other.
    """
    owner: dict[Path, str] = {}
    found: dict[str, str] = {}
    for name, folder in folders.items():
        first = owner.setdefault(folder, name)
        if first != name:
            found[name] = f"is the folder of [mirror.{first}] too"
            found.setdefault(first, f"is the folder of [mirror.{name}] too")
    for name, folder in folders.items():
        outer = next((owner[above] for above in folder.parents if above in owner), None)
        if outer is not None:
            found.setdefault(name, f"is inside the folder of [mirror.{outer}]")
            found.setdefault(outer, f"contains the folder of [mirror.{name}]")
    return found


def resolve_folder(folder: Path) -> Path:
    """Return the path of a folder, with all links resolved."""
    try:
        return folder.resolve()
    except (OSError, RuntimeError):  # a circle of links: it cannot be used anyway
        return folder.absolute()


class ConfiguredMirror(msgspec.Struct, frozen=True, kw_only=True):
    """One table ``[mirror.NAME]``, with the values of ``[defaults]`` and the environment."""

    name: str
    dest: Path
    settings: Mapping[str, SettingValue]
    store: str = ""  # of the copies; empty: in the folder

    def __repr__(self) -> str:
        return f"ConfiguredMirror(name={self.name!r}, dest={self.dest!r}, store={self.store!r})"

    @property
    def source(self) -> str:
        """The Source's address."""
        return str(self.settings["source"].value)

    def is_present(self, pulled: Collection[str]) -> bool:
        """True if its folder is a mirror; refuse one that was pulled and is none."""
        is_mirror, place = app.mirror_home.is_present(self.dest), self.dest.absolute()
        if not is_mirror and str(place) in pulled:
            sets = make(PlaceSettings, values_of(self.settings))
            named = "".join(f" --set {quoted(name, 'NAME')}" for name in sets.set_names)
            chosen = " --all-sets" * sets.all_sets + named
            moved = "if the folder moved, correct `dest`; "
            raise app.mirror_home.lost_mirror_error(self.source, place, chosen, moved)
        return is_mirror

    def moved_line(self, known: str) -> str:
        """Return the line of the file for the Source's present address; empty if it is there."""
        if is_same(known, self.source):
            return ""
        return f'{self.settings["source"].origin}: source = "{known}"'

    def source_conflict(self, *, only_moved: bool = False) -> ConfigurationError | None:
        """Return the error that its folder has a mirror of another Source, or of one that moved."""
        for folder in app.mirror_home.pulled_mirrors(self.dest):
            identity = None
            with suppress(ResourceSyncError):  # its reader reports the damage
                identity = app.mirror_home.identity_of(folder)
            if identity is None or is_same(known := identity.source, self.source):
                continue
            if identity.was_at(self.source):
                return ConfigurationError(
                    f"[mirror.{self.name}] has the address that the Source moved from",
                    evidence=(("here", known), ("source", self.source)),
                    hint=f"change the file: {self.moved_line(known)}",
                )
            if not only_moved:
                return ConfigurationError(
                    f"[mirror.{self.name}] has a `dest` that follows another address",
                    evidence=(("here", known), ("source", self.source)),
                    hint="name another folder in `dest`; or, if its Source is there, follow it: "
                    f"resourcesync pull {quoted(self.name, 'MIRROR')} "
                    f"--moved {quoted(self.source, 'https://HOST/')}",
                )
        return None

    def of_set(self, folder: Path) -> "ConfiguredMirror":
        """Return the mirror of one of its sets, which has its settings."""
        own = {key: self.settings[key] for key in self.settings.keys() - {"set", "all_sets"}}
        return structs.replace(self, dest=folder, settings=own)

    @property
    def limits(self) -> FreshnessSettings:
        """How far the mirror may be behind."""
        return make(FreshnessSettings, values_of(self.settings))


def values_of(settings: Mapping[str, SettingValue]) -> dict[str, Any]:
    """Return the values of settings, without their origins."""
    return {key: setting.value for key, setting in settings.items()}


class MirrorConfiguration:
    """The mirrors and secrets of a configuration file; empty without a file.

    A mistake in one mirror's table is reported when that mirror is requested, so that the others
    still work; a mistake in the shared tables is reported at once.
    """

    def __init__(self, file: ConfigFile | None) -> None:
        self.file = file
        for error in () if file is None else global_mistakes(file):
            raise error
        self.defaults = self._settings(("defaults",), default_keys())
        self.service = self._settings(("watch",), fields_of(ServiceSettings))
        self.log = self._settings(("log",), fields_of(LogSettings))
        self.names: tuple[str, ...] = tuple(self._table("mirror"))
        self._variables = config_file.override_variables()
        self._mirrors: dict[str, ConfiguredMirror] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._table("mirror")

    def _table(self, *names: str) -> Mapping[str, object]:
        return {} if self.file is None else self.file.table(*names)

    def _settings(self, table: tuple[str, ...], keys: Keys) -> Mapping[str, SettingValue]:
        if self.file is None:
            return {}
        return {
            key: config_file.read_setting(self.file, table, key, keys)
            for key in self.file.table(*table)
        }

    def mirror(self, name: str) -> ConfiguredMirror:
        """Return one mirror."""
        if name not in self._mirrors:
            self._mirrors[name] = self._read_mirror(name)
        return self._mirrors[name]

    def _read_mirror(self, name: str) -> ConfiguredMirror:
        if name not in self or self.file is None:
            raise ConfigurationError(
                f"there is no mirror {name} in the configuration",
                evidence=self.searched_files(),
                hint=f"known: {some(self.names)}" if self.names else "",
            )
        table = ("mirror", name)
        if not _MIRROR_NAME.fullmatch(name):
            raise self.file.key_error(
                ("mirror",), name, "is not a valid name: use letters, digits, . _ -"
            )
        own = overlay(self._settings(table, mirror_keys()), dict(self._overridden(name)))
        for key in ("source", "dest"):
            if key not in own:
                raise self.file.key_error(table, key, "is missing")
        settings = overlay(self.defaults, own)
        self._check(table, settings)
        dest, store = self._home(table, own["dest"], own.get("state"))
        self._check_overlap(name)
        return ConfiguredMirror(name=name, dest=dest, settings=settings, store=store)

    def _check_overlap(self, name: str) -> None:
        if name in self._overlaps:
            assert self.file is not None
            hint = "give each mirror its own folder"
            raise self.file.key_error(("mirror", name), "dest", self._overlaps[name], hint=hint)

    def mirror_of(self, place: str) -> ConfiguredMirror | None:
        """Return the mirror of a name, of its folder, or of that of one of its sets."""
        if place in self:
            return self.mirror(place)
        folder = Path(place).absolute()
        owners = {dest: name for name, dest in self._folders.items()}
        if own := owners.get(resolve_folder(folder)):
            return self.mirror(own)
        above = resolve_folder(folder.parent)
        is_set = above in owners and above / folder.name in app.mirror_home.each_mirror(above)
        return self.mirror(owners[above]).of_set(Path(place)) if is_set else None

    @cached_property
    def _overlaps(self) -> Mapping[str, str]:
        return find_overlaps(self._folders)

    @cached_property
    def _folders(self) -> Mapping[str, Path]:
        found = {}
        for name in self.names:
            assert self.file is not None
            table = ("mirror", name)
            with suppress(ConfigurationError):
                text = dict(self._overridden(name, "dest")).get("dest")
                dest = text or config_file.read_setting(self.file, table, "dest", mirror_keys())
                state = dict(self._overridden(name, "state")).get("state")
                if state is None and "state" in self.file.table(*table):
                    state = config_file.read_setting(self.file, table, "state", mirror_keys())
                found[name] = resolve_folder(self._home(table, dest, state)[0])
        return found

    def _home(
        self, table: tuple[str, ...], dest: SettingValue, state: SettingValue | None
    ) -> tuple[Path, str]:
        assert self.file is not None
        file, place, where = self.file, str(dest.value), None
        if state is not None:
            where = str(configured_folder(file, table, str(state.value), "state"))
        try:
            folder, store = locate_mirror(place, where)
        except ConfigurationError as error:
            is_dest = "://" in place
            reason = "must be a folder" if is_dest else "is for the address of a store in `dest`"
            key = "dest" if is_dest else "state"
            raise file.key_error(table, key, reason, hint=error.message) from error
        return (folder, store) if store else (configured_folder(file, table, place), "")

    def _check(self, table: tuple[str, ...], settings: Mapping[str, SettingValue]) -> None:
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

    def _overridden(self, mirror: str, only: str = "") -> Iterator[tuple[str, SettingValue]]:
        for key, (variable, text) in config_file.overrides(mirror, self._variables).items():
            if only and key != only:
                continue
            if key not in mirror_keys():
                raise ConfigurationError(
                    f"{variable}: a mirror has no key `{key}`",
                    hint="the keys of a mirror: resourcesync config show --origin",
                )
            field = mirror_keys()[key]
            try:
                value = from_variable(field, text)
            except ConfigurationError as error:
                raise ConfigurationError(f"{variable} {error.message}", hint=error.hint) from None
            is_plain = field.is_flag or field.is_many or field.is_whole
            yield key, SettingValue(value, written=value if is_plain else text, origin=variable)

    def state_file(self, kind: str, folder: Path | None = None) -> Path:
        """Return the file with the folders of this configuration that were ``pulled``, or such."""
        import hashlib  # noqa: PLC0415 - help stays quick

        if folder is None:
            service = make(ServiceSettings, values_of(self.service))
            folder = service.state or environment.state_folder()
        real = "" if self.file is None else os.path.realpath(self.file.path)
        return folder / f"{kind}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:16]}.json"

    def folder(self, place: str) -> Path:
        """Return the folder of a mirror, from its name or its folder."""
        self.check_name(place)
        folder = self.planned_folder(place)
        if place not in self:
            check_state(place, folder)
        return folder

    def pulled_folder(self, place: str) -> Path:
        """Return the folder of a mirror as `folder` does, for a command that needs its copies."""
        folder = self.folder(place)
        if place in self and not app.mirror_home.is_present(folder):
            self.check_present(place)
            raise ConfigurationError(
                f"{folder} is not a mirror",
                evidence=(("mirror", place),),
                hint=f"make it one: resourcesync pull {place}",
                code="not-a-mirror",
            )
        return folder

    def check_present(self, name: str) -> None:
        """Refuse a mirror that was pulled, and whose folder is none now: its disk may be away."""
        mirror = self.mirror(name)
        if not mirror.store:
            pulled = app.stored_names.StoredNames(self.state_file("pulled"))
            mirror.is_present(pulled.names)

    def check_name(self, place: str) -> None:
        """Refuse a Source's name, and what is similar to a mirror's, unless it is on the disk."""
        if self.file is None or place in self or "/" in place or os.path.lexists(place):
            return
        from difflib import get_close_matches  # noqa: PLC0415 - for a mistake only

        near = get_close_matches(place, self.names, n=1, cutoff=_NEAR)
        hint = f"did you mean {near[0]}?" if near else ""
        if place in self._table("source"):
            hint = f"it is a source: resourcesync status {place}"
        if hint:
            raise ConfigurationError(
                f"there is no mirror {place} in the configuration, and no such folder",
                evidence=self.searched_files(),
                hint=hint,
            )

    def planned_folder(self, place: str) -> Path:
        """Return the folder of a mirror, or of a future mirror, from its name or its folder."""
        if place in self:
            return self.mirror(place).dest
        if is_file(place):
            catalogue = quoted(f"catalogue:{place}", "")
            hint = f"name the mirror's folder, or if it is a Source's catalogue: {catalogue}"
            raise ConfigurationError(f"{place} is a file, not a mirror's folder", hint=hint)
        return locate_mirror(place, None)[0]

    def network(self, place: str, way: Mapping[str, Any]) -> Network:
        """Return the network settings for the Source of a mirror, with its secrets."""
        mirror = self.mirror_of(place)
        values = overlay(values_of(self.defaults if mirror is None else mirror.settings), way)
        return self.network_from(values, str(values.get("source", "")))

    def network_from(self, values: Mapping[str, Any], source: str) -> Network:
        """Return the network settings from values by their keys, with their secrets."""
        return self.with_secrets(network_of(values), make(SecretNames, values), source)

    def with_secrets(self, network: Network, secrets: SecretNames, source: str) -> Network:
        """Return network settings with the secrets of some tables ``[auth.NAME]``."""
        found = structs.replace(network, credentials=self.credentials(secrets.auth, source))
        if not (name := secrets.proxy_auth):
            return found
        from resourcesync.settings.credentials import read_proxy_secret  # noqa: PLC0415 - rarely

        return structs.replace(found, proxy_auth=read_proxy_secret(name, self._auth(name)))

    def credentials(self, name: str, source: str) -> tuple[Credentials, ...]:
        """Return the secret of ``[auth.NAME]`` for a Source; none for an empty name."""
        if not name:
            return ()
        from resourcesync.settings.credentials import read_credentials  # noqa: PLC0415 - rarely

        table = self._auth(name)
        home = app.fetchers.origin_of(source) if source else ""
        return (read_credentials(name, table, home=home),)

    def _auth(self, name: str) -> Mapping[str, object]:
        if name not in self._table("auth"):
            raise ConfigurationError(
                f"there is no [auth.{name}] in the configuration",
                evidence=self.searched_files(),
                hint="add the table, or name another one",
            )
        return self._table("auth", name)

    def no_mirrors(self) -> ConfigurationError:
        """Return the error that no mirror is configured."""
        hint = "resourcesync config init writes an example file"
        if self.file is not None:
            path = self.file.path
            hint = f"edit that file: add a table [mirror.NAME] with source and dest to {path}"
        return ConfigurationError(
            "no mirror is configured", evidence=self.searched_files(), hint=hint
        )

    def searched_files(self) -> tuple[tuple[str, str], ...]:
        """Return the file, or where one was looked for, as evidence."""
        if self.file is not None:
            return (("file", str(self.file.path)),)
        return tuple(
            ("tried", str(place.path)) for place in config_file.config_locations() if place.counts
        )

    def problems(self) -> Iterator[ConfigurationError]:
        """Yield every mistake in the tables of mirrors and secrets; no secret is read."""
        if self.file is None:
            return
        from resourcesync.settings.credentials import check_credentials  # noqa: PLC0415 - rarely

        for name in self.names:
            found = list(config_file.table_mistakes(self.file, ("mirror", name), mirror_keys()))
            yield from found
            try:
                if not found:
                    self.mirror(name)
                else:  # a table with a mistake may still have a folder
                    self._check_overlap(name)
            except ConfigurationError as error:
                yield error
        for name in self._table("auth"):
            try:
                check_credentials(name, self._table("auth", name))
            except ConfigurationError as error:
                yield error


def warnings_of(file: ConfigFile) -> Iterator[Mapping[str, object]]:
    """Yield a warning for each secret that is missing in this environment."""
    from resourcesync.settings.credentials import missing_secrets  # noqa: PLC0415 - rarely

    for name, table in file.table("auth").items():
        for reason in missing_secrets(name, table) if isinstance(table, Mapping) else ():
            yield {"code": "no-secret", "message": reason, "evidence": ()}


def is_file(place: str) -> bool:
    """True if a path is a file; False if it cannot be read."""
    return os.path.isfile(place)  # noqa: PTH113 - it raises nothing


def network_of(values: Mapping[str, Any]) -> Network:
    """Return the network settings from values by their keys, without secrets."""
    network = make(Network, values)
    return structs.replace(network, ca_file=network.ca_file or environment.ca_file())


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
    yield from config_file.table_mistakes(file, ("defaults",), default_keys())
    yield from config_file.table_mistakes(file, ("watch",), fields_of(ServiceSettings))
    yield from config_file.table_mistakes(file, ("log",), fields_of(LogSettings))
