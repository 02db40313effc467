"""``resourcesync convert``: write a document in another dialect."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from resourcesync.cli import options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import CommandOutcome, Job, OutputLostError, OutputOptions, Screen

if TYPE_CHECKING:
    from resourcesync.app.document_conversion import Converted

DIALECTS: Final = (
    "0.5",
    "0.6",
    "0.9",
    "0.9.1",
    "1.0",
    "1.1",
    "sitemap",
    "atom-links",
    "atom-entries",
    "native",
)
"""Names of the dialects that can be written."""
_INFERRED_FROM: Final = {
    "datetime": "from lastmod, which was the time of the change before 1.1",
    "lastmod": "from the listed time of the change or of the document",
}


@click.command("convert", cls=SectionedCommand)
@click.argument("file", metavar="FILE|-")
@option(
    "--to",
    type=click.Choice(DIALECTS),
    required=True,
    metavar="DIALECT",
    help=f"The version to write: {', '.join(DIALECTS)}.",
)
@option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file, replaced in one step; without it, to standard output.",
)
@option(
    "--lastmod",
    is_flag=True,
    help="With 1.1: repeat the time of each change as lastmod, for readers of 1.0.",
)
@option(
    "--strict",
    is_flag=True,
    help="Refuse a document that breaks a rule of version 1.1, instead of tolerating it.",
)
@option(
    "--leave-out",
    is_flag=True,
    help="Leave out entries that cannot be used (exit 3); without it, nothing is written then.",
)
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Write a document in another version of the format.

    FILE is a document of any version, a plain sitemap, or one of the abandoned draft formats (two
    of Atom, one native); gzip is unpacked. Values that the new version does not have are left out,
    and required values are inferred; both are listed on standard error. Nothing is written unless
    the whole document can be converted.

    \b
    resourcesync convert changelist.xml --to 1.0 --out changelist-1.0.xml
    """  # noqa: D301 - click's mark for lines that are not to be filled
    if output.json and values["out"] is None:
        raise click.UsageError("--json needs --out: the document goes to standard output")
    if values["lastmod"] and values["to"] != "1.1":
        raise click.UsageError("--lastmod is for --to 1.1; older versions always have it")

    def work(screen: Screen) -> CommandOutcome:
        return _convert(values, screen)

    return Job(
        command="convert",
        output=output,
        work=work,
        fields={"source": values["file"], "dialect": values["to"]},
    )


def _convert(values: dict[str, Any], screen: Screen) -> CommandOutcome:
    from resourcesync.app import document_conversion, machine  # noqa: PLC0415 - help stays quick
    from resourcesync.model.vocabulary import Dialect  # noqa: PLC0415 - help stays quick

    out: Path | None = values["out"]
    to: str = values["to"]
    try:
        manner = document_conversion.ConversionOptions(
            dialect=Dialect(to),
            lastmod_compat=values["lastmod"],
            strict=values["strict"],
            leave_out=values["leave_out"],
        )
        clock = machine.system_clock()
        done = document_conversion.convert(values["file"], out, manner, clock=clock)
    except OSError as error:  # only of standard output: the library raises our own errors
        raise OutputLostError(error) from error
    for code, text in _warnings(done, to):
        screen.report("warning", {"code": code, "message": text})
    conversion = done.conversion
    before = done.dialect.phrase_for(conversion.header.capability)
    written = "1 entry" if conversion.entries == 1 else f"{conversion.entries:,} entries"
    line = TextLine(
        f"{out}  {conversion.header.phrase}, {written}, {before} to {to}", "Wrote", QUIET
    )
    return CommandOutcome(
        exit=ExitCode.PARTIAL if done.refusals else ExitCode.OK,
        closing=(line,) if out is not None else (),
        fields={
            "entries": conversion.entries,
            "refused": done.refusals,
            "tolerated": len(done.tolerated),
            "from_dialect": before,
        },
        shows_exit=out is None,
    )


def _warnings(done: "Converted", to: str) -> Iterator[tuple[str, str]]:
    """Yield the code and the sentence of each warning about the new document."""
    for forgiven in done.tolerated:
        place = f"line {forgiven.line}: " if forgiven.line else ""
        rule = f" ({forgiven.rule})" if forgiven.rule else ""
        yield "tolerated", f"{place}{forgiven.reason}{rule}"
    for entry in done.refused:
        yield entry.code, f"line {entry.line}: {entry.reason}; the entry is left out"
    if more := done.refusals - len(done.refused):
        entries = "1 more entry is" if more == 1 else f"{more:,} more entries are"
        yield "entry-invalid", f"{entries} left out"
    conversion = done.conversion
    phrase = conversion.header.phrase
    if conversion.left_out_of_header:
        names = ", ".join(sorted(conversion.left_out_of_header))
        yield "left-out", f"{to} has no place in the {phrase} for: {names}"
    for name, count in sorted(conversion.left_out_of_entries.items()):
        entries = "1 entry" if count == 1 else f"{count:,} entries"
        yield "left-out", f"{to} has no place for {name} of {entries}"
    for name, count in sorted(conversion.inferred.items()):
        entries = "1 entry" if count == 1 else f"{count:,} entries"
        yield "inferred", f"{name} of {entries} is inferred {_INFERRED_FROM[name]}"
    for text in conversion.added:
        yield "added", f"{to} requires a value that the {phrase} does not have; {text}"
