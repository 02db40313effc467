"""``resourcesync explore``: show a Source's documents as a tree, or what its mirrors cost it."""

from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from resourcesync.cli import options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from resourcesync.cli.target_options import SourceAccess, source_options
from resourcesync.errors import ConfigurationError, Remedy, ResourceMissingError

_COST_INPUTS: Final = {
    "resources": "resources",
    "mean_size": "mean_size",
    "changes": "changes_per_day",
    "poll": "poll",
    "publish_every": "publish",
    "mirrors": "mirrors",
}
"""Options of ``--cost``, and the inputs of the calculator."""
_COST_DEPTH: Final = 4
"""Levels down to the parts of lists; manifests cost much and tell no more."""


@click.command("explore", cls=SectionedCommand)
@click.argument("source", required=False, default="")
@option(
    "--depth",
    type=click.IntRange(1, 8),
    default=8,
    show_default=True,
    help="Levels to show: 3 reaches the lists and dumps, 4 the parts of indexes and archives and "
    "the packages of dumps, 5 the copies of their manifests.",
)
@option(
    "--cost",
    is_flag=True,
    help="Estimate what mirrors cost the Source, and recommend settings. With --resources, SOURCE "
    "may be left out.",
)
@option("--resources", type=click.IntRange(1, 10**12), help="With --cost: number of resources.")
@option("--mean-size", type=options.SIZE, help="With --cost: mean length, such as 12k.")
@option("--changes", type=click.FloatRange(0, 10**12), help="With --cost: changes a day.")
@option(
    "--poll", type=options.DURATION, help="With --cost: interval of the polls; default: 1 hour."
)
@option(
    "--publish-every",
    type=options.DURATION,
    help="With --cost: interval of the publications; default: that of the polls.",
)
@option("--mirrors", type=click.IntRange(1, 10**9), help="With --cost: number of mirrors.")
@source_options
@options.output_options
def command(output: OutputOptions, asking: SourceAccess, **values: Any) -> Job:
    """Show a Source's documents as a tree, or with --cost what its mirrors cost it.

    SOURCE is any address of a Source or a site, a folder or file of documents on this machine, or
    the name of a mirror in the configuration file. Every document is read once and counted.
    Nothing is stored, and no resource or package is fetched: for a package, the tree shows the
    values of its dump and the copy of its manifest. A document that fails is a line of the tree;
    the others are still shown, and the exit code is 3.

    \b
    resourcesync explore https://museum.example --depth 3
    resourcesync explore ./public
    resourcesync explore https://museum.example --cost --poll 15m --mirrors 20
    resourcesync explore --cost --resources 2400000 --mean-size 12k --changes 1800

    With --cost, only the table is shown: requests and bytes of one mirror for its first copy and
    for each day, by each way to follow. Its inputs are those of the lists; options replace them.
    """  # noqa: D301 - click's mark for lines that are not to be filled
    given = _cost_inputs(click.get_current_context())
    (source, asking), depth = asking.resolve(values["source"]), values["depth"]

    def work(screen: Screen) -> CommandOutcome:
        try:
            if values["cost"]:
                return _estimate(source, given, asking, screen)
            return _explore(source, depth, asking, screen)
        except ResourceMissingError as error:
            _refuse_mirror(source, error)
            raise

    from resourcesync.cli.render.explore import ExploreRenderer  # noqa: PLC0415 - help stays quick

    return Job(
        command="explore",
        output=output,
        work=work,
        render=ExploreRenderer(),
        subject="explore",
        fields={"source": source, "depth": depth},
        resume_command=f"resourcesync explore {source}",
    )


def _refuse_mirror(source: str, error: ResourceMissingError) -> None:
    """Raise a better error if a folder without documents is a mirror.

    Raises:
        ResourceMissingError: It is one.
    """
    from resourcesync.app.mirrors import mirror_state  # noqa: PLC0415 - for a mistake only

    if "://" not in source and mirror_state.is_mirror(Path(source)):
        raise ResourceMissingError(
            f"{source} is a mirror, and has no ResourceSync documents",
            uri=source,
            hint="its Source has them",
            remedy=Remedy("explore", target=mirror_state.read_status(Path(source)).source),
        ) from error


def _cost_inputs(context: click.Context) -> dict[str, Any]:
    """Return the inputs of the calculator that were given.

    Raises:
        click.UsageError: They have no effect, or there is no SOURCE and nothing replaces it.
    """
    values = context.params
    given = {
        name: values[option]
        for option, name in _COST_INPUTS.items()
        if context.get_parameter_source(option) is not ParameterSource.DEFAULT
    }
    if given and not values["cost"]:
        first = next(name for name, key in _COST_INPUTS.items() if key in given)
        raise click.UsageError(f"--{first.replace('_', '-')} needs --cost")
    if not values["source"] and not (values["cost"] and "resources" in given):
        raise click.UsageError("name a SOURCE; only --cost with --resources needs none")
    return given


def _estimate(
    source: str, given: dict[str, Any], asking: SourceAccess, screen: Screen
) -> CommandOutcome:
    from resourcesync.app import document_access, machine  # noqa: PLC0415 - help stays quick
    from resourcesync.cli.render import cost  # noqa: PLC0415 - as above
    from resourcesync.cli.render.explore import step_event, step_fields  # noqa: PLC0415 - as above
    from resourcesync.discovery.cost import estimate_cost  # noqa: PLC0415 - as above
    from resourcesync.discovery.cost_survey import CostSurvey  # noqa: PLC0415 - as above

    survey, failed = CostSurvey(), 0
    if source:
        for step in document_access.explore(
            source,
            network=asking.network(source),
            cancel=machine.new_cancel_token(),
            depth=_COST_DEPTH,
        ):
            survey.add(step)
            if getattr(step, "error", None) is not None:
                failed += 1
                screen.report(step_event(step), step_fields(step))
    try:
        inputs, assumed = survey.inputs(given)
    except ValueError as error:
        raise ConfigurationError(
            f"the cost cannot be estimated: {error}",
            hint="only a Resource List has it; or give --resources",
        ) from error
    estimate = estimate_cost(inputs)
    screen.report("cost", cost.cost_fields(estimate))
    return CommandOutcome(
        exit=ExitCode.PARTIAL if failed else ExitCode.OK,
        closing=tuple(cost.cost_lines(estimate, assumed)),
        fields={"failed": failed},
    )


def _explore(source: str, depth: int, asking: SourceAccess, screen: Screen) -> CommandOutcome:
    from resourcesync.app import document_access, machine  # noqa: PLC0415 - help stays quick
    from resourcesync.cli.render.explore import Totals, step_event, step_fields  # noqa: PLC0415 - as below

    totals = Totals()
    cancel = machine.new_cancel_token()
    began = cancel.clock.monotonic()
    for step in document_access.explore(
        source, network=asking.network(source), cancel=cancel, depth=depth
    ):
        totals.add(step)
        screen.report(step_event(step), step_fields(step))
    code = ExitCode.PARTIAL if totals.failed else ExitCode.OK
    return CommandOutcome(
        exit=code, closing=totals.lines(cancel.clock.monotonic() - began), fields=totals.fields()
    )
