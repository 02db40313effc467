"""``resourcesync simulate``: simulate a Source and Destinations in virtual time, and measure.

With ``--live``, the simulated Source is served in real time until a signal.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource
from msgspec.structs import replace

from resourcesync.cli import options
from resourcesync.cli.exit_codes import ExitCode, acknowledge_stop
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import (
    NORMAL,
    QUIET,
    CommandOutcome,
    Job,
    OutputLostError,
    OutputOptions,
    Screen,
    TextLine,
)
from resourcesync.errors import ConfigurationError
from resourcesync.model import formatting

if TYPE_CHECKING:
    from resourcesync_simulator.experiments import SimulationRun, Summary
    from resourcesync_simulator.scenario import Scenario


_TICK_SECONDS: Final = 0.2
"""Seconds between two checks for due events; a request checks too."""
_NO_FIGURE: Final = "-"
"""The text for a figure that no run has."""
_LEAST_DIGITS: Final = 4
_MOST_DIGITS: Final = 12
_LIVE_OPTIONS: Final = ("bind", "base_uri", "speed")
_SIMULATION_OPTIONS: Final = ("sweep", "repeat", "jobs", "out")


def check_live_options(context: click.Context) -> None:
    """Refuse options that have no effect."""
    is_live = context.params["live"]
    for name in _SIMULATION_OPTIONS if is_live else _LIVE_OPTIONS:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(
                f"{option} cannot be used with --live" if is_live else f"{option} needs --live"
            )
    if is_live and context.params["scenario"] == "init":
        raise click.UsageError("init writes a scenario; --live needs one that exists")


def serve_live(
    values: Mapping[str, Any], written: Callable[[], Mapping[str, Any]], screen: Screen
) -> CommandOutcome:
    """Serve the Source until a signal; a signal is the normal end."""
    from resourcesync.adapters.system import SystemClock  # noqa: PLC0415 - help stays quick
    from resourcesync_simulator import live_server  # noqa: PLC0415 - help stays quick

    scenario = _live_scenario(values, written, screen)
    (host, port), clock = values["bind"], SystemClock()
    place = live_server.LiveAddress(
        host=host, port=port, base_uri=values["base_uri"], speed=values["speed"]
    )
    try:
        with live_server.serve_live(scenario, place, clock=clock) as serving:
            pull = f"resourcesync pull {serving.uri} ./copy"
            screen.report("ready", {"uri": serving.uri, "pull": pull, "tree": values["scenario"]})
            while True:
                clock.sleep(_TICK_SECONDS)
                serving.advance()
    except KeyboardInterrupt as stop:
        acknowledge_stop(stop)
    return CommandOutcome(closing=(TextLine("no longer served", "Stopped", QUIET),))


def warn_of_late_events(played: "Iterable[Scenario]", screen: Screen) -> None:
    """Warn once about each event of scenarios that is after their end."""
    from resourcesync_simulator import bounds  # noqa: PLC0415 - help stays quick

    for text in dict.fromkeys(
        name for scenario in played for name in bounds.faults_after_end(scenario)
    ):
        screen.report("warning", {"code": "never", "message": f"this will not happen: {text}"})


def _live_scenario(
    values: Mapping[str, Any], written: Callable[[], Mapping[str, Any]], screen: Screen
) -> "Scenario":
    from resourcesync_simulator import scenario_files  # noqa: PLC0415 - help stays quick

    scenario = scenario_files.scenario_of(dict(written()))
    warn_of_late_events([scenario], screen)
    return scenario if values["seed"] is None else replace(scenario, seed=values["seed"])


_EVENTS: Final = "events"


@click.command("simulate", cls=SectionedCommand)
@click.argument("scenario", metavar="init|PROFILE|FILE")
@click.argument("profile", required=False, default="")
@option("--seed", type=click.IntRange(0), help="The seed, instead of the scenario's.")
@option(
    "--sweep",
    multiple=True,
    metavar="KEY=A,B,C",
    help="Run with each of these values, such as publish.rotate=5m,1h,1d; repeat for all"
    " combinations. variant=A,B uses the named sets of values of the scenario. Commas in [], {} and"
    " quotes do not separate values.",
)
@option(
    "--repeat",
    type=click.IntRange(1, 10_000),
    default=1,
    show_default=True,
    help="Run each with this number of seeds.",
)
@option("--jobs", type=click.IntRange(1, 256), help="Processes; default: the number of processors.")
@option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write summary.csv and events.ndjson.gz into this folder.",
)
@option(
    "--live",
    is_flag=True,
    help="Serve the simulated Source in real time over HTTP, for any client, until a signal.",
)
@option(
    "--bind",
    type=options.BINDING,
    default="127.0.0.1:8888",
    show_default=True,
    help="With --live: the address to listen on.",
)
@option(
    "--base-uri",
    default="",
    metavar="URI",
    help="With --live: the address for clients, if it is not the address of --bind, such as"
    " http://HOST:PORT/.",
)
@option(
    "--speed",
    type=click.FloatRange(0, 100_000, min_open=True),
    default=1.0,
    show_default=True,
    help="With --live: simulated seconds per second.",
)
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Simulate a Source and Destinations, and measure how well they stay in sync.

    Time is virtual: a week takes seconds. Source and Destinations run the same code as the other
    commands; the origin, the network and the time are simulated from a seed. The same scenario
    gives the same events.

    \b
    resourcesync simulate init arxiv > scenario.toml
    resourcesync simulate scenario.toml --sweep publish.every=5m,1h,1d --repeat 5 --out results
    resourcesync simulate scenario.toml --sweep variant=daily-lists,hourly,push

    Consistency is the share of resources that are equal on both sides, on average over time.
    Latency is the time from a change to its copy. Efficiency is the share of useful bytes. All
    figures count from the end of the first pull; its requests have their own column. If a
    Destination falsely reports "in sync" (a lie), the exit code is 1.
    """  # noqa: D301 - click's mark for lines that are not to be filled
    check_live_options(click.get_current_context())
    if values["scenario"] == "init":
        if output.json:
            raise click.UsageError("init writes a scenario to standard output only")
        return Job(command="simulate", output=output, work=lambda _: _init(values["profile"]))
    if values["profile"]:
        raise click.UsageError("a second name is for init")
    swept = _swept(values)

    def work(screen: Screen) -> CommandOutcome:
        if values["live"]:
            return serve_live(values, lambda: _read_scenario(values), screen)
        return _simulate(values, swept, screen)

    return Job(
        command="simulate",
        output=output,
        work=work,
        render=_render,
        subject=values["scenario"],
        fields={"source": values["scenario"]},
    )


def _swept(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the values of the sweeps by their keys."""
    found: dict[str, list[str]] = {}
    for text in values["sweep"]:
        key, swept = _parse_sweep(text)
        if key in found:
            raise click.UsageError(f"--sweep {key} is given twice; write it as {key}=A,B,C")
        found[key] = swept
    if "seed" in found and values["seed"] is not None:
        raise click.UsageError("--sweep seed=... and --seed exclude each other")
    if "seed" in found and values["repeat"] > 1:
        raise click.UsageError(
            "--sweep seed=... and --repeat exclude each other: --repeat uses the following seeds"
        )
    return found


def _parse_sweep(text: str) -> tuple[str, list[str]]:
    from resourcesync_simulator.scenario_files import values_of  # noqa: PLC0415 - help stays quick

    key, _, listed = text.partition("=")
    key, values = key.strip(), values_of(listed)
    if not key or not all(values):
        raise click.UsageError("--sweep must have the form KEY=A,B,C")
    for value in values:
        if values.count(value) > 1:
            raise click.UsageError(f"--sweep {key} has the value {value} twice")
    return key, values


def _init(profile: str) -> CommandOutcome:
    from resourcesync_simulator.profiles import PROFILES  # noqa: PLC0415 - help stays quick

    if profile not in PROFILES:
        raise ConfigurationError(
            f"there is no profile {profile[:100]!r}",
            hint=f"name one of {', '.join(PROFILES)}: resourcesync simulate init museum",
        )
    try:
        sys.stdout.write(PROFILES[profile])
    except OSError as error:
        raise OutputLostError(error) from error
    return CommandOutcome(shows_exit=False)


def _simulate(
    values: Mapping[str, Any], swept: Mapping[str, Sequence[str]], screen: Screen
) -> CommandOutcome:
    from resourcesync.adapters.system import SystemClock  # noqa: PLC0415 - help stays quick
    from resourcesync_simulator import experiments  # noqa: PLC0415 - help stays quick
    from resourcesync_simulator.experiments import results_folder  # noqa: PLC0415 - as above

    written, out, clock = _read_scenario(values), values["out"], SystemClock()
    tasks = experiments.plan_runs(written, swept, repeat=values["repeat"], seed=values["seed"])
    warn_of_late_events((task.scenario for task in tasks), screen)
    began = clock.monotonic()
    runs: list[SimulationRun] = []
    with nullcontext() if out is None else results_folder(out) as work:
        events = None if work is None else work / _EVENTS
        with closing(experiments.simulate_runs(tasks, events=events, jobs=values["jobs"])) as lives:
            for run in lives:
                runs.append(run)
                screen.report("simulated", _run_fields(run))
        summaries = experiments.summarise(runs)
        if work is not None:
            experiments.write_table(runs, work / "summary.csv")
            experiments.join_events(work / _EVENTS, work / "events.ndjson.gz")
    lines = [*_table(summaries), _runs_line(len(runs), clock.monotonic() - began)]
    if out is not None:
        lines.append(TextLine(f"{out}/summary.csv, events.ndjson.gz", "Wrote", QUIET))
    wrong = [run for run in runs if run.measured.lies or run.measured.outcome == "silently wrong"]
    lines += [
        TextLine(
            f"seed {run.seed} {_values_text(run.values)}: falsely reported in sync", "!", QUIET
        )
        for run in wrong[:3]
    ]
    fields = {"runs": len(runs), "wrong": len(wrong)}
    code = ExitCode.FINDINGS if wrong else ExitCode.OK
    return CommandOutcome(exit=code, closing=tuple(lines), fields=fields)


def _read_scenario(values: Mapping[str, Any]) -> dict[str, Any]:
    from resourcesync_simulator import scenario_files  # noqa: PLC0415 - help stays quick
    from resourcesync_simulator.profiles import PROFILES  # noqa: PLC0415 - help stays quick

    name = values["scenario"]
    if name in PROFILES and not Path(name).is_file():
        return scenario_files.parse_scenario(PROFILES[name], name)
    return scenario_files.read_scenario(Path(name))


def _table(summaries: "Sequence[Summary]") -> Iterator[TextLine]:
    """Yield the lines of the table: a row for each value of the sweep."""
    keys = list(summaries[0].values) if summaries else []
    short = [key.rpartition(".")[2] for key in keys]
    named = [name if short.count(name) == 1 else key for key, name in zip(keys, short, strict=True)]
    heads = [*map(str.upper, named), "DESTINATION", "CONSISTENCY"]
    heads += ["LATENCY MEDIAN / P95", "EFFICIENCY", "REQUESTS", "FIRST PULL", "ENDED"]
    rows = [heads, *map(_table_row, summaries)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(heads))]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        yield TextLine("  ".join(cells).rstrip(), level=QUIET)


def _table_row(summary: "Summary") -> list[str]:
    outcomes = [run.measured.outcome for run in summary.runs]
    ended = (
        "converged"
        if set(outcomes) == {"converged"}
        else ", ".join(f"{outcomes.count(name)} {name}" for name in sorted(set(outcomes)))
    )
    return [
        *summary.values.values(),
        summary.destination,
        _consistency_text(summary),
        _latency_text(summary),
        _mean_text(summary, "efficiency", ".3f"),
        _mean_text(summary, "requests", ",.0f"),
        _mean_text(summary, "first_requests", ",.0f", "never ended"),
        ended,
    ]


def _mean_text(summary: "Summary", name: str, form: str, none: str = _NO_FIGURE) -> str:
    """Return the mean of a figure."""
    mean = summary.mean(name)
    return none if mean is None else format(mean, form)


def _span_text(summary: "Summary", name: str) -> str:
    """Return the mean of a figure in seconds, and its spread over the seeds, if any."""
    mean, spread = summary.mean(name), summary.spread(name)
    if mean is None:
        return _NO_FIGURE
    return (
        f"{formatting.span(mean)} ± {formatting.span(spread)}" if spread else formatting.span(mean)
    )


def _latency_text(summary: "Summary") -> str:
    """Return the median and the 95th percentile."""
    return f"{_span_text(summary, 'latency')} / {_span_text(summary, 'latency_95')}"


def _consistency_text(summary: "Summary") -> str:
    """Return the share of equal resources, with enough digits to show the unequal ones."""
    mean, spread = summary.mean("consistency"), summary.spread("consistency")
    if mean is None:
        return _NO_FIGURE
    gap = 1.0 - mean
    digits = _LEAST_DIGITS if gap <= 0 else 1 - floor(log10(gap))
    digits = min(max(digits, _LEAST_DIGITS), _MOST_DIGITS)
    return f"{mean:.{digits}f}" + (f" ± {spread:.{digits}f}" if spread else "")


def _runs_line(runs: int, seconds: float) -> TextLine:
    return TextLine(f"{formatting.counted(runs, 'run')} in {seconds:.0f} s", "Simulated")


def _values_text(values: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in values.items())


def _run_fields(run: "SimulationRun") -> dict[str, object]:
    measurement = run.measured
    return {
        "seed": run.seed,
        "name": run.destination,
        "text": _values_text(run.values),
        "consistency": measurement.consistency,
        "latency": measurement.latency,
        "latency_95": measurement.latency_95,
        "efficiency": measurement.efficiency,
        "requests": measurement.requests,
        "received": measurement.received,
        "lies": measurement.lies,
        "state": measurement.outcome,
    }


def _render(event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
    if event == "ready":
        yield TextLine(f"{fields['uri']}  (stop with Ctrl-C)", "Serving", QUIET)
        yield TextLine(str(fields["pull"]), "Next")
    if event == "simulated":
        of = f" {fields['text']}" if fields["text"] else ""
        who = "" if fields["name"] == "mirror" else f", {fields['name']}"
        yield TextLine(f"seed {fields['seed']}{of}{who}: {fields['state']}", "Ran", NORMAL)
