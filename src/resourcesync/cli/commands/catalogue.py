"""``resourcesync catalogue``: record resource changes from another system."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from resourcesync import app
from resourcesync.cli import options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import (
    QUIET,
    CommandOutcome,
    Job,
    OutputLostError,
    OutputOptions,
    Screen,
    TextLine,
)
from resourcesync.errors import ResourceSyncError
from resourcesync.model import formatting

if TYPE_CHECKING:
    from resourcesync.ports.accounts import Posted


@click.command("catalogue", cls=SectionedCommand)
@click.argument("action", type=click.Choice(["import", "post", "export", "check"]))
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("lines", default="-", metavar="[LINES|-]")
@option("--add", is_flag=True, help="For import: keep resources that the input does not list.")
@option("--changes", is_flag=True, help="For export: the changes instead of the resources.")
@option(
    "--after",
    type=click.IntRange(0),
    default=0,
    metavar="NUMBER",
    help="For export --changes: only changes after this number.",
)
@option("--allow-empty", is_flag=True, help="For import: empty input deletes all resources.")
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Read and write a catalogue that other programs fill, as lines of JSON.

    \b
    import  LINES are the present state of all resources
    post    LINES are changes; "change" is created, updated or deleted
    export  write the resources, or the changes, to standard output
    check   list the rows that cannot be published

    FILE is the catalogue; it is created if it does not exist. Example of a line:
    {"uri": "https://example.org/a", "length": 12, "hash": "md5:…", "change": "updated"}. The
    names are those of the specification. Then: resourcesync publish catalogue:FILE.
    """  # noqa: D301 - click's mark for lines that are not to be filled
    action = values["action"]
    ours = {"add": "import", "allow_empty": "import", "changes": "export", "after": "export"}
    for flag, of in ours.items():
        if values[flag] and action != of:
            raise click.UsageError(f"--{flag.replace('_', '-')} is for {of}")
    if action == "export" and (values["lines"] != "-" or output.json):
        raise click.UsageError("export writes lines of JSON to standard output only")
    if action == "check" and values["lines"] != "-":
        raise click.UsageError("check reads FILE only")

    return Job(
        acts=action in {"import", "post"},
        work=lambda screen: _ACTIONS[action](values, screen),
        render=_render_row,
        subject=values["file"].name,
        fields={"action": action, "catalogue": str(values["file"])},
    )


def _import(values: dict[str, Any], screen: Screen) -> CommandOutcome:
    done = app.catalogues.import_lines(
        values["file"],
        values["lines"],
        clock=screen.clock,
        is_all=not values["add"],
        allow_empty=values["allow_empty"],
    )
    return _outcome(values["file"], [done])


def _post(values: dict[str, Any], screen: Screen) -> CommandOutcome:
    done: list[Posted] = []
    try:
        done.extend(app.catalogues.post_lines(values["file"], values["lines"], clock=screen.clock))
    except ResourceSyncError as error:
        before = formatting.counted(sum(_counts(done).values()), "change")
        error.evidence = (*error.evidence, ("posted", f"{before} before it"))
        raise
    return _outcome(values["file"], done)


def _export(values: dict[str, Any], _: Screen) -> CommandOutcome:
    after = values["after"] if values["changes"] else None
    for line in app.catalogues.export_lines(values["file"], changes_after=after):
        try:
            sys.stdout.buffer.write(line)
        except OSError as error:
            raise OutputLostError(error) from error
    return CommandOutcome(shows_exit=False)


def _check(values: dict[str, Any], screen: Screen) -> CommandOutcome:
    file, found = values["file"], 0
    for row in app.catalogues.find_bad_rows(file):
        found += 1
        screen.report("row", {"place": row.place, "uri": row.uri, "reason": row.reason})
    fields = {"rows": found}
    if not found:
        return CommandOutcome(
            closing=(TextLine("Every row can be published", level=QUIET),), fields=fields
        )
    return CommandOutcome(
        exit=ExitCode.FINDINGS,
        closing=(
            TextLine(f"{formatting.counted(found, 'row')} cannot be published", "Found"),
            TextLine("correct them; else publish mends those that it meets, and exits 3", "Next"),
        ),
        fields=fields,
    )


def _render_row(event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
    if event == "row":
        yield TextLine(f"{fields['place']}  {fields['uri']}  {fields['reason']}", "!", QUIET)


_ACTIONS = {"import": _import, "post": _post, "export": _export, "check": _check}


def _counts(done: "list[Posted]") -> dict[str, int]:
    names = ("created", "updated", "deleted", "touched")
    return {name: sum(getattr(posted, name) for posted in done) for name in names}


def _outcome(file: Path, done: "list[Posted]") -> CommandOutcome:
    counts = _counts(done)
    return CommandOutcome(
        closing=(
            TextLine(formatting.counts(counts) or "nothing new", "Recorded", QUIET),
            TextLine(f"resourcesync publish catalogue:{file}", "Next"),
        ),
        fields=counts,
    )
