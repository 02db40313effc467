"""``resourcesync pull``: bring a mirror in step with its Source."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

import click

from resourcesync import config
from resourcesync.cli import configured, options
from resourcesync.cli.configured import Configuration
from resourcesync.cli.job import Job
from resourcesync.cli.metrics import keeping_metrics
from resourcesync.cli.options import option
from resourcesync.cli.output import Outcome, OutputOptions, Screen
from resourcesync.cli.pull_options import KEEPING, ONE_RUN

if TYPE_CHECKING:
    from resourcesync.cli.pull_words import PullWords
    from resourcesync.ports import Reporter
    from resourcesync.wiring.mirrors import Network

_HOST: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")
_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The command line of ``pull``, understood."""

    dry_run: bool
    itemize: bool
    mode: Literal["auto", "baseline", "incremental"]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    type: tuple[str, ...]
    max_size: int | None
    since: datetime | timedelta | None
    delete: Literal["auto", "signalled", "absent", "never"]
    max_delete: config.Limit
    trash: float
    verify: Literal["strict", "lenient"]
    jobs: int | None
    per_host: int | None
    rate: float | None
    bwlimit: int | None
    timeout: float | None
    retries: int | None
    robots: Literal["obey", "ignore"]
    header: tuple[tuple[str, str], ...]
    allow_origin: tuple[str, ...]
    fail_fast: bool
    max_duration: float | None
    max_bytes: int | None
    lists_only: bool
    dumps: Literal["auto", "never", "always"]
    set: tuple[str, ...] = ()
    all_sets: bool = False
    auth: str | None = None
    contact: str | None = None
    proxy: str | None = None
    proxy_auth: str | None = None
    ca_file: str | None = None
    link: tuple[str, ...] = ()
    map: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """One mirror that is to be pulled, and how.

    Attributes:
        name: As the operator calls it.
        address: The Source's; ``None`` for the remembered one.
        folder: The mirror.
        arguments: How.
        is_configured: Whether a table says how, filters included.
    """

    name: str
    address: str | None
    folder: Path
    arguments: Arguments
    is_configured: bool = False


class _Chosen:
    """What the command line and the configuration file say together.

    Args:
        configuration: The file's mirrors and secrets.
        values: The options of the command line.
    """

    def __init__(self, configuration: Configuration, values: Mapping[str, Any]) -> None:
        self.configuration = configuration
        self._values = values
        self._given = configured.given_options()

    def target(self, place: str) -> _Target:
        """Return the mirror that a name or a folder means.

        Raises:
            ConfigurationError: The mirror's table has a mistake.
        """
        if place not in self.configuration.names:
            return self.follower(None, Path(place))
        mirror = self.configuration.mirror(place)
        values = configured.merged(self._values, mirror.settings, self._given)
        return _Target(
            name=place,
            address=mirror.source,
            folder=mirror.dest,
            arguments=Arguments(**values),
            is_configured=True,
        )

    def follower(self, address: str | None, folder: Path) -> _Target:
        """Return the mirror in a folder, of a Source or of the one that it remembers."""
        values = configured.merged(self._values, self.configuration.defaults, self._given)
        arguments = Arguments(**values)
        return _Target(name=str(folder), address=address, folder=folder, arguments=arguments)


@click.command("pull")
@click.argument("places", nargs=-1, metavar="[SOURCE [DEST] | MIRROR...]")
@option("--all", "all", is_flag=True, help="Pull every mirror of the configuration file.")
@option("-n", "--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@option("-i", "--itemize", is_flag=True, help="Show a line per action.")
@options.with_options(ONE_RUN, *KEEPING, (options.CONFIG,))
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Copy what changed since last time.

    SOURCE is any address of a site or a Source: its root, a Source Description, a list, a sitemap.
    DEST is the mirror's folder, by default ./HOST. Later, `resourcesync pull DEST` is enough.
    MIRROR is a name in the configuration file, or a folder. Of several, one that fails does not
    keep the others back; the exit code is the worst of theirs.
    Exit 0 means: everything selected that the Source lists is here and equal. So --lists-only,
    which fetches nothing, ends with 3 as long as there is something to fetch.
    Files have their names at the Source, but for what would clash or is not safe on every disk:
    README is README!9 here, a folder v1.2 is v1.2!8, other characters are ! and two digits.
    """
    from resourcesync.cli.pull_words import PullWords  # noqa: PLC0415 - help stays quick

    places: tuple[str, ...] = values.pop("places")
    every: bool = values.pop("all")
    metrics: Path | None = values.pop("metrics_file")
    configuration = configured.load(values.pop("config"))
    _check(places, configuration, values, every=every)
    chosen = _Chosen(configuration, values)
    words = PullWords(itemize=values["itemize"], dry_run=values["dry_run"])
    if every or (len(places) > 1 and "://" not in places[0]):
        job = _job_of_many(configuration.names if every else places, chosen, words, output)
        return replace(job, work=keeping_metrics(job.work, metrics, ""))
    if "://" in places[0]:
        folder = Path(places[1] if places[1:] else _folder_name(places[0]))
        target = chosen.follower(places[0], folder)
    else:
        target = chosen.target(places[0])

    def work(screen: Screen) -> Outcome:
        return _pull(target, configuration, words, screen, screen.report)

    fields = {"mirror": str(target.folder), "source": target.address}
    return Job(
        command="pull",
        output=output,
        work=keeping_metrics(work, metrics, target.name),
        words=words,
        subject=target.folder.name or str(target.folder),
        fields={**fields, "dry_run": values["dry_run"]},
        again=f"resourcesync pull {target.name}",
    )


def _job_of_many(
    names: Sequence[str], chosen: _Chosen, words: "PullWords", output: OutputOptions
) -> Job:
    from resourcesync.cli.pull_many import pull_many  # noqa: PLC0415 - help stays quick

    def work(screen: Screen) -> Outcome:
        def pull_one(name: str, tell: "Reporter") -> Outcome:
            target = chosen.target(name)
            return _pull(target, chosen.configuration, words, screen, tell)

        return pull_many(names, pull_one, screen)

    return Job(
        command="pull",
        output=output,
        work=work,
        words=words,
        subject="pull",
        fields={"mirrors": list(names), "dry_run": words.dry_run},
        again=f"resourcesync pull {' '.join(names)}",
    )


def _check(
    places: Sequence[str], configuration: Configuration, values: Mapping[str, Any], *, every: bool
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
    if "://" not in "".join(places[:1]):
        for place in places:
            _check_mirror(place, configuration, is_only=len(places) == 1)
    elif len(places) > 2:  # noqa: PLR2004 - SOURCE and DEST
        raise click.UsageError("one SOURCE and one DEST at a time")
    else:
        _check_folder("".join(places[1:]))


def _check_mirror(place: str, configuration: Configuration, *, is_only: bool) -> None:
    if place in configuration.names:
        return
    _check_folder(place)
    if not is_only and not os.path.lexists(place):
        hint = f"for an address, write https://{place}/"
        raise click.UsageError(f"{place!r} is no mirror and no address of a Source: {hint}")


def _check_folder(place: str) -> None:
    if "://" in place:
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


def _pull(
    target: _Target,
    configuration: Configuration,
    words: "PullWords",
    screen: Screen,
    tell: "Reporter",
) -> Outcome:
    """Pull a mirror, or a folder with one for each set."""
    from resourcesync.wiring import machine, sets  # noqa: PLC0415 - help stays quick

    arguments, folder = target.arguments, target.folder
    network = _network(target, configuration)
    is_several = arguments.all_sets or len(arguments.set) > 1
    if not is_several and not sets.is_folder_of_sets(folder):
        name = "".join(arguments.set)
        return _pull_one(_One(target, folder, name), network, words, tell)
    from resourcesync.cli.pull_sets import OneSet, pull_each  # noqa: PLC0415 - seldom needed

    wish = sets.Wish(source=target.address, names=arguments.set, every=arguments.all_sets)
    plan = sets.plan_sets(folder, wish, network=network, clock=machine.system_clock())

    def pull_one(one: OneSet, report: "Reporter") -> Outcome:
        of_set = replace(target, address=one.address)
        return _pull_one(_One(of_set, one.folder, one.uri), network, words, report)

    return pull_each(plan, pull_one, screen, dry_run=arguments.dry_run)


class _One(NamedTuple):
    """What is pulled: how, into which folder, of which set; an empty name is the only set."""

    target: _Target
    folder: Path
    set_name: str


def _pull_one(one: _One, network: "Network", words: "PullWords", tell: "Reporter") -> Outcome:
    """Pull one mirror."""
    from resourcesync.cli.planned_items import showing_items  # noqa: PLC0415 - help stays quick
    from resourcesync.cli.pull_words import conclude  # noqa: PLC0415 - help stays quick
    from resourcesync.wiring import machine, mirrors  # noqa: PLC0415 - help stays quick

    address, folder = one.target.address, one.folder
    words.first = not mirrors.is_mirror(folder)
    if address is None and words.first:
        raise mirrors.not_a_mirror(folder)
    clock = machine.system_clock()
    plan: dict[str, object] = {}

    def report(event: str, fields: Mapping[str, object]) -> None:
        if event == "plan":
            plan.update(fields)
        tell(event, fields)

    with mirrors.open_destination(
        folder, source=address, network=network, report=report, clock=clock
    ) as destination:
        review = showing_items(tell) if one.target.arguments.dry_run else None
        chosen = replace(_options(one, clock.now()), review=review)
        found = destination.pull(address, chosen)
    return conclude(found, str(folder), first=words.first, plan=plan)


def _network(target: _Target, configuration: Configuration) -> "Network":
    """Return how the Source is asked, its secret included."""
    from resourcesync.wiring import mirrors  # noqa: PLC0415 - help stays quick

    auth = target.arguments.auth or ""
    source = target.address or ""
    if auth and not source and mirrors.is_mirror(target.folder):
        source = mirrors.read_status(target.folder).source
    return configuration.asking(asdict(target.arguments), source)


def _options(one: _One, now: datetime) -> Any:
    from resourcesync.destination.options import PullOptions  # noqa: PLC0415 - help stays quick
    from resourcesync.destination.plan import DeletionLimit  # noqa: PLC0415 - help stays quick

    arguments = one.target.arguments
    limit = arguments.max_delete
    return PullOptions(
        mode=arguments.mode,
        dry_run=arguments.dry_run,
        filters=_filters(arguments, now, is_all=one.target.is_configured),
        set_name=one.set_name,
        delete=arguments.delete,
        max_delete=DeletionLimit(count=limit.count, percent=limit.percent or 0.0),
        trash_days=arguments.trash / _DAY,
        verify=arguments.verify,
        fail_fast=arguments.fail_fast,
        max_duration=arguments.max_duration,
        max_bytes=arguments.max_bytes,
        lists_only=arguments.lists_only,
        dumps=arguments.dumps,
        mapper=arguments.map or "",
    )


def _filters(arguments: Arguments, now: datetime, *, is_all: bool) -> Any:
    """Return the filters that were given; ``None`` when none was, so that the last ones hold.

    Args:
        arguments: What was given.
        now: What ``since`` may count from.
        is_all: Whether there are no others than these, even if none was given.
    """
    from resourcesync.destination.options import Filters  # noqa: PLC0415 - help stays quick

    since = arguments.since
    chosen = Filters(
        include=arguments.include,
        exclude=arguments.exclude,
        types=arguments.type,
        max_size=arguments.max_size,
        since=None if since is None else config.resolve_moment(since, now),
        allow_origins=arguments.allow_origin,
        links=arguments.link,
    )
    return None if chosen == Filters() and not is_all else chosen
