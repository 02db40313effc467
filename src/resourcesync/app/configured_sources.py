"""The Sources of the configuration file: their settings, in the options of ``publish``."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from resourcesync import app
from resourcesync.app import configured_mirrors
from resourcesync.errors import ConfigurationError, StorageError
from resourcesync.settings import config_file
from resourcesync.settings.config_file import ConfigFile, SettingValue
from resourcesync.settings.mirror import FreshnessSettings, Network, SecretNames, SystemSettings
from resourcesync.settings.schema import Field, fields_of

_CATALOGUE: Final = "catalogue:"


def source_keys() -> dict[str, Field]:
    """Return the keys of ``[source.NAME]``."""
    own = fields_of(SystemSettings, FreshnessSettings)
    return {key: own[key] for key in ("path", "max_lag")} | publish_keys()


def publish_keys() -> dict[str, Field]:
    """Return the settings of ``publish`` by their names in the configuration file."""
    from resourcesync.source.publication_settings import PublicationSettings  # noqa: PLC0415 - lazy

    network = fields_of(Network, SecretNames)
    connection = {key: network[key] for key in ("auth", "proxy", "proxy_auth", "ca_file")}
    own = {
        key: field
        for key, field in fields_of(PublicationSettings, SystemSettings).items()
        if key != "path"
    }
    return own | connection


class ConfiguredSource(msgspec.Struct, frozen=True, kw_only=True):
    """One table ``[source.NAME]``."""

    name: str
    path: str  # a tree, a catalogue after catalogue:, or an address
    settings: Mapping[str, SettingValue]

    @property
    def max_lag(self) -> float | None:
        """The longest accepted lag, in seconds."""
        return self.settings["max_lag"].value if "max_lag" in self.settings else None

    def present_catalogue(self) -> Path:
        """Return its catalogue; refuse a folder, or that of what it published, that is lost."""
        kind = app.inputs.kind_of(self.path)
        if kind is app.inputs.InputKind.FOLDER and not Path(self.path).is_dir():
            raise StorageError(
                f"there is no folder {self.path}", hint="mount its disk, or restore it"
            )
        catalogue, out = self.places.catalogue, self.settings.get("out")
        has_catalogue = catalogue.exists()
        is_new = kind is app.inputs.InputKind.FOLDER and not has_catalogue
        if is_new and not os.listdir(self.path):  # noqa: PTH208 - its disk may be away
            from resourcesync.source.scan_for_changes import empty_tree_error  # noqa: PLC0415 - rarely

            raise empty_tree_error()
        folders = (Path(self.path if out is None else str(out.value)), catalogue.parent.parent)
        traces = () if has_catalogue else map(app.mirror_home.trace_of_source, folders)
        if trace := next(filter(None, traces), None):
            has_url = "url" in self.settings  # else the catalogue had it
            raise app.trees.lost_catalogue_error(self.name, catalogue, trace, has_url=has_url)
        return catalogue

    @property
    def places(self) -> "app.inputs.PublishedPlaces":
        """Its catalogue, and the folder that places in its settings are relative to."""
        out, state = (
            self.settings[key].value if key in self.settings else None for key in ("out", "state")
        )
        return app.inputs.places_of(self.path, out, state)

    def __repr__(self) -> str:
        return f"ConfiguredSource(name={self.name!r}, path={self.path!r})"


class ConfiguredSources:
    """The Sources of a configuration, whose shared tables are without mistakes."""

    def __init__(self, configuration: configured_mirrors.MirrorConfiguration) -> None:
        self._file = file = configuration.file
        self.names: tuple[str, ...] = () if file is None else tuple(file.table("source"))

    def named(self, place: str) -> ConfiguredSource:
        """Return a Source by its name, or by its folder, which needs no table."""
        if place in self.names:
            return self.source(place)
        return ConfiguredSource(name=place, path=place, settings={})

    def source(self, name: str) -> ConfiguredSource:
        """Return one Source."""
        file, table = self._file, ("source", name)
        if file is None or name not in self.names:
            raise ConfigurationError(
                f"there is no source {name} in the configuration",
                hint=f"known: {', '.join(self.names)}" if self.names else "",
            )
        settings = {
            key: config_file.read_setting(file, table, key, source_keys())
            for key in file.table(*table)
        }
        if "path" not in settings:
            raise file.key_error(table, "path", "is missing")
        path = _path_of(file, table, settings["path"])
        if "url" in settings:
            try:
                app.trees.check_base(str(settings["url"].value))
            except ConfigurationError as error:
                raise file.key_error(
                    table, "url", "must be an http or https URI", hint=error.hint
                ) from None
        for key in {"out", "site", "state", "versions_in"} & settings.keys():
            setting = settings[key]
            if (key == "out" and "://" in str(setting.value)) or setting.value == "":
                continue
            folder = configured_mirrors.configured_folder(file, table, str(setting.value), key)
            settings[key] = setting._replace(value=folder)
        return ConfiguredSource(name=name, path=path, settings=settings)

    def problems(self) -> Iterator[ConfigurationError]:
        """Yield every mistake in the tables of Sources."""
        for name in self.names:
            assert self._file is not None
            found = list(config_file.table_mistakes(self._file, ("source", name), source_keys()))
            yield from found
            try:
                if not found:
                    self.source(name)
            except ConfigurationError as error:
                yield error

    def missing_folders(self) -> Iterator[ConfigurationError]:
        """Yield a mistake for each folder to publish that does not exist here."""
        file = self._file
        if file is None:
            return
        mirrors = {
            file.path.parent / Path(str(file.table("mirror", name).get("dest", ""))).expanduser()
            for name in file.table("mirror")
        }
        for name in self.names:
            path = self.source(name).path
            tree = Path(path)
            if not (_is_address(path) or tree.is_dir() or tree in mirrors):
                yield file.key_error(
                    ("source", name), "path", "is no folder", hint=f"there is no {path}"
                )


def _is_address(path: str) -> bool:
    kinds = app.inputs.InputKind
    return ":" in path and app.inputs.kind_of(path) not in {kinds.FOLDER, kinds.MIRROR}


def _path_of(file: ConfigFile, table: tuple[str, ...], setting: SettingValue) -> str:
    named = str(setting.value)
    if named.startswith(_CATALOGUE):
        folder = configured_mirrors.configured_folder(
            file, table, named.removeprefix(_CATALOGUE), "path"
        )
        return f"{_CATALOGUE}{folder}"
    if _is_address(named):
        return named
    return str(configured_mirrors.configured_folder(file, table, named, "path"))
