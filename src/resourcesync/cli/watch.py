"""``resourcesync watch``: keep mirrors in step, as a service."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from resourcesync.cli import configured_mirrors, options
from resourcesync.cli.configured_mirrors import MirrorConfiguration
from resourcesync.cli.mirror_options import SERVICE
from resourcesync.cli.options import given_options, merge_settings, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from resourcesync.errors import ConfigurationError

if TYPE_CHECKING:
    from resourcesync.cli.watch_service import WatchSettings


@click.command("watch")
@click.argument("names", nargs=-1, metavar="[MIRROR...]")
@option("--every", type=options.DURATION, help="How often mirrors are pulled that do not say it.")
@options.with_options(SERVICE, (options.CONFIG,))
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Keep mirrors in step, as a service.

    MIRROR is a name in the configuration file or a mirror's folder; without one, all mirrors of
    the configuration file that say `every` or `cron`. A Source that fails is asked again after
    a minute, then two, up to a day; others do not wait for it. SIGHUP reads the configuration
    anew and tries at once what failed, SIGTERM and Ctrl-C end all in good order, with exit 0.
    Begun again, it goes on where it was. To pull each mirror once: resourcesync pull --all
    """
    names: tuple[str, ...] = values["names"]
    given = given_options()
    named: Path | None = values["config"]

    def wish() -> "WatchSettings":
        from resourcesync.cli.watch_service import WatchSettings  # noqa: PLC0415 - help stays quick

        configuration = configured_mirrors.load(named)
        settings = merge_settings(values, configuration.service, given)
        return WatchSettings(
            configuration=configuration,
            names=_watched_names(names, configuration, settings["every"]),
            every=settings["every"],
            parallel=settings["parallel"],
            jobs=settings["jobs"],
            grace=settings["grace"],
            admin=settings["admin"],
            callback=settings["callback"] or "",
            listen=settings["listen"],
            state=settings["state"],
        )

    first = wish()

    def work(screen: Screen) -> CommandOutcome:
        from resourcesync.cli.watch_service import run_service  # noqa: PLC0415 - help stays quick

        return run_service(first, wish, screen)

    from resourcesync.cli.render_watch import render_event  # noqa: PLC0415 - help stays quick

    return Job(
        command="watch",
        acts=True,
        output=replace(output, progress="off"),
        work=work,
        render=render_event,
        subject="watch",
        fields={"mirrors": list(first.names)},
    )


def _watched_names(
    names: Sequence[str], configuration: MirrorConfiguration, every: float | None
) -> tuple[str, ...]:
    """Return the mirrors that are watched.

    Raises:
        ConfigurationError: There is none; while mirrors are watched, they go on as they were.
    """
    if names:
        for name in names:
            configuration.folder(name)
        return tuple(dict.fromkeys(names))
    if not configuration.names:
        raise configuration.no_mirrors()
    found = tuple(
        name for name in configuration.names if every or _has_schedule(configuration, name)
    )
    if not found:
        raise ConfigurationError(
            "no mirror says when it is pulled", hint='add every = "15m" to it or to [defaults]'
        )
    return found


def _has_schedule(configuration: MirrorConfiguration, name: str) -> bool:
    settings: Mapping[str, object] = configuration.mirror(name).settings
    return "every" in settings or "cron" in settings
