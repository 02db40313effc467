"""``resourcesync changes``: the changes of a mirror, as text, JSON, paths or CSV."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click

from resourcesync import app
from resourcesync.cli import options
from resourcesync.cli.csv_lines import CsvLines, write_text
from resourcesync.cli.options import MirrorArgument, SectionedCommand, mirror_argument, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen, TextLine
from resourcesync.destination.path_assignment import owner_of
from resourcesync.mirror_state import rows
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.model.formatting import count, moment
from resourcesync.model.timestamps import from_microseconds, resolve_moment
from resourcesync.ports import Clock
from resourcesync.settings.schema import parse_moment


@click.command("changes", cls=SectionedCommand)
@mirror_argument
@option(
    "--since",
    metavar="POSITION|TIME",
    help="Only later changes: a position, -7d or a date; start: everything in the mirror.",
)
@option(
    "--consumer", metavar="NAME", help="Continue after this program's last acknowledged change."
)
@option("--ack", is_flag=True, help="Move the consumer's cursor when all lines are written.")
@option("--restart", is_flag=True, help="Start again with all resources of the mirror.")
@option("--follow", is_flag=True, help="Keep running, and show changes as they come.")
@option(
    "--interval",
    type=options.DURATION,
    default="1s",
    show_default=True,
    help="Time between two checks of --follow.",
)
@option(
    "--touched", is_flag=True, help="Also resources that were fetched again with the same bytes."
)
@option(
    "--paths0", is_flag=True, help="Write only the paths of existing files, each ended by a NUL."
)
@option("--deleted-paths0", is_flag=True, help="Write only the paths of deleted files, likewise.")
@option("--csv", is_flag=True, help="Write comma-separated values with a header line.")
@options.CONFIG
@options.output_options
def command(output: OutputOptions, mirror: MirrorArgument, **values: Any) -> Job:
    """Show what changed in a mirror, for another program.

    MIRROR is a mirror's folder, or its name in the configuration file.
    A new date with the same bytes is not a change. A named consumer has its own cursor; a new
    consumer gets all resources of the mirror. As long as the cursor is not moved, for example
    because the reader stopped half-way, the same changes are given again. A program that stores
    its position itself passes the "position" of the last line that it processed to --since.
    Changes are stored for 90 days, at most 1,000,000 of them.
    """
    mirror_folder, consumer, ack = mirror.folder, values["consumer"], values["ack"]
    forms = [form for form in ("paths0", "deleted_paths0", "csv") if values[form]]
    if len(forms) + output.json > 1:
        raise click.UsageError("choose one of --json, --csv, --paths0 and --deleted-paths0")
    if consumer is None and (ack or values["restart"]):
        raise click.UsageError("--ack and --restart are for --consumer NAME")
    if consumer is not None and values["since"] is not None:
        raise click.UsageError("--consumer and --since exclude each other: a consumer has a cursor")
    form = "".join(forms)
    partial = "quiet" if output.quiet else form.replace("_", "-").replace("csv", "")
    if ack and partial:
        raise click.UsageError(f"--ack acknowledges lines that --{partial} does not show")
    return Job(
        work=lambda screen: _changes(mirror_folder, values, change_writer(form, screen), screen),
        render=_render_change,
        subject=mirror_folder.name,
        fields={"mirror": str(mirror_folder), "consumer": consumer},
        resume_command=f"resourcesync changes {mirror_folder}",
    )


def _changes(
    mirror: Path, values: Mapping[str, Any], write: "_WriteChange", screen: Screen
) -> CommandOutcome:
    def pause() -> bool:
        screen.clock.sleep(values["interval"])
        return True

    count, position, consumer = 0, rows.ChangeLogPosition(0), values["consumer"]
    query = _query(values, screen.clock)
    rounds = app.mirror_changes.read_rounds(mirror, query, pause if values["follow"] else None)
    for opened, reader in rounds:
        before, present_uri = reader.position, opened.present_uris()
        for change in reader.read_new():
            position = reader.position or position
            write(change, position, opened.state, present_uri)
            count += 1
        position = reader.position or position
        if values["ack"] and consumer and position != before:
            opened.consumers.acknowledge(consumer, position)
    fields = {"changes": count, "position": str(position)}
    return CommandOutcome(fields={"mirror": str(mirror), **fields})


def _query(values: Mapping[str, Any], clock: Clock) -> "app.mirror_changes.ChangeQuery":
    text = values["since"]
    is_moment = text and text != app.mirror_changes.START and not text.isdecimal()  # no year
    since: str | datetime | None = text
    if is_moment and rows.parse_position(text) is None:
        since = resolve_moment(parse_moment(text), clock.now())
    return app.mirror_changes.ChangeQuery.of(
        values["consumer"], since, touched=values["touched"], restart=values["restart"]
    )


_SYMBOLS: Final = {"created": "+", "updated": "*", "deleted": "-", "touched": "="}
_CSV_COLUMNS: Final = ("seq", "time", "change", "uri", "path", "bytes", "hash", "prev_hash", "was")


def change_fields(
    change: rows.LoggedChange, present_uri: Callable[[str], str] = str
) -> dict[str, object]:
    """Return a change as the fields of its event; unknown values are left out."""
    uri = present_uri(change.uri)
    fields: dict[str, object] = {
        "seq": change.seq,
        "change": change.kind,
        "uri": uri,
        "known_as": change.uri if uri != change.uri else "",
        "path": change.path,
        "was": change.was,
        "bytes": change.length,
        "hash": change.digests,
        "prev_hash": change.previous,
        "time": from_microseconds(change.time),
    }
    return {name: value for name, value in fields.items() if value != ""}


def _render_change(event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
    if event == "change":
        at = moment(fields["time"])  # type: ignore[arg-type]  # set by change_fields
        size = fields["bytes"]
        amount = f"{count(size)} B" if isinstance(size, int) else ""
        yield TextLine(f"/{fields['path']}   {amount}   {at}", _SYMBOLS[str(fields["change"])])


_WriteChange = Callable[
    [rows.LoggedChange, rows.ChangeLogPosition, SqliteMirrorState, Callable[[str], str]], None
]
"""Writes a change, by the position after it, the state, and the function of present addresses."""


def change_writer(form: str, screen: Screen) -> _WriteChange:
    """Return a function that writes one change, and raises if stdout is closed.

    The mirror's state says whether a path is still in the mirror.
    """
    match form:
        case "paths0":
            return lambda change, _, state, __: _write_path(change, there=True, state=state)
        case "deleted_paths0":
            return lambda change, _, state, __: _write_path(change, there=False, state=state)
        case "csv":
            lines = CsvLines(_CSV_COLUMNS)
            return lambda change, _, __, present: lines.write(change_fields(change, present))
        case _:
            return lambda change, position, _, present: screen.report(
                "change", change_fields(change, present) | {"position": str(position)}
            )


def _write_path(change: rows.LoggedChange, *, there: bool, state: SqliteMirrorState) -> None:
    if there:
        copy = state.copy(change.uri)
        path = change.path if copy is not None and copy.path == change.path else ""
    else:
        path = change.path if change.kind == "deleted" else change.was
        path = "" if path and owner_of(state, path) else path
    if path:
        write_text(f"{path}\0")
