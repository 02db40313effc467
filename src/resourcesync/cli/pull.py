"""``resourcesync pull``: bring a mirror in step with its Source."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

import click

from resourcesync import config
from resourcesync.cli import options
from resourcesync.cli.job import Job
from resourcesync.cli.options import option
from resourcesync.cli.output import Outcome, OutputOptions, Screen

if TYPE_CHECKING:
    from resourcesync.cli.pull_words import PullWords
    from resourcesync.ports import Reporter
    from resourcesync.wiring.mirrors import Network

Decorator = Callable[[Callable[..., Job]], Callable[..., Job]]

_HOST: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")
_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The command line of ``pull``, understood."""

    source: str
    dest: Path | None
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
    dumps: Literal["auto", "never", "always"]
    set: tuple[str, ...] = ()
    all_sets: bool = False


_SETS: Final = (
    option(
        "--set",
        multiple=True,
        metavar="URI|NAME|NUMBER",
        help="Which set of resources, where the Source offers several. Given several times: a "
        "mirror for each, in a folder of its own below DEST.",
    ),
    option(
        "--all-sets",
        is_flag=True,
        help="A mirror for each set, in a folder of its own below DEST; new sets join later.",
    ),
)
_FILTERS: Final = (
    option("--include", multiple=True, metavar="GLOB", help="Only resources whose path matches."),
    option("--exclude", multiple=True, metavar="GLOB", help="No resources whose path matches."),
    option("--type", multiple=True, metavar="MIME", help="Only resources of this media type."),
    option("--max-size", type=options.SIZE, help="No resources larger than this, such as 5M."),
    option(
        "--since", type=options.MOMENT, help="Only resources modified since, such as -7d or a date."
    ),
)
_SAFETY: Final = (
    option(
        "--mode",
        type=click.Choice(["auto", "baseline", "incremental"]),
        default="auto",
        show_default=True,
        help="Follow the Change Lists, or compare with the whole Resource List.",
    ),
    option(
        "--delete",
        type=click.Choice(["auto", "signalled", "absent", "never"]),
        default="auto",
        show_default=True,
        help="Delete what a Change List calls deleted (signalled), also what a newer Resource "
        "List lists no more (absent), or nothing. auto: absent for a Resource List, signalled "
        "for a plain sitemap.",
    ),
    option(
        "--max-delete",
        type=options.LIMIT,
        metavar="N|P%",
        default="10%",
        show_default=True,
        help="Hold deletions back when there are more; 25 are always allowed unless N is given.",
    ),
    option(
        "--trash",
        type=options.DURATION,
        default="30d",
        show_default=True,
        help="How long deleted copies wait in the mirror's trash; 0 keeps none.",
    ),
    option(
        "--verify",
        type=click.Choice(["strict", "lenient"]),
        default="strict",
        show_default=True,
        help="Refuse bytes that are not what the list says, or keep and mark them.",
    ),
    option(
        "--dumps",
        type=click.Choice(["auto", "never", "always"]),
        default="auto",
        show_default=True,
        help="Take packages of the Source's dumps where that costs less than single requests "
        "(auto), never, or wherever they help.",
    ),
    option("--fail-fast", is_flag=True, help="Stop at the first failure."),
)
_NETWORK: Final = (
    option("-j", "--jobs", type=click.IntRange(1, 1000), help="Requests at a time."),
    option("--per-host", type=click.IntRange(1, 1000), help="Most requests at a time to one host."),
    option("--rate", type=options.RATE, help="Requests per second to one host, such as 5/s."),
    option("--bwlimit", type=options.SIZE, help="Bytes per second in all, such as 2M."),
    option("--timeout", type=options.DURATION, help="Longest wait for an answer, such as 30s."),
    option("--retries", type=click.IntRange(0, 100), help="Further tries; 404 gets none."),
    option(
        "--robots",
        type=click.Choice(["obey", "ignore"]),
        default="obey",
        show_default=True,
        help="Whether robots.txt is obeyed.",
    ),
    option(
        "--header",
        type=options.HEADER,
        multiple=True,
        metavar="'K: V'",
        help="Send a header to the Source's own origin, and to no other.",
    ),
    option(
        "--allow-origin",
        multiple=True,
        metavar="URL",
        help="Accept resources of this origin too, though the Source is elsewhere.",
    ),
)


def _with(group: tuple[Decorator, ...]) -> Decorator:
    def add(function: Callable[..., Job]) -> Callable[..., Job]:
        for decorate in reversed(group):
            function = decorate(function)
        return function

    return add


@click.command("pull")
@click.argument("source")
@click.argument("dest", required=False, type=click.Path(file_okay=False, path_type=Path))
@option("-n", "--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@option("-i", "--itemize", is_flag=True, help="Show a line per action.")
@_with(_SETS)
@_with(_SAFETY)
@_with(_FILTERS)
@_with(_NETWORK)
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Copy what changed since last time.

    SOURCE is any address of a site or a Source: its root, a Source Description, a list, a sitemap.
    DEST is the mirror's folder, by default ./HOST. Later, `resourcesync pull DEST` is enough.
    Exit 0 means: everything selected that the Source lists is here and equal.
    """
    arguments = Arguments(**values)
    if arguments.set and arguments.all_sets:
        raise click.UsageError("--set and --all-sets: choose one")
    address, folder = _place(arguments.source, arguments.dest)
    from resourcesync.cli.pull_words import PullWords  # noqa: PLC0415 - help stays quick

    words = PullWords(itemize=arguments.itemize, dry_run=arguments.dry_run)

    def work(screen: Screen) -> Outcome:
        return _pull(arguments, _Target(address, folder), words, screen)

    return Job(
        command="pull",
        output=output,
        work=work,
        words=words,
        subject=folder.name or str(folder),
        fields={"mirror": str(folder), "source": address, "dry_run": arguments.dry_run},
        again=f"resourcesync pull {folder}",
    )


def _place(source: str, dest: Path | None) -> tuple[str | None, Path]:
    """Return the Source's address, ``None`` for the remembered one, and the mirror's folder."""
    if "://" not in source:
        if dest is not None:
            hint = f"write an address, such as https://{source}/"
            raise click.UsageError(f"{source!r} is no address of a Source: {hint}")
        return None, Path(source)
    return source, dest or Path(_folder_name(source))


def _folder_name(address: str) -> str:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if _HOST.fullmatch(host) is None:
        raise click.UsageError(f"name the mirror's folder: resourcesync pull {address} DEST")
    return host if port is None else f"{host}_{port}"


class _Target(NamedTuple):
    """What is pulled: the Source's address, ``None`` for the remembered one, and the mirror."""

    address: str | None
    folder: Path


def _pull(arguments: Arguments, target: _Target, words: "PullWords", screen: Screen) -> Outcome:
    from resourcesync.wiring import machine, sets  # noqa: PLC0415 - help stays quick

    address, folder = target
    is_several = arguments.all_sets or len(arguments.set) > 1
    if not is_several and not sets.is_folder_of_sets(folder):
        name = "".join(arguments.set)
        return _pull_one(arguments, target, words, screen.report, set_name=name)
    from resourcesync.cli.pull_sets import OneSet, pull_each  # noqa: PLC0415 - seldom needed

    wish = sets.Wish(source=address, names=arguments.set, every=arguments.all_sets)
    network, clock = _network(arguments), machine.system_clock()
    plan = sets.plan_sets(folder, wish, network=network, clock=clock)

    def pull_one(one: OneSet, report: "Reporter") -> Outcome:
        target = _Target(one.address, one.folder)
        return _pull_one(arguments, target, words, report, set_name=one.uri)

    return pull_each(plan, pull_one, screen, dry_run=arguments.dry_run)


def _pull_one(
    arguments: Arguments,
    target: _Target,
    words: "PullWords",
    tell: "Reporter",
    *,
    set_name: str,
) -> Outcome:
    """Pull one mirror."""
    from resourcesync.cli.pull_words import conclude  # noqa: PLC0415 - help stays quick
    from resourcesync.wiring import machine, mirrors  # noqa: PLC0415 - help stays quick

    address, folder = target
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
        folder, source=address, network=_network(arguments), report=report, clock=clock
    ) as destination:
        found = destination.pull(address, _options(arguments, clock.now(), set_name))
    return conclude(found, str(folder), first=words.first, plan=plan)


def _network(arguments: Arguments) -> "Network":
    from resourcesync.wiring.mirrors import Network  # noqa: PLC0415 - help stays quick

    return Network(
        jobs=arguments.jobs,
        per_host=arguments.per_host,
        rate=arguments.rate,
        bandwidth=arguments.bwlimit,
        timeout=arguments.timeout,
        retries=arguments.retries,
        robots=arguments.robots,
        headers=arguments.header,
        allow_origins=arguments.allow_origin,
        ca_file=config.ca_file(),
    )


def _options(arguments: Arguments, now: datetime, set_name: str) -> Any:
    from resourcesync.destination.options import PullOptions  # noqa: PLC0415 - help stays quick
    from resourcesync.destination.plan import DeletionLimit  # noqa: PLC0415 - help stays quick

    limit = arguments.max_delete
    return PullOptions(
        mode=arguments.mode,
        dry_run=arguments.dry_run,
        filters=_filters(arguments, now),
        set_name=set_name,
        delete=arguments.delete,
        max_delete=DeletionLimit(count=limit.count, percent=limit.percent or 0.0),
        trash_days=arguments.trash / _DAY,
        verify=arguments.verify,
        fail_fast=arguments.fail_fast,
        dumps=arguments.dumps,
    )


def _filters(arguments: Arguments, now: datetime) -> Any:
    """Return the filters that were given; ``None`` when none was, so that the last ones hold."""
    from resourcesync.destination.options import Filters  # noqa: PLC0415 - help stays quick

    since = arguments.since
    chosen = Filters(
        include=arguments.include,
        exclude=arguments.exclude,
        types=arguments.type,
        max_size=arguments.max_size,
        since=None if since is None else config.resolve_moment(since, now),
        allow_origins=arguments.allow_origin,
    )
    return None if chosen == Filters() else chosen
