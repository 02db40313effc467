"""``resourcesync audit``: compare every copy with what the Source lists; change no copy."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, get_args

import click

from resourcesync import app
from resourcesync.cli import options
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
from resourcesync.cli.render.audit import AuditRenderer, conclude
from resourcesync.destination.audits.reports import FindingKind
from resourcesync.errors import ResourceSyncError, StorageError
from resourcesync.model import formatting
from resourcesync.model.settings import AuditMethod
from resourcesync.settings.mirror import Network

if TYPE_CHECKING:
    from resourcesync.destination.audits.sampling import AuditRolling

_Write = Callable[[Mapping[str, object]], None]
_FINDING_KINDS: Final = {
    "combined": frozenset(FindingKind),
    "missing": frozenset({FindingKind.MISSING}),
    "different": frozenset({FindingKind.DIFFERENT}),
    "extra": frozenset({FindingKind.EXTRA}),
}


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
    type=click.Choice(get_args(AuditMethod)),
    default="hash",
    show_default=True,
    help="What to compare with the lists: the mirror's state; also size and time of each file; "
    "also every byte; or also what the Source serves now (each file is fetched, and not stored); "
    "or, of an aggregator, what the originals are now, which its entries link to (via).",
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
    method, offline = values["method"], values["offline"]
    rolling = _rolling(values)
    if rolling and method == "lists":
        raise click.UsageError("--method lists checks no file: it cannot take a part of them")
    if offline and method in ("remote", "origin"):
        raise click.UsageError(f"--method {method} sends requests: leave --offline out")
    configuration = options.load(values["config"])
    way = options.pop_connection(values)

    def targets(place: str) -> Iterator[tuple[Path, Network]]:
        folders = app.mirror_home.each_mirror(configuration.pulled_folder(place))
        network = Network() if offline else configuration.network(place, way)
        return ((folder, network) for folder in folders)

    settings: dict[str, Any] = {"method": method, "offline": offline, "rolling": rolling}
    places = list(values["mirrors"])
    is_text_out = "-" in lists.values()
    return Job(
        acts=True,
        work=lambda screen: _Audits(screen, settings, lists).run(places, targets),
        render=AuditRenderer(is_shown=not is_text_out),
        subject="audit",
        fields={"mirrors": places, "method": method, "offline": offline},
        resume_command=f"resourcesync audit {' '.join(places)}",
    )


def _rolling(values: Mapping[str, Any]) -> "AuditRolling | None":
    sample, seconds = values["sample"], values["max_duration"]
    if sample is not None and sample.percent is None:
        raise click.UsageError("--sample must be a share of the files, such as 15%")
    if not (sample or values["oldest_first"] or seconds is not None):
        return None
    from resourcesync.destination.audits.sampling import AuditRolling  # noqa: PLC0415 - help stays quick

    return AuditRolling(
        share=1.0 if sample is None else min(sample.percent / 100, 1.0),
        oldest_first=values["oldest_first"] or seconds is not None,
        seconds=seconds,
    )


class _Audits:
    def __init__(
        self, screen: Screen, settings: Mapping[str, Any], lists: Mapping[str, str]
    ) -> None:
        self._screen, self._settings, self._lists = screen, settings, lists

    def run(
        self, places: Sequence[str], targets: Callable[[str], Iterable[tuple[Path, Network]]]
    ) -> CommandOutcome:
        outcomes: list[CommandOutcome] = []
        found: dict[Path, Network] = {}
        for place in places:
            try:
                found.update(targets(place))
            except ResourceSyncError as error:
                outcomes.append(self._failed(error, place))
        is_one = len(found) + len(outcomes) == 1
        with _finding_lists(self._lists) as write:
            for mirror, network in found.items():
                try:
                    outcomes.append(self._audit(mirror, network, write, is_one=is_one))
                except ResourceSyncError as error:
                    outcomes.append(self._failed(error, str(mirror)))
        fields = outcomes[0].fields
        if len(outcomes) > 1:
            fields = {"mirrors": [{**outcome.fields, "exit": outcome.exit} for outcome in outcomes]}
        return CommandOutcome(
            exit=worst(outcome.exit for outcome in outcomes),
            closing=tuple(line for outcome in outcomes for line in outcome.closing),
            fields=fields,
            # A list of findings on stdout is for a program: no line follows it, nor the exit code.
            shows_exit="-" in self._lists.values(),
            failed=tuple(line for each in outcomes if each.exit for line in each.closing),
        )

    def _failed(self, error: ResourceSyncError, mirror: str) -> CommandOutcome:
        problem = problem_of(error, mirror)
        self._screen.problem(problem)
        outcome = problem.outcome()
        return outcome._replace(fields={"mirror": mirror, **outcome.fields})

    def _audit(
        self, mirror: Path, network: Network, write: _Write, *, is_one: bool
    ) -> CommandOutcome:
        several = {} if is_one else {"mirror": str(mirror)}
        if several:
            self._screen.report("mirror", several)

        def report(event: "app.mirror.Event") -> None:
            if event.kind == "finding":
                write(event.fields)
            self._screen.report(event.kind, {**several, **event.fields})

        found = app.mirror.mirror_at(mirror, network).audit(on_event=report, **self._settings)
        return conclude(found, mirror, quiet="-" in self._lists.values(), named=bool(several))


@contextmanager
def _finding_lists(lists: Mapping[str, str]) -> Iterator[_Write]:
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
