"""``resourcesync explore``: show a Source's documents as a tree."""

from pathlib import Path
from typing import Any

import click

from resourcesync import app
from resourcesync.cli import options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.options import SectionedCommand, SourceAccess, option, source_options
from resourcesync.cli.output import CommandOutcome, Job, Screen
from resourcesync.errors import ResourceMissingError, quoted
from resourcesync.ports import CancelToken


@click.command("explore", cls=SectionedCommand)
@click.argument("source")
@option(
    "--depth",
    type=click.IntRange(1, 8),
    default=8,
    show_default=True,
    help="Levels to show: 3 reaches the lists and dumps, 4 the parts of indexes and archives and "
    "the packages of dumps, 5 the copies of their manifests.",
)
@source_options
@options.output_options
def command(asking: SourceAccess, **values: Any) -> Job:
    """Show a Source's documents as a tree.

    SOURCE is any address of a Source or a site, a folder or file of documents on this machine, or
    the name of a mirror in the configuration file. Every document is read once and counted.
    Nothing is stored, and no resource or package is fetched: for a package, the tree shows the
    values of its dump and the copy of its manifest. A document that fails is a line of the tree;
    the others are still shown, and the exit code is 3.

    \b
    resourcesync explore https://museum.example --depth 3
    resourcesync explore ./public
    """  # noqa: D301 - click's mark for lines that are not to be filled
    (source, asking), depth = asking.resolve(values["source"]), values["depth"]

    def work(screen: Screen) -> CommandOutcome:
        try:
            return _explore(source, depth, asking, screen)
        except ResourceMissingError as error:
            if "://" not in source and (known := app.mirror_home.source_of(Path(source))):
                raise ResourceMissingError(
                    f"{source} is a mirror, and has no ResourceSync documents",
                    uri=source,
                    hint=f"its Source has them: resourcesync explore {quoted(known, 'URL')}",
                ) from error
            raise

    from resourcesync.cli.render.explore import ExploreRenderer  # noqa: PLC0415 - help stays quick

    return Job(
        work=work,
        render=ExploreRenderer(),
        subject="explore",
        fields={"source": source, "depth": depth},
        resume_command=f"resourcesync explore {source}",
    )


def _explore(source: str, depth: int, asking: SourceAccess, screen: Screen) -> CommandOutcome:
    from resourcesync.cli.render.explore import Totals, step_event, step_fields  # noqa: PLC0415 - as below

    totals = Totals()
    cancel = CancelToken(app.system.SystemClock())
    began = cancel.clock.monotonic()
    for step in app.document_access.explore(
        source, network=asking.network(source), cancel=cancel, depth=depth
    ):
        totals.add(step)
        screen.report(step_event(step), step_fields(step))
    code = ExitCode.PARTIAL if totals.failed else ExitCode.OK
    return CommandOutcome(
        exit=code, closing=totals.lines(cancel.clock.monotonic() - began), fields=totals.fields()
    )
