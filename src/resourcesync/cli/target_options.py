"""The argument MIRROR, and the options of commands that only read a Source."""

import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
import msgspec
from msgspec.structs import replace

from resourcesync.app.configured_mirrors import MirrorConfiguration
from resourcesync.cli import options
from resourcesync.cli.output import Job
from resourcesync.settings import files

if TYPE_CHECKING:
    from resourcesync.settings.mirror import Network


class MirrorArgument(msgspec.Struct, frozen=True, kw_only=True):
    """The mirror of a command."""

    folder: Path
    network: "Callable[[], Network]"


def mirror_argument(function: Callable[..., Job]) -> Callable[..., Job]:
    """Give a command with ``--config`` the argument MIRROR, passed as ``mirror``.

    The options of ``options.CONNECTION``, if the command has them, go into the network settings.
    """

    @click.argument("mirror", shell_complete=options.complete_mirror)
    @functools.wraps(function)
    def with_mirror(mirror: str, config: Path | None, **values: Any) -> Job:
        argument = resolve_mirror(mirror, config, options.pop_connection(values))
        return function(mirror=argument, **values)

    return with_mirror


def load(named: Path | None) -> MirrorConfiguration:
    """Read the configuration file."""
    file = files.find(named)
    configuration = MirrorConfiguration(file)
    options.use_log_of(file)
    return configuration


def resolve_mirror(
    mirror: str, config: Path | None, connection: Mapping[str, Any]
) -> MirrorArgument:
    """Return the mirror of a name or folder."""
    configuration = load(config)
    return MirrorArgument(
        folder=configuration.pulled_folder(mirror),
        network=functools.partial(configuration.network, mirror, connection),
    )


class SourceAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The options and secrets of requests to a Source."""

    configuration: MirrorConfiguration
    values: Mapping[str, Any]

    @property
    def header(self) -> tuple[tuple[str, str], ...]:
        """The header fields, which are sent to one Source only."""
        found: tuple[tuple[str, str], ...] = self.values["header"]
        return found

    @property
    def auth(self) -> str:
        """The name of the secret that is sent to one Source only; empty for none."""
        return self.values["auth"] or ""

    def check_one_source(self, targets: Iterable[str]) -> None:
        """Refuse a secret with several Sources: each would receive it."""
        origins = {urlsplit(target)[:2] for target in targets if "://" in target}
        if (self.header or self.auth) and len(origins) > 1:
            option = "-o header" if self.header else "--auth"
            raise click.UsageError(f"{option} would send a secret of one Source to the other")

    def resolve(self, target: str) -> "tuple[str, SourceAccess]":
        """Return address and access of a Source; those of its mirror for a mirror's name."""
        if target not in self.configuration:
            return target, self
        mirror = self.configuration.mirror(target)
        given = options.given_options()
        values = options.merge_settings(self.values, mirror.settings, given)
        return mirror.source, replace(self, values=values)

    def network(self, source: str = "") -> "Network":
        """Return the network settings."""
        home = source if "://" in source else ""
        return self.configuration.network_from(self.values, home)


def source_options(function: Callable[..., Job]) -> Callable[..., Job]:
    """Give a command the options of requests to a Source, passed as ``asking``."""

    @functools.wraps(function)
    def with_source(**values: Any) -> Job:
        configuration = load(values.pop("config"))
        own = {name: values.pop(name) for name in options.REQUEST_KEYS}
        # A header of the defaults is for the mirrors: a command might send it to two Sources.
        defaults = {k: setting for k, setting in configuration.defaults.items() if k != "header"}
        chosen = options.merge_settings(own, defaults, options.given_options())
        return function(asking=SourceAccess(configuration=configuration, values=chosen), **values)

    return options.with_options((options.REQUEST_OPTIONS, options.CONFIG))(with_source)
