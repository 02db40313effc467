"""``resourcesync audit``: compare every copy with what the Source lists; change no copy."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TextIO

import click
import msgspec

from resourcesync import app
from resourcesync.cli import configured_mirrors, formatting, options
from resourcesync.cli.configured_mirrors import MirrorConfiguration
from resourcesync.cli.exit_codes import worst
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import (
    CommandOutcome,
    Job,
    OutputOptions,
    Screen,
    problem_of,
    write_line,
)
from resourcesync.cli.render.audit import (
    AuditRenderer,
    conclude,
)
from resourcesync.destination.audits.reports import FindingKind
from resourcesync.errors import ResourceSyncError, StorageError
from resourcesync.model.settings import Limit
from resourcesync.settings.mirror import Network

_FINDING_KINDS: Final = {
    "combined": frozenset(FindingKind),
    "missing": frozenset({FindingKind.MISSING}),
    "different": frozenset({FindingKind.DIFFERENT}),
    "extra": frozenset({FindingKind.EXTRA}),
}


class AuditArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed command line of ``audit``."""

    mirrors: tuple[str, ...]
    configuration: MirrorConfiguration
    method: Literal["lists", "stat", "hash", "remote"]
    offline: bool
    sample: Limit | None
    oldest_first: bool
    max_duration: float | None
    lists: Mapping[str, str]
    connection: Mapping[str, Any]

    @property
    def is_rolling(self) -> bool:
        """True if only some of the copies are checked."""
        return bool(self.sample or self.oldest_first or self.max_duration is not None)


def _list_option(name: str, what: str) -> Callable[[Any], Any]:
    return option(
        f"--{name}", metavar="FILE", help=f"Write {what} to a file; - is stdout, for text only."
    )


@click.command("audit", cls=SectionedCommand)
@click.argument(
    "mirrors", nargs=-1, required=True, metavar="MIRROR...", shell_complete=options.complete_mirror
)
@option(
    "--method",
    type=click.Choice(["lists", "stat", "hash", "remote"]),
    default="hash",
    show_default=True,
    help="What to compare with the lists: the mirror's state; also size and time of each file; "
    "also every byte; or also what the Source serves now (one conditional request for each file).",
)
@option("--sample", type=options.LIMIT, metavar="P%", help="Check this share of the files.")
@option("--oldest-first", is_flag=True, help="Check the files first that were checked longest ago.")
@option("--max-duration", type=options.DURATION, help="Stop checking files after this time.")
@option("--offline", is_flag=True, help="Compare with the lists as last read; send no request.")
@_list_option("combined", "all findings with their symbols")
@_list_option("missing", "paths that are missing in the mirror")
@_list_option("different", "paths that differ")
@_list_option("extra", "paths that the Source does not list")
@options.CONNECTION
@options.CONFIG
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Compare every copy with what the Source lists.

    MIRROR is a mirror's folder, or its name in the configuration file.
    Symbols: + missing, * different, - extra, ! failed, ? not verifiable by a hash.
    Exit 0 in sync, 1 not. No copy is changed; the findings are stored for a repair. A copy that
    was changed in the mirror is marked as suspect: `status` shows it, and the next pull fetches it
    again. With --sample, --oldest-first or --max-duration, the other files are compared by the
    mirror's state only.
    """
    lists = {name: target for name in _FINDING_KINDS if (target := values.pop(name)) is not None}
    if output.json and "-" in lists.values():
        raise click.UsageError("--json uses stdout: write the list to a file")
    configuration = configured_mirrors.load(values.pop("config"))
    way = options.pop_connection(values)
    arguments = AuditArguments(lists=lists, configuration=configuration, connection=way, **values)
    _check(arguments)

    def work(screen: Screen) -> CommandOutcome:
        return _audit_all(arguments, screen)

    mirrors = list(arguments.mirrors)
    return Job(
        command="audit",
        acts=True,
        output=output,
        work=work,
        render=AuditRenderer(is_shown="-" not in lists.values()),
        subject="audit",
        fields={"mirrors": mirrors, "method": arguments.method, "offline": arguments.offline},
        resume_command=f"resourcesync audit {' '.join(mirrors)}",
    )


def _check(arguments: AuditArguments) -> None:
    if arguments.is_rolling and arguments.method == "lists":
        raise click.UsageError("--method lists checks no file: it cannot take a part of them")
    if arguments.sample is not None and arguments.sample.percent is None:
        raise click.UsageError("--sample must be a share of the files, such as 15%")
    if arguments.offline and arguments.method == "remote":
        raise click.UsageError("--method remote needs the Source: leave --offline out")


def _audit_all(arguments: AuditArguments, screen: Screen) -> CommandOutcome:
    outcomes: list[CommandOutcome] = []
    targets: dict[Path, Network] = {}
    for place in arguments.mirrors:
        try:
            targets.update(dict.fromkeys(*_targets(place, arguments)))
        except ResourceSyncError as error:
            outcomes.append(_failed(error, place, screen))
    with ExitStack() as held:
        write = held.enter_context(_finding_lists(arguments.lists))
        is_one = len(targets) + len(outcomes) == 1
        for mirror, network in targets.items():
            several = {} if is_one else {"mirror": str(mirror)}
            if several:
                screen.report("mirror", several)
            try:
                job = _AuditTarget(mirror, network, several)
                outcomes.append(_audit(job, arguments, screen, write))
            except ResourceSyncError as error:
                outcomes.append(_failed(error, str(mirror), screen))
    code = worst(outcome.exit for outcome in outcomes)
    lines = tuple(line for outcome in outcomes for line in outcome.closing)
    failed = tuple(line for outcome in outcomes if outcome.exit for line in outcome.closing)
    fields = outcomes[0].fields
    if len(outcomes) > 1:
        fields = {"mirrors": [{**outcome.fields, "exit": outcome.exit} for outcome in outcomes]}
    # A list of findings on stdout is for a program: no line follows it, not even the exit code.
    has_stdout = "-" in arguments.lists.values()
    return CommandOutcome(
        exit=code, closing=lines, fields=fields, shows_exit=has_stdout, failed=failed
    )


def _targets(place: str, arguments: AuditArguments) -> "tuple[tuple[Path, ...], Network]":
    """Return the mirrors of a name or a folder, and the network settings for their Source."""
    configuration = arguments.configuration
    folders = app.mirror_state.each_mirror([configuration.pulled_folder(place)])
    if arguments.offline:
        return folders, Network()
    return folders, configuration.network(place, arguments.connection)


def _failed(error: ResourceSyncError, mirror: str, screen: Screen) -> CommandOutcome:
    problem = problem_of(error, mirror)
    screen.problem(problem)
    return CommandOutcome(exit=problem.exit, fields={"mirror": mirror})


class _AuditTarget(NamedTuple):
    """A mirror to audit, its network settings, and the fields that identify its events."""

    mirror: Path
    network: "Network"
    event_fields: Mapping[str, object]


def _audit(
    target: _AuditTarget,
    arguments: AuditArguments,
    screen: Screen,
    write: Callable[[Mapping[str, object]], None],
) -> CommandOutcome:
    mirror, network, several = target

    def report(event: "app.mirror.Event") -> None:
        if event.kind == "finding":
            write(event.fields)
        screen.report(event.kind, {**several, **event.fields})

    found = app.mirror.mirror_at(mirror, network).audit(
        method=arguments.method,
        offline=arguments.offline,
        rolling=_rolling(arguments),
        on_event=report,
    )
    is_text_out = "-" in arguments.lists.values()
    return conclude(found, mirror, quiet=is_text_out, named=bool(several))


def _rolling(arguments: AuditArguments) -> Any:
    from resourcesync.destination.audits.fixity import AuditRolling  # noqa: PLC0415 - help stays quick

    if not arguments.is_rolling:
        return None
    percent = 100.0 if arguments.sample is None else arguments.sample.percent or 0.0
    return AuditRolling(
        share=min(percent / 100, 1.0),
        oldest_first=arguments.oldest_first or arguments.max_duration is not None,
        seconds=arguments.max_duration,
    )


@contextmanager
def _finding_lists(lists: Mapping[str, str]) -> Iterator[Callable[[Mapping[str, object]], None]]:
    """Open the files of findings; yield a function that writes one finding to its files."""
    with ExitStack() as held:
        opened: list[tuple[str, TextIO]] = []
        for name, target in lists.items():
            try:
                stream = held.enter_context(click.open_file(target, "w", encoding="utf-8"))
            except OSError as error:
                raise StorageError(
                    f"cannot write {target}: {error.strerror}",
                    hint="name a file in a folder that exists and is writable",
                ) from error
            opened.append((name, stream))  # type: ignore[arg-type]  # opened for text

        def write(fields: Mapping[str, object]) -> None:
            for name, stream in opened:
                if fields["kind"] in _FINDING_KINDS[name]:
                    path = formatting.escape(str(fields.get("path") or fields.get("uri")))
                    symbol = f"{fields['kind']} " if name == "combined" else ""
                    write_line(stream, f"{symbol}{path}")

        yield write
