"""``resourcesync explore``: show a Source's documents as a tree, with what each of them holds."""

from typing import Any

import click

from resourcesync.cli import options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.job import Job
from resourcesync.cli.looking import Asking, asking_options
from resourcesync.cli.options import option
from resourcesync.cli.output import Outcome, OutputOptions, Screen


@click.command("explore")
@click.argument("source")
@option(
    "--depth",
    type=click.IntRange(1, 8),
    default=8,
    show_default=True,
    help="Levels of documents to read; 3 reaches the lists, 4 the parts of their indexes.",
)
@asking_options
@options.output_options
def command(output: OutputOptions, asking: Asking, **values: Any) -> Job:
    """Show a Source's documents as a tree.

    SOURCE is any address of a Source or a site, or the folder or file of documents on this
    machine. Every document is read once and counted; nothing is kept and no resource is fetched.
    A document that fails is a line of the tree and does not stop the rest; the exit code is 3 then.

    \b
    resourcesync explore https://museum.example --depth 3
    resourcesync explore ./public
    """  # noqa: D301 - click's mark for lines that are not to be filled
    source, depth = values["source"], values["depth"]

    def work(screen: Screen) -> Outcome:
        return _explore(source, depth, asking, screen)

    from resourcesync.cli.explore_words import ExploreWords  # noqa: PLC0415 - help stays quick

    return Job(
        command="explore",
        output=output,
        work=work,
        words=ExploreWords(),
        subject="explore",
        fields={"source": source, "depth": depth},
        again=f"resourcesync explore {source}",
    )


def _explore(source: str, depth: int, asking: Asking, screen: Screen) -> Outcome:
    from resourcesync.cli.explore_words import Totals, fields_of  # noqa: PLC0415 - help stays quick
    from resourcesync.discovery.tree import Sum  # noqa: PLC0415 - help stays quick
    from resourcesync.wiring import exploring, machine  # noqa: PLC0415 - help stays quick

    totals = Totals()
    clock = machine.system_clock()
    began = clock.monotonic()
    for step in exploring.explore(source, network=asking.network(), clock=clock, depth=depth):
        totals.add(step)
        event = "sum" if isinstance(step, Sum) else "document"
        screen.report(event, fields_of(step))
    code = ExitCode.PARTIAL if totals.failed else ExitCode.OK
    return Outcome(
        exit=code, closing=totals.lines(clock.monotonic() - began), fields=totals.fields()
    )
