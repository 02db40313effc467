"""``resourcesync pull``: bring a mirror in step with its Source."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click

from resourcesync.cli import configured, options
from resourcesync.cli.configured import MirrorConfiguration
from resourcesync.cli.configured_values import given_options
from resourcesync.cli.job import Job
from resourcesync.cli.metrics import with_metrics
from resourcesync.cli.options import option
from resourcesync.cli.output import CommandOutcome, OutputOptions, Screen
from resourcesync.cli.pull_options import PULL_OPTIONS, RUN_OPTIONS
from resourcesync.cli.pulling import PullContext, TargetResolver, pull

if TYPE_CHECKING:
    from resourcesync.cli.pull_words import PullRenderer
    from resourcesync.ports import Reporter

_HOST: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")


@click.command("pull")
@click.argument("places", nargs=-1, metavar="[SOURCE [DEST] | MIRROR...]")
@option("--all", "all", is_flag=True, help="Pull every mirror of the configuration file.")
@option("-n", "--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@option("-i", "--itemize", is_flag=True, help="Show a line per action.")
@options.with_options(RUN_OPTIONS, *PULL_OPTIONS, (options.CONFIG,))
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Copy what changed since last time.

    SOURCE is any address of a site or a Source: its root, a Source Description, a list, a sitemap.
    DEST is the mirror's folder, by default ./HOST. Later, `resourcesync pull DEST` is enough.
    MIRROR is a name in the configuration file, or a folder. Of several, one that fails does not
    keep the others back; the exit code is the worst of theirs.
    Exit 0 means: everything selected that the Source lists is here and equal. So --lists-only,
    which fetches nothing, ends with 3 as long as there is something to fetch.
    Files have their names at the Source; of two that cannot both have theirs, such as /a and /a/b,
    one gets a mark: a!9.
    """
    from resourcesync.cli.pull_words import PullRenderer  # noqa: PLC0415 - help stays quick

    places: tuple[str, ...] = values.pop("places")
    every: bool = values.pop("all")
    metrics: Path | None = values.pop("metrics_file")
    configuration = configured.load(values.pop("config"))
    _check(places, configuration, values, every=every)
    if values["moved"] and (len(places) != 1 or _is_source(places)):
        raise click.UsageError("--moved is about one MIRROR: name it, and no SOURCE")
    chosen = TargetResolver(configuration, values, given_options())
    words = PullRenderer(itemize=values["itemize"], dry_run=values["dry_run"])
    if every or (len(places) > 1 and not _is_source(places)):
        job = _job_of_many(configuration.names if every else places, chosen, words, output)
        return replace(job, work=with_metrics(job.work, metrics, ""))
    if _is_source(places):
        folder = places[1] if places[1:] else _folder_name(places[0])
        target = chosen.target_at(places[0], folder)
    else:
        target = chosen.target(places[0])

    def work(screen: Screen) -> CommandOutcome:
        return pull(target, _context(configuration, words), screen, screen.report)

    fields = {"mirror": str(target.folder), "source": target.address}
    return Job(
        command="pull",
        acts=True,
        output=output,
        work=with_metrics(work, metrics, target.name),
        render=words,
        subject=target.folder.name or str(target.folder),
        fields={**fields, "dry_run": values["dry_run"]},
        resume_command=f"resourcesync pull {target.name}",
    )


def _job_of_many(
    names: Sequence[str], chosen: TargetResolver, words: "PullRenderer", output: OutputOptions
) -> Job:
    from resourcesync.cli.pull_many import pull_many  # noqa: PLC0415 - help stays quick

    def work(screen: Screen) -> CommandOutcome:
        def pull_one(name: str, tell: "Reporter") -> CommandOutcome:
            target = chosen.target(name)
            return pull(target, _context(chosen.configuration, words), screen, tell)

        return pull_many(names, pull_one, screen)

    return Job(
        command="pull",
        acts=True,
        output=output,
        work=work,
        render=words,
        subject="pull",
        fields={"mirrors": list(names), "dry_run": words.dry_run},
        resume_command=f"resourcesync pull {' '.join(names)}",
    )


def _context(configuration: MirrorConfiguration, words: "PullRenderer") -> PullContext:
    from resourcesync.wiring import machine  # noqa: PLC0415 - help stays quick

    return PullContext(configuration, words, machine.system_clock())


def _check(
    places: Sequence[str],
    configuration: MirrorConfiguration,
    values: Mapping[str, Any],
    *,
    every: bool,
) -> None:
    """Refuse a command line that makes no sense."""
    if values["set"] and values["all_sets"]:
        raise click.UsageError("--set and --all-sets: choose one")
    if every and places:
        raise click.UsageError("--all pulls every mirror: name none")
    if every and not configuration.names:
        raise configuration.no_mirrors()
    if not every and not places:
        raise click.UsageError("name a SOURCE or a MIRROR, or give --all")
    if not _is_source(places):
        for place in places:
            _check_mirror(place, configuration, is_only=len(places) == 1)
    elif len(places) > 2:  # noqa: PLR2004 - SOURCE and DEST
        raise click.UsageError("one SOURCE and one DEST at a time")
    else:
        _check_folder("".join(places[1:]))


def _check_mirror(place: str, configuration: MirrorConfiguration, *, is_only: bool) -> None:
    if place in configuration.names:
        return
    _check_folder(place)
    if not is_only and not os.path.lexists(place):
        hint = f"for an address, write https://{place}/"
        raise click.UsageError(f"{place!r} is no mirror and no address of a Source: {hint}")


def _is_source(places: Sequence[str]) -> bool:
    """Whether the first place is the address of a Source; that of a store alone is a mirror."""
    first = "".join(places[:1])
    if "://" not in first or first.startswith(("http://", "https://")) or len(places) > 1:
        return "://" in first
    from resourcesync.wiring import stores  # noqa: PLC0415 - help stays quick

    return not stores.is_known(first)


def _check_folder(place: str) -> None:
    if place.startswith(("http://", "https://")):
        raise click.UsageError(f"{place!r} is no folder and no name of a mirror")
    if configured.is_file(place):
        raise click.UsageError(f"{place!r} is a file, not a mirror's folder")


def _folder_name(address: str) -> str:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if _HOST.fullmatch(host) is None:
        raise click.UsageError(f"name the mirror's folder: resourcesync pull {address} DEST")
    return host if port is None else f"{host}_{port}"
