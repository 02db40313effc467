"""``resourcesync conformance``: judge a client of ResourceSync by scenarios."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from resourcesync.cli import formatting, options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from resourcesync.errors import ConfigurationError, StorageError

if TYPE_CHECKING:
    from resourcesync.conformance.judge import JudgedClient, StepResult
    from resourcesync.conformance.scenarios import ClientScenario

_PLACES: Final = ("{url}", "{folder}")


@click.command("conformance", cls=SectionedCommand)
@click.argument("words", nargs=-1, metavar="COMMAND [ARGUMENT...]")
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
    "--timeout",
    type=options.DURATION,
    default="60s",
    show_default=True,
    help="The longest time of one run of the client.",
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
    help="Write a badge (SVG) with the number of scenarios.",
)
@options.output_options
def command(output: OutputOptions, words: tuple[str, ...], **values: Any) -> Job:
    """Judge any client of ResourceSync by its copies.

    COMMAND starts the client once: {url} in its arguments is replaced by the address of a Source
    on this machine, {folder} by the folder for the copies. The Source follows scenarios, such as a
    deletion, an index, a wrong hash, or a name that leads out of the folder. After each step the
    client runs, and its files and its exit code are compared with what the Source serves: a client
    must have all that is listed, nothing else, and report success only then. Write -- before
    COMMAND. Sources are judged by `validate --live`. Exit 0 if the client conforms in all
    scenarios, 1 if not.

    \b
    resourcesync conformance -- resync-sync --baseline --delete {url} {folder}
    """  # noqa: D301 - click's mark for lines that are not to be filled
    if not all(any(place in word for word in words) for place in _PLACES):
        raise click.UsageError("COMMAND needs {url} and {folder} among its arguments")

    def work(screen: Screen) -> CommandOutcome:
        from resourcesync.cli.render import conformance as render  # noqa: PLC0415 - help stays quick

        scenarios = _scenarios(values["names"])
        results = _judge(scenarios, _client(words, values), screen)
        for path, write in ((values["report"], render.report), (values["badge"], render.badge)):
            if path is not None:
                _write(path, write(scenarios, results, " ".join(words)))
        return _outcome(scenarios, results)

    from resourcesync.cli.render.conformance import render_event  # noqa: PLC0415 - help stays quick

    return Job(command="conformance", output=output, work=work, render=render_event)


def _scenarios(names: tuple[str, ...]) -> "list[ClientScenario]":
    from resourcesync.conformance.scenarios import SCENARIOS  # noqa: PLC0415 - help stays quick

    known = {scenario.name: scenario for scenario in SCENARIOS}
    for name in names:
        if name not in known:
            raise ConfigurationError(
                f"there is no scenario {name}", hint=f"known: {', '.join(known)}"
            )
    return [known[name] for name in dict.fromkeys(names or known)]


def _client(words: tuple[str, ...], values: dict[str, Any]) -> "JudgedClient":
    from resourcesync.conformance.judge import JudgedClient, parse_command  # noqa: PLC0415 - as above

    first = parse_command(values["first"]) if values["first"] else ()
    return JudgedClient(command=words, first=first, seconds=values["timeout"])


def _judge(
    scenarios: "list[ClientScenario]", client: "JudgedClient", screen: Screen
) -> "list[StepResult]":
    from resourcesync.conformance.judge import judge  # noqa: PLC0415 - as above

    results: list[StepResult] = []
    with tempfile.TemporaryDirectory(prefix="conformance-") as home:
        for scenario in scenarios:
            for result in judge(scenario, client, Path(home) / scenario.name):
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
