"""``resourcesync watch``: keep mirrors in sync, as a service."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from resourcesync import app
from resourcesync.app import configured_mirrors
from resourcesync.app.configured_mirrors import MirrorConfiguration
from resourcesync.cli import options
from resourcesync.cli.options import SectionedCommand, given_options, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from resourcesync.errors import ConfigurationError, quoted
from resourcesync.settings.mirror import ServiceSettings
from resourcesync.settings.precedence import overlay
from resourcesync.settings.schema import fields_of, make

if TYPE_CHECKING:
    from resourcesync.app.watching.watch_settings import WatchSettings


@click.command("watch", cls=SectionedCommand)
@click.argument("names", nargs=-1, metavar="[MIRROR...]", shell_complete=options.complete_mirror)
@option("--every", type=options.DURATION, help="Time between two pulls of mirrors without `every`.")
@options.with_options(*map(options.field_option, fields_of(ServiceSettings).values()))
@options.CONFIG
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Keep mirrors in sync, as a service.

    MIRROR is a name in the configuration file or a mirror's folder; without one, all mirrors of
    the configuration file with `every` or `cron`. A failed pull is retried after a minute, then
    two, up to an hour; other mirrors do not wait for it. SIGHUP reads the configuration again and
    retries failed pulls at once; SIGTERM and Ctrl-C stop the service cleanly (exit 0). After a
    restart it continues where it stopped. To pull each mirror once: resourcesync pull --all
    """
    names: tuple[str, ...] = values["names"]
    given = {name: values[name] for name in given_options() & fields_of(ServiceSettings).keys()}
    every: float | None = values["every"]
    named: Path | None = values["config"]

    def read_settings() -> "WatchSettings":
        from resourcesync.app.watching.watch_settings import WatchSettings  # noqa: PLC0415 - help stays quick

        configuration = options.load(named)
        service = overlay(configured_mirrors.values_of(configuration.service), given)
        return WatchSettings(
            configuration=configuration,
            names=_watched_names(names, configuration, every),
            every=every,
            service=make(ServiceSettings, service),
        )

    first = read_settings()

    def work(screen: Screen) -> CommandOutcome:
        from resourcesync.cli.service.watch_service import run_service  # noqa: PLC0415 - help stays quick

        return run_service(first, read_settings, screen)

    from resourcesync.cli.service.watch_reports import render_event  # noqa: PLC0415 - help stays quick

    return Job(
        acts=True,
        output=output._replace(progress="off"),
        work=work,
        render=render_event,
        subject="watch",
        fields={"mirrors": list(first.names)},
    )


def _watched_names(
    names: Sequence[str], configuration: MirrorConfiguration, every: float | None
) -> tuple[str, ...]:
    if names:
        for name in names:
            _check_mirror(name, configuration)
        return tuple(dict.fromkeys(names))
    if not configuration.names:
        raise configuration.no_mirrors()
    found = tuple(
        name
        for name in configuration.names
        if every or not configuration.mirror(name).settings.keys().isdisjoint({"every", "cron"})
    )
    if not found:
        raise ConfigurationError(
            "no mirror has a schedule", hint='add every = "15m" to a mirror or to [defaults]'
        )
    return found


def _check_mirror(name: str, configuration: MirrorConfiguration) -> None:
    if name.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"{name} is an address, not a mirror",
            hint="make a mirror first, then watch its folder: "
            f"resourcesync pull {quoted(name, 'https://HOST/')} DIR",
        )
    folder = configuration.folder(name)
    if name not in configuration and not app.mirror_home.is_present(folder):
        raise app.mirror_home.not_a_mirror_error(folder)
