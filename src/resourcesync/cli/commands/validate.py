"""``resourcesync validate``: check documents, packages and Sources against the specification."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

import click
from msgspec.structs import asdict

from resourcesync import app
from resourcesync.cli import options
from resourcesync.cli.exit_codes import ExitCode, worst
from resourcesync.cli.options import SectionedCommand, SourceAccess, option, source_options
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen, problem_of
from resourcesync.errors import ConfigurationError, ResourceSyncError
from resourcesync.model.settings import RuleProfile
from resourcesync.ports import CancelToken

if TYPE_CHECKING:
    from resourcesync.validator.results import ValidationOptions


@click.command("validate", cls=SectionedCommand)
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@option("--live", is_flag=True, help="Check all documents of the Source at an address.")
@option(
    "--sample",
    type=options.LIMIT,
    metavar="N|P%",
    help="Fetch this number or share of the listed resources and check the responses; implies"
    " --live.",
)
@option(
    "--max-documents",
    type=click.IntRange(1, 100_000),
    default=10_000,
    show_default=True,
    help="Check at most this number of documents of a Source.",
)
@option(
    "--profile",
    type=click.Choice(get_args(RuleProfile)),
    default="rs-1.1",
    show_default=True,
    help="The specification to check against.",
)
@option(
    "--select", multiple=True, metavar="CODES", help="Only these rules, such as RS4 or CH05,RS101."
)
@option("--ignore", multiple=True, metavar="CODES", help="None of these rules.")
@option(
    "--fail-on",
    type=click.Choice(["error", "warning"]),
    default="error",
    show_default=True,
    help="The weakest finding for which the exit code is 1.",
)
@option(
    "--format",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    show_default=True,
    help="The format of the output; github: an annotation for each finding.",
)
@source_options
@options.output_options
def command(output: OutputOptions, asking: SourceAccess, **values: Any) -> Job:
    """Check documents, packages and Sources against the specification.

    TARGET is a document, a package, the folder of a published tree, or any other folder, whose
    documents and packages are checked one by one; or the address of a document, a package or a
    Source.
    Each finding has its rule, location, clause and fix.
    Exit 0 without errors, 1 with errors; nothing is changed.

    \b
    resourcesync validate ./public
    resourcesync validate https://museum.example --live --sample 20
    """  # noqa: D301 - click's mark for lines that are not to be filled
    targets, style = values["targets"], values["format"]
    if style == "json":
        output = output._replace(json=True)
    elif output.json and style != "text":
        raise click.UsageError("--json is a format of its own: leave --format out")
    elif style != "text":
        output = output._replace(quiet=max(output.quiet, 1), progress="off")

    asking.check_one_source(targets)

    from resourcesync.cli.render.validate import ValidateRenderer, render_github  # noqa: PLC0415 - lazy

    return Job(
        work=lambda screen: _validate(values, asking, screen),
        render=render_github if style == "github" else ValidateRenderer(),
        subject="validate",
        fields={"targets": list(targets), "profile": values["profile"]},
    )


def _validate(values: Mapping[str, Any], asking: SourceAccess, screen: Screen) -> CommandOutcome:
    from resourcesync.cli.render.validate import ValidationTally, show_events  # noqa: PLC0415 - as above

    address = next((target for target in values["targets"] if "://" in target), "")
    judgement = _judgement(values)
    judge = app.validation.new_validator(
        judgement, network=asking.network(address), cancel=CancelToken(app.system.SystemClock())
    )
    tally, codes = ValidationTally(), [ExitCode.OK]
    for target in values["targets"]:
        try:
            codes.append(show_events(judge.judge(target), tally, screen))
        except ResourceSyncError as error:
            problem = problem_of(error)
            screen.problem(problem)
            codes.append(problem.exit)
    codes.append(ExitCode.FINDINGS if tally.has_failures(values["fail_on"]) else ExitCode.OK)
    is_github, lines = values["format"] == "github", tuple(tally.lines(judgement.profile))
    return CommandOutcome(
        exit=worst(codes),
        closing=lines[:1] if is_github else lines,
        fields=asdict(tally),
        shows_exit=is_github,
    )


def _judgement(values: Mapping[str, Any]) -> "ValidationOptions":
    from resourcesync.validator.results import ValidationOptions  # noqa: PLC0415 - as above
    from resourcesync.validator.rule import selected  # noqa: PLC0415 - as above
    from resourcesync.validator.sample import SampleSize  # noqa: PLC0415 - help stays quick

    select, ignore = (
        [code for text in values[name] for code in text.split(",") if code.strip()]
        for name in ("select", "ignore")
    )
    rules = selected(select, ignore)
    if not rules:
        raise ConfigurationError(
            "--select and --ignore leave no rule to check",
            evidence=(("select", " ".join(select)), ("ignore", " ".join(ignore))),
            hint="list the rules of a family: resourcesync why RS4",
        )
    size = values["sample"]
    return ValidationOptions(
        profile=values["profile"],
        rules=rules,
        live=values["live"],
        sample=None if size is None else SampleSize(count=size.number, percent=size.percent),
        most_documents=values["max_documents"],
    )
