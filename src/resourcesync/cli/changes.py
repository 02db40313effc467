"""``resourcesync changes``: what changed in a mirror, for the next program."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from resourcesync import config
from resourcesync.cli import options
from resourcesync.cli.job import Job
from resourcesync.cli.mirror_argument import MirrorArgument, mirror_argument
from resourcesync.cli.options import option
from resourcesync.cli.output import CommandOutcome, OutputOptions, Screen

if TYPE_CHECKING:
    from resourcesync.destination.changelog import ChangeLogReader
    from resourcesync.ports import Clock
    from resourcesync.wiring.mirrors import OpenChanges

Form = Literal["screen", "paths0", "deleted-paths0", "csv"]
_CURSOR: Final = re.compile(r"[0-9]{1,18}")
_MICROSECONDS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesArguments:
    """The command line of ``changes``, understood."""

    mirror: Path
    since: str | None
    consumer: str | None
    ack: bool
    restart: bool
    follow: bool
    interval: float
    touched: bool
    form: Form


@click.command("changes")
@mirror_argument
@option("--since", metavar="CURSOR|TIME", help="Only later ones: a number, -7d or a date.")
@option("--consumer", metavar="NAME", help="Go on where this program acknowledged the last ones.")
@option("--ack", is_flag=True, help="Move the consumer's cursor when all lines are written.")
@option("--restart", is_flag=True, help="Let the consumer begin anew with all that is here.")
@option("--follow", is_flag=True, help="Stay, and show changes as they come.")
@option(
    "--interval",
    type=options.DURATION,
    default="1s",
    show_default=True,
    help="How often --follow looks.",
)
@option("--touched", is_flag=True, help="Also what was fetched anew with the same bytes.")
@option("--paths0", is_flag=True, help="Write paths only, of what is here, each ended by a NUL.")
@option("--deleted-paths0", is_flag=True, help="The same of what is here no more.")
@option("--csv", is_flag=True, help="Write comma-separated values with a head line.")
@options.CONFIG
@options.output_options
def command(
    output: OutputOptions,
    mirror: MirrorArgument,
    **values: Any,
) -> Job:
    """Show what changed in a mirror, for the next program.

    MIRROR is a mirror's folder, or its name in the configuration file.
    A page whose date moved but whose bytes did not is no change. A named consumer has a cursor of
    its own; new ones are told of all that is here. A cursor that is not moved, because the reader
    stopped half-way, gives the same changes again. Changes are remembered for 90 days, at most
    1,000,000 of them.
    """
    flags: dict[Form, bool] = {
        "paths0": values.pop("paths0"),
        "deleted-paths0": values.pop("deleted_paths0"),
        "csv": values.pop("csv"),
    }
    forms = [form for form, is_wanted in flags.items() if is_wanted]
    if len(forms) + output.json > 1:
        raise click.UsageError("choose one of --json, --csv, --paths0 and --deleted-paths0")
    form: Form = forms[0] if forms else "screen"
    arguments = ChangesArguments(mirror=mirror.folder, form=form, **values)
    _check(arguments, output)
    from resourcesync.cli.change_lines import render_change  # noqa: PLC0415 - help stays quick

    return Job(
        command="changes",
        output=output,
        work=lambda screen: _changes(arguments, screen),
        render=render_change,
        subject=arguments.mirror.name,
        fields={"mirror": str(arguments.mirror), "consumer": arguments.consumer},
        resume_command=f"resourcesync changes {arguments.mirror}",
    )


def _check(arguments: ChangesArguments, output: OutputOptions) -> None:
    if arguments.consumer is None and (arguments.ack or arguments.restart):
        raise click.UsageError("--ack and --restart are for --consumer NAME")
    if arguments.consumer is not None and arguments.since is not None:
        raise click.UsageError("a consumer has a cursor: --since is for others")
    if arguments.ack and output.quiet:
        raise click.UsageError("--ack acknowledges lines that --quiet does not show")


def _changes(arguments: ChangesArguments, screen: Screen) -> CommandOutcome:
    from resourcesync.cli.change_lines import change_writer  # noqa: PLC0415 - help stays quick
    from resourcesync.wiring import machine, mirrors  # noqa: PLC0415 - help stays quick

    clock = machine.system_clock()
    count = 0
    with mirrors.open_changes(arguments.mirror) as opened:
        write = change_writer(arguments.form, screen, opened.state)
        reader = _reader(arguments, opened, clock)
        while True:
            before = reader.cursor
            for change in reader.read_new():
                write(change)
                count += 1
            cursor = reader.cursor
            if arguments.ack and arguments.consumer and cursor is not None and cursor != before:
                opened.consumers.acknowledge(arguments.consumer, cursor)
            if not arguments.follow:
                break
            clock.sleep(arguments.interval)
    return CommandOutcome(
        fields={"mirror": str(arguments.mirror), "changes": count, "cursor": cursor}
    )


def _reader(
    arguments: ChangesArguments, opened: "OpenChanges", clock: "Clock"
) -> "ChangeLogReader":
    from resourcesync.destination import changelog  # noqa: PLC0415 - help stays quick

    state = opened.state
    cursor: int | None
    if arguments.consumer is not None:
        cursor = None if arguments.restart else opened.consumers.cursor(arguments.consumer)
    elif arguments.since is None:
        cursor = changelog.oldest_cursor(state)
    elif _CURSOR.fullmatch(arguments.since):
        cursor = int(arguments.since)
    else:
        moment = config.resolve_moment(config.parse_moment(arguments.since), clock.now())
        cursor = changelog.cursor_at(state, int(moment.timestamp() * _MICROSECONDS))
    anew = "--restart" if arguments.consumer else "without --since"
    return changelog.ChangeLogReader(
        state=state, cursor=cursor, include_touched=arguments.touched, restart_hint=anew
    )
