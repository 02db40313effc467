"""``resourcesync tables``: the state of a large mirror's copies as Parquet files."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from resourcesync.cli import configured_mirrors, formatting, options
from resourcesync.cli.configured_mirrors import MirrorConfiguration
from resourcesync.cli.formatting import NORMAL, TextLine
from resourcesync.cli.options import SectionedCommand
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen

if TYPE_CHECKING:
    from resourcesync.app.mirrors.copy_tables import CopyTable
    from resourcesync.app.mirrors.stores import Home


@click.command("tables", cls=SectionedCommand)
@click.argument("action", type=click.Choice(["show", "make", "unmake"]))
@click.argument("mirror", shell_complete=options.complete_mirror)
@options.CONFIG
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Store the state of a large mirror's copies as Parquet files.

    \b
    show    list the files, which DuckDB, polars and Spark can read
    make    enable: move the rows of the copies from the state database into files
    unmake  disable: move the rows back

    MIRROR is a mirror whose copies are in a store: its address, its name in the configuration
    file, or the folder of its state. `pull --engine` makes such files itself. They are in the
    store, below .resourcesync/copies/; copies.json lists the current ones.
    """  # noqa: D301 - click's mark for lines that are not to be filled
    action, mirror = values["action"], values["mirror"]
    configuration = configured_mirrors.load(values["config"])

    def work(screen: Screen) -> CommandOutcome:
        table = _run_action(action, _home_of(mirror, configuration))
        for part in table.parts:
            screen.report("part", part._asdict())
        return _outcome(table)

    return Job(
        command="tables",
        acts=action != "show",
        output=output,
        work=work,
        render=_render,
        subject=mirror,
        fields={"mirror": mirror, "action": action},
    )


def _home_of(mirror: str, configuration: MirrorConfiguration) -> "Home":
    from resourcesync.app.mirrors.stores import Home  # noqa: PLC0415 - help stays quick
    from resourcesync.cli.configured_mirrors import locate_mirror  # noqa: PLC0415 - help stays quick

    if mirror in configuration:
        known = configuration.mirror(mirror)
        return Home(known.dest, known.store)
    return Home(*locate_mirror(mirror, None))


def _run_action(action: str, home: "Home") -> "CopyTable":
    from resourcesync.app import machine  # noqa: PLC0415 - help stays quick
    from resourcesync.app.mirrors import copy_tables  # noqa: PLC0415 - help stays quick

    if action == "show":
        return copy_tables.describe_table(home)
    change = copy_tables.make_table if action == "make" else copy_tables.dissolve_table
    return change(home, machine.system_clock())


def _outcome(table: "CopyTable") -> CommandOutcome:
    parts = formatting.count(len(table.parts))
    text = f"{formatting.count(table.copies)} copies in {parts} files, in {table.folder}"
    if table.store and table.parts:
        text += f" and in {table.store}, below .resourcesync/copies/"
    elif not table.parts:
        text = f"{formatting.count(table.copies)} copies, in the mirror's state database"
    return CommandOutcome(
        closing=(TextLine(text, "Table", NORMAL),),
        fields={
            "store": table.store,
            "folder": str(table.folder),
            "copies": table.copies,
            "parts": len(table.parts),
        },
    )


def _render(event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
    if event == "part":
        rows, size = (
            formatting.count(int(str(fields["rows"]))),
            formatting.size(int(str(fields["size"]))),
        )
        yield TextLine(f"{fields['name']}  {rows} rows, {size}, from {fields['first']}")
