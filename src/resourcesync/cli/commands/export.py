"""``resourcesync export``: export the copies of a mirror as packages or a bag."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from resourcesync.cli import formatting, options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from resourcesync.cli.target_options import MirrorArgument, mirror_argument
from resourcesync.settings.values import resolve_moment

if TYPE_CHECKING:
    from resourcesync.destination.exports.checked_export import Exported
    from resourcesync.ports.exporters import ExportOptions


@click.command("export", cls=SectionedCommand)
@mirror_argument
@option(
    "--format",
    metavar="zip|bagit|warc|wacz",
    required=True,
    help="The format to write, or a plug-in.",
)
@option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE|DIR",
    required=True,
    help="The target, which must not exist yet. It is one file if the name ends with .zip, "
    ".warc.gz, .warc or .wacz.",
)
@option(
    "--max-package",
    type=options.PACKAGE_SIZE,
    default="1G",
    show_default=True,
    help="Most content of one package, for --format zip into a folder; most bytes of a WARC file.",
)
@option("--url", default="", help="The future address of the folder: adds a Resource Dump.")
@option(
    "--since",
    type=options.MOMENT,
    help="Only copies that are newer, such as -1d or a date; deletions: changes --deleted-paths0.",
)
@option(
    "--versions",
    is_flag=True,
    help="All versions that a published folder stores, also of deleted files: for warc and wacz.",
)
@option("--organization", default="", help="The organization that exports, for bag-info.txt.")
@options.CONFIG
@options.output_options
def command(output: OutputOptions, mirror: MirrorArgument, out: Path, **values: Any) -> Job:
    """Export the copies of a mirror, or all versions of a published folder.

    MIRROR is a mirror's folder, or its name in the configuration file; with --versions, a folder
    that is published with --versions.
    zip makes packages of a Resource Dump, which any unzip reads; bagit makes a bag (RFC 8493);
    warc and wacz make web archives, which Wayback programs show.
    Every byte is hashed while it is copied. If copies are damaged, all of them are listed, and
    nothing is written (exit 1). A pull may run at the same time: the export is a snapshot.
    """
    form, since = values.pop("format"), values.pop("since")
    again = f"resourcesync export {mirror.folder} --format {form} --out {out}"

    def work(screen: Screen) -> CommandOutcome:
        from resourcesync.app import exports, machine  # noqa: PLC0415 - help stays quick
        from resourcesync.ports.exporters import ExportOptions  # noqa: PLC0415 - help stays quick

        clock = machine.system_clock()
        moment = None if since is None else resolve_moment(since, clock.now())
        chosen = ExportOptions(name=out.name, since=moment, **values)
        done = exports.export_mirror(
            mirror.folder, form, out, chosen, report=screen.report, clock=clock
        )
        return _outcome(done, mirror.folder, out, chosen)

    return Job(
        command="export",
        acts=True,
        output=output,
        work=work,
        render=_render,
        subject=mirror.folder.name or str(mirror.folder),
        fields={"mirror": str(mirror.folder), "format": form, "out": str(out)},
        resume_command=f"{again} --versions" if values["versions"] else again,
    )


def _render(event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
    if event == "finding":
        yield TextLine(f"/{fields['path']}   {fields['reason']}", str(fields["kind"]), QUIET)


def _outcome(done: "Exported", folder: Path, out: Path, options: "ExportOptions") -> CommandOutcome:
    fields = {
        "since": options.since,
        "mirror": str(folder),
        "out": str(out),
        "copies": done.copies,
        "bytes": done.size,
        "source": done.source,
        "as_of": done.as_of,
        "missing": done.missing,
        "begun": done.is_begun,
        "damaged": done.damaged,
    }
    noun = "resource"
    if options.versions:
        noun = "version"
        fields |= {"versions": done.copies, "excluded": done.excluded}
    if done.damaged:
        return CommandOutcome(
            exit=ExitCode.FINDINGS, closing=_refused(done, folder, noun), fields=fields
        )
    as_of = "" if done.as_of is None else f", state as of {formatting.moment(done.as_of)}"
    copies = formatting.counted(done.copies, noun)
    if options.since is not None:
        copies += f" newer than {formatting.moment(options.since)}"
    if not done.copies:
        text = f"{copies}: nothing was written"
        return CommandOutcome(closing=(TextLine(text, "Exported", QUIET),), fields=fields)
    text = f"{copies} in {out}, {formatting.size(done.size)}{as_of}; all hashes verified"
    return _written(done, folder, TextLine(text, "Exported", QUIET), fields)


def _written(
    done: "Exported", folder: Path, line: TextLine, fields: Mapping[str, object]
) -> CommandOutcome:
    """Return the outcome of an export that was written, and what it lacks."""
    if done.is_begun:
        text = (
            "incomplete: the first pull never completed, so the number of missing ones is unknown"
        )
        step = TextLine(f"  next   resourcesync pull {folder}, then export again")
        lines = (line, TextLine(f"          {text}", level=QUIET), step)
        return CommandOutcome(exit=ExitCode.PARTIAL, closing=lines, fields=fields)
    more: list[TextLine] = []
    if done.missing:
        missing = formatting.counted(done.missing, "listed resource")
        more.append(TextLine(f"          {missing} not included: not in the mirror as listed"))
    if done.excluded:
        excluded = formatting.counted(done.excluded, "version")
        more.append(TextLine(f"          {excluded} not included: their files are excluded"))
    return CommandOutcome(closing=(line, *more), fields=fields)


def _refused(done: "Exported", folder: Path, noun: str) -> tuple[TextLine, ...]:
    """Return the lines that report damaged copies, and how to repair them."""
    copies = formatting.counted(done.damaged, noun)
    are = "is" if done.damaged == 1 else "are"
    refused = TextLine(f"{copies} of {folder} {are} damaged; nothing was written", "Refused", QUIET)
    if noun == "version":
        return refused, TextLine("  next   restore these files from a backup, then export again")
    return (
        refused,
        # Without an audit that reads every byte, a repair compares only sizes and times.
        TextLine(f"  next   resourcesync audit {folder}"),
        TextLine(f"         resourcesync repair {folder} --from-audit last, then export again"),
    )
