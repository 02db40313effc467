"""``resourcesync conformance``: judge a Source by clauses, or a client by scenarios."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from resourcesync.cli import formatting, options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from resourcesync.cli.target_options import SourceAccess, source_options
from resourcesync.errors import ConfigurationError, StorageError
from resourcesync.settings.values import Limit

if TYPE_CHECKING:
    from resourcesync.conformance.clauses import ClauseReport
    from resourcesync.conformance.judge import JudgedClient, StepResult
    from resourcesync.conformance.scenarios import ClientScenario

_PLACES: Final = ("{url}", "{folder}")
_CLIENT_SECONDS: Final = 60.0


@click.command("conformance", cls=SectionedCommand)
@click.argument("words", nargs=-1, metavar="URL | -- COMMAND [ARGUMENT...]")
@option(
    "--again",
    type=options.DURATION,
    help="Visit the Source a second time after this time, such as 10m, and compare.",
)
@option(
    "--sample",
    type=options.LIMIT,
    metavar="N|P%",
    default="20",
    show_default=True,
    help="Fetch this number or share of the resources and packages of the Source.",
)
@options.MAX_DOCUMENTS
@option(
    "--first",
    metavar="TEXT",
    help="The command of the first run of each scenario, as one text, if it is another one.",
)
@option(
    "--scenario",
    "names",
    multiple=True,
    metavar="NAME",
    help="Only this scenario. The names are in the report.",
)
@option(
    "--report",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page (HTML) with the results.",
)
@option(
    "--badge",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a badge (SVG) with the result.",
)
@source_options
@options.output_options
def command(
    output: OutputOptions, asking: SourceAccess, words: tuple[str, ...], **values: Any
) -> Job:
    """Judge any Source of ResourceSync by the clauses, or any client by its copies.

    URL is a Source: its documents are read and checked as by `validate --live`, and each clause of
    the specification is passed, failed, not-applicable or not-tested, with the evidence or the
    reason. The Source conforms if each clause with a MUST that applies was tested and passed.
    Exit 0 if it conforms, 1 if not, 3 if no such clause failed and some were not tested.

    COMMAND starts the client once: {url} in its arguments is replaced by the address of a Source
    on this machine, {folder} by the folder for the copies. The Source follows scenarios, such as a
    deletion, an index, a wrong hash, or a name that leads out of the folder. After each step the
    client runs, and its files and its exit code are compared with what the Source serves: a client
    must have all that is listed, nothing else, and report success only then. Write -- before
    COMMAND; --timeout limits each run (default: 60s). Exit 0 if the client conforms in all
    scenarios, 1 if not.

    \b
    resourcesync conformance https://museum.example --again 10m --report museum.html
    resourcesync conformance -- resync-sync --baseline --delete {url} {folder}
    """  # noqa: D301 - click's mark for lines that are not to be filled
    is_source = len(words) == 1 and "://" in words[0]
    if not is_source and not all(any(place in word for word in words) for place in _PLACES):
        raise click.UsageError(
            "name a URL, or a COMMAND: it needs {url} and {folder} among its arguments"
        )

    def work(screen: Screen) -> CommandOutcome:
        if is_source:
            return _judge_source(words[0], asking, values, screen)
        return _judge_client(words, asking, values, screen)

    from resourcesync.cli.render.conformance import ConformanceRenderer  # noqa: PLC0415 - help stays quick

    return Job(command="conformance", output=output, work=work, render=ConformanceRenderer())


def _judge_source(
    url: str, asking: SourceAccess, values: dict[str, Any], screen: Screen
) -> CommandOutcome:
    from resourcesync.app import machine  # noqa: PLC0415 - help stays quick
    from resourcesync.app.checks import target_access  # noqa: PLC0415 - help stays quick
    from resourcesync.cli.render import conformance as render  # noqa: PLC0415 - help stays quick
    from resourcesync.cli.render.validate import encode_event  # noqa: PLC0415 - help stays quick
    from resourcesync.conformance.clauses import ClauseReport  # noqa: PLC0415 - help stays quick
    from resourcesync.validator.events import ValidationOptions  # noqa: PLC0415 - help stays quick
    from resourcesync.validator.sample import SampleSize  # noqa: PLC0415 - help stays quick

    size: Limit = values["sample"]
    judgement = ValidationOptions(
        live=True,
        sample=SampleSize(count=size.number, percent=size.percent),
        again=values["again"],
        most_documents=values["max_documents"],
    )
    validator = target_access.new_validator(
        judgement, network=asking.network(url), cancel=machine.new_cancel_token()
    )
    found = ClauseReport(url, judgement)
    for event in validator.judge(url):
        found.add(event)
        screen.report(*encode_event(event))
    for outcome in found.outcomes():
        screen.report("clause", render.clause_fields(outcome))
    _write_files(values, render.source_page(url, found), render.source_badge(url, found))
    return _source_outcome(found)


def _source_outcome(found: "ClauseReport") -> CommandOutcome:
    from resourcesync.cli.render import conformance as render  # noqa: PLC0415 - help stays quick

    exits = {"conforms": ExitCode.OK, "differs": ExitCode.FINDINGS, "incomplete": ExitCode.PARTIAL}
    verdict = found.verdict().value
    lines = [TextLine(render.sentence(found), verdict.capitalize(), QUIET)]
    lines += [TextLine(f"  {line}") for line in found.bounds()]
    return CommandOutcome(
        exit=exits[verdict],
        closing=tuple(lines),
        fields={"verdict": verdict, "bounds": found.bounds(), **render.clause_counts(found)},
    )


def _judge_client(
    words: tuple[str, ...], asking: SourceAccess, values: dict[str, Any], screen: Screen
) -> CommandOutcome:
    from resourcesync.cli.render import conformance as render  # noqa: PLC0415 - help stays quick

    scenarios = _scenarios(values["names"])
    client = _client(words, values["first"], asking.values["timeout"] or _CLIENT_SECONDS)
    results = _run_scenarios(scenarios, client, screen)
    judged = (scenarios, results, " ".join(words))
    _write_files(values, render.client_page(*judged), render.client_badge(*judged))
    return _outcome(scenarios, results)


def _write_files(values: dict[str, Any], page: str, badge: str) -> None:
    for path, text in ((values["report"], page), (values["badge"], badge)):
        if path is not None:
            _write(path, text)


def _scenarios(names: tuple[str, ...]) -> "list[ClientScenario]":
    from resourcesync.conformance.scenarios import SCENARIOS  # noqa: PLC0415 - help stays quick

    known = {scenario.name: scenario for scenario in SCENARIOS}
    for name in names:
        if name not in known:
            raise ConfigurationError(
                f"there is no scenario {name}", hint=f"known: {', '.join(known)}"
            )
    return [known[name] for name in dict.fromkeys(names or known)]


def _client(words: tuple[str, ...], first: str | None, seconds: float) -> "JudgedClient":
    from resourcesync.conformance.judge import JudgedClient, parse_command  # noqa: PLC0415 - as above

    beginning = parse_command(first) if first else ()
    return JudgedClient(command=words, first=beginning, seconds=seconds)


def _run_scenarios(
    scenarios: "list[ClientScenario]", client: "JudgedClient", screen: Screen
) -> "list[StepResult]":
    from resourcesync.app.machine import system_clock  # noqa: PLC0415 - help stays quick
    from resourcesync.conformance.judge import judge  # noqa: PLC0415 - as above

    results: list[StepResult] = []
    with tempfile.TemporaryDirectory(prefix="conformance-") as home:
        for scenario in scenarios:
            for result in judge(scenario, client, Path(home) / scenario.name, system_clock()):
                results.append(result)
                screen.report("conformance", _fields(result))
    return results


def _fields(result: "StepResult") -> dict[str, object]:
    return {
        "scenario": result.scenario,
        "step": result.step,
        "conforms": not result.faults,
        "faults": [fault.value for fault in result.faults],
        "evidence": list(result.evidence),
        "exit": result.exit,
        "requests": result.requests,
        "text": result.output,
    }


def _outcome(scenarios: "list[ClientScenario]", results: "list[StepResult]") -> CommandOutcome:
    failed = {result.scenario for result in results if result.faults}
    passed = len(scenarios) - len(failed)
    all_ = formatting.counted(len(scenarios), "scenario")
    word = "Differs" if failed else "Conforms"
    return CommandOutcome(
        exit=ExitCode.FINDINGS if failed else ExitCode.OK,
        closing=(TextLine(f"{formatting.count(passed)} of {all_} without a fault", word, QUIET),),
        fields={"scenarios": len(scenarios), "passed": passed},
    )


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror}",
            hint="create the folder, or correct its permissions",
        ) from error
