"""``resourcesync list``: the copies of a mirror, as text, JSON lines or CSV."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from resourcesync import app
from resourcesync.cli import options
from resourcesync.cli.csv_lines import CsvLines
from resourcesync.cli.options import MirrorArgument, SectionedCommand, mirror_argument, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen, TextLine
from resourcesync.model.digests import format_digests
from resourcesync.model.formatting import count, moment

_CSV_COLUMNS: Final = (
    *("uri", "path", "bytes", "hash", "lastmod", "media_type"),
    *("fixity", "fetched", "confirmed", "known_as"),
)


@click.command("list", cls=SectionedCommand)
@mirror_argument
@option("--csv", is_flag=True, help="Write comma-separated values with a header line.")
@options.CONFIG
@options.output_options
def command(output: OutputOptions, mirror: MirrorArgument, *, csv: bool) -> Job:
    """List the copies that a mirror has, in the order of their URIs.

    MIRROR is a mirror's folder, or its name in the configuration file.
    Each copy has its URI, path, length, digests, lastmod and media type, how well its bytes are
    proven (fixity), when it was put in place, and when the Source last confirmed it. Only the
    mirror's state is read: no request is sent, no file is opened, and a pull may go on meanwhile.
    To follow a mirror, use `changes`, which also has what was deleted.
    """
    if csv and output.json:
        raise click.UsageError("choose one of --json and --csv")
    return Job(
        work=lambda screen: _list(mirror.folder, screen, csv=csv),
        render=_render_copy,
        subject=mirror.folder.name,
        fields={"mirror": str(mirror.folder)},
    )


def _list(folder: Path, screen: Screen, *, csv: bool) -> CommandOutcome:
    lines, number = CsvLines(_CSV_COLUMNS) if csv else None, 0
    for resource in app.mirror_changes.read_resources(folder):
        number += 1
        fields = _fields(resource, folder)
        if lines is None:
            screen.report("copy", fields)
        else:
            lines.write(fields)
    return CommandOutcome(fields={"mirror": str(folder), "copies": number})


def _fields(resource: "app.mirror_changes.MirroredResource", folder: Path) -> dict[str, object]:
    fields = {
        "uri": resource.uri,
        "known_as": resource.known_as if resource.known_as != resource.uri else "",
        "path": resource.path.relative_to(folder).as_posix(),
        "bytes": resource.length,
        "hash": format_digests(resource.digests),
        "lastmod": resource.lastmod,
        "media_type": resource.media_type,
        "fixity": resource.fixity,
        "fetched": resource.fetched,
        "confirmed": resource.confirmed,
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}


def _render_copy(event: str, fields: Mapping[str, Any]) -> Iterator[TextLine]:
    if event == "copy":
        amount = f"{count(fields['bytes'])} B" if "bytes" in fields else "unknown"
        at = moment(fields["fetched"])
        yield TextLine(f"/{fields['path']}   {amount}   {fields['fixity']}   {at}")
