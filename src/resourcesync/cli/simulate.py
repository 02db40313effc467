"""``resourcesync simulate``: play a Source and Destinations in virtual time, and measure."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from resourcesync.cli import options, words
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.job import Job
from resourcesync.cli.options import option
from resourcesync.cli.output import Outcome, OutputLostError, OutputOptions, Screen
from resourcesync.cli.stopping import heard
from resourcesync.cli.words import NORMAL, QUIET, Line
from resourcesync.errors import ConfigurationError, StorageError
from resourcesync.model import wording

if TYPE_CHECKING:
    from resourcesync.wiring.simulating import Run, Summary

_HOUR: Final = 3_600.0
_NAMES: Final = ("museum", "arxiv", "wikipedia", "dbpedia-live", "europeana", "linked-data")


@click.command("simulate")
@click.argument("scenario", metavar="init|SCENARIO")
@option(
    "--profile",
    type=click.Choice(_NAMES),
    help="Begin with this scenario: for init, or in place of a file.",
)
@option("--seed", type=click.IntRange(0), help="The seed, instead of the scenario's.")
@option(
    "--sweep",
    multiple=True,
    metavar="KEY=A,B,C",
    help="Take these values in turn, such as publish.rotate=5m,1h,1d; repeat for all combinations."
    " variant=A,B takes values that the scenario has under one name.",
)
@option(
    "--repeat",
    type=click.IntRange(1, 10_000),
    default=1,
    show_default=True,
    help="Run each with so many seeds.",
)
@option("--jobs", type=click.IntRange(1, 256), help="Processes; as many as there are processors.")
@option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write summary.csv, events.ndjson.gz and report.html into this folder.",
)
@option(
    "--live",
    is_flag=True,
    help="Be the Source in real time, over HTTP, until a signal comes: for any client. SCENARIO may"
    " be a configuration of the resync-simulator (YAML).",
)
@option(
    "--bind",
    type=options.BINDING,
    default="127.0.0.1:8888",
    show_default=True,
    help="With --live: where to listen.",
)
@option(
    "--dialect",
    type=click.Choice(["1.1", "1.0"]),
    default="1.1",
    show_default=True,
    help="With --live: the version of the format.",
)
@option("--no-lastmod", is_flag=True, help="With --live: list changes without lastmod.")
@options.output_options
def command(output: OutputOptions, **values: Any) -> Job:
    """Simulate a Source and who follows it, and measure how well they do.

    A week takes seconds: time is virtual. The Source is published, and the Destinations pull, by
    the same code as in the other commands; the origin, the network and the time are made up from a
    seed. The same scenario gives the same events.

    \b
    resourcesync simulate init --profile arxiv > scenario.toml
    resourcesync simulate scenario.toml --sweep publish.every=5m,1h,1d --repeat 5 --out results
    resourcesync simulate scenario.toml --sweep variant=daily-lists,hourly,push

    Consistency is the share of resources that are equal on both sides, on average over time.
    Latency is the time from a change to its copy. Efficiency is the share of useful bytes. All is
    counted from the end of the first pull on, whose requests have a column of their own. A lie
    would be to say "in sync" when it is not so; then the exit code is 1.
    """  # noqa: D301 - click's mark for lines that are not to be filled
    if values["scenario"] == "init":
        return Job(command="simulate", output=output, work=lambda _: _init(values, output))
    swept = dict(map(_swept, values["sweep"]))

    def work(screen: Screen) -> Outcome:
        return _live(values, screen) if values["live"] else _simulate(values, swept, screen)

    return Job(
        command="simulate",
        output=output,
        work=work,
        words=_words,
        subject=values["scenario"],
        fields={"source": values["scenario"]},
    )


def _swept(text: str) -> tuple[str, list[str]]:
    key, equals, told = text.partition("=")
    if not (key and equals and told):
        raise click.UsageError("--sweep is written as KEY=A,B,C")
    return key, told.split(",")


def _init(values: Mapping[str, Any], output: OutputOptions) -> Outcome:
    from resourcesync.simulator.profiles import PROFILES  # noqa: PLC0415 - help stays quick

    if output.json:
        raise click.UsageError("init writes a scenario to standard output, and nothing else")
    try:
        sys.stdout.write(PROFILES[values["profile"] or "museum"])
    except OSError as error:
        raise OutputLostError(error) from error
    return Outcome(says_exit=False)


def _simulate(
    values: Mapping[str, Any], swept: Mapping[str, Sequence[str]], screen: Screen
) -> Outcome:
    from resourcesync.wiring import machine, simulating  # noqa: PLC0415 - help stays quick

    written, out, clock = _written(values), values["out"], machine.system_clock()
    _check_out(out)
    began = clock.monotonic()
    runs: list[Run] = []
    for run in simulating.sweep(
        written,
        swept,
        repeat=values["repeat"],
        seed=values["seed"],
        out=out,
        jobs=values["jobs"],
    ):
        runs.append(run)
        screen.report("simulated", _fields(run))
    summaries = simulating.summarise(runs)
    lines = [*_table(summaries), _last(len(runs), clock.monotonic() - began)]
    if out is not None:
        _write(out, runs, summaries, written)
        lines.append(Line(f"{out}/report.html, summary.csv, events.ndjson.gz", "Wrote", QUIET))
    wrong = [it for it in runs if it.measured.lies or it.measured.outcome == "silently wrong"]
    lines += [
        Line(f"seed {it.seed} {_values(it.values)}: called in sync, and was not", "!", QUIET)
        for it in wrong[:3]
    ]
    fields = {"runs": len(runs), "wrong": len(wrong)}
    code = ExitCode.FINDINGS if wrong else ExitCode.OK
    return Outcome(exit=code, closing=tuple(lines), fields=fields)


def _live(values: Mapping[str, Any], screen: Screen) -> Outcome:
    """Be the Source until a signal comes; that is how it is meant to end."""
    from resourcesync.model.vocabulary import Dialect  # noqa: PLC0415 - help stays quick
    from resourcesync.wiring import live, machine  # noqa: PLC0415 - help stays quick

    path = Path(values["scenario"])
    is_profile = not path.exists() and not path.suffix
    settings = live.settings_of(_written(values)) if is_profile else live.live_settings(path)
    settings = replace(
        settings, dialect=Dialect(values["dialect"]), tells_lastmod=not values["no_lastmod"]
    )
    (host, port), clock = values["bind"], machine.system_clock()
    seed = 1 if values["seed"] is None else values["seed"]
    try:
        with live.serve_live(settings, host=host, port=port, seed=seed, clock=clock) as uri:
            pull = f"resourcesync pull {uri} ./copy"
            screen.report("ready", {"uri": uri, "pull": pull, "tree": values["scenario"]})
            while True:
                clock.sleep(_HOUR)
    except KeyboardInterrupt as stop:
        heard(stop)
    return Outcome(closing=(Line("no longer served", "Stopped", QUIET),))


def _written(values: Mapping[str, Any]) -> dict[str, Any]:
    from resourcesync.simulator.profiles import PROFILES  # noqa: PLC0415 - help stays quick
    from resourcesync.wiring import scenarios  # noqa: PLC0415 - help stays quick

    name = values["scenario"]
    if values["profile"]:
        raise click.UsageError("--profile is for init; a profile is run by its name")
    if name in PROFILES and not Path(name).exists():
        return scenarios.parse(PROFILES[name], name)
    return scenarios.read(Path(name))


def _check_out(out: Path | None) -> None:
    """Refuse a folder that has something, before anything is simulated."""
    if out is None:
        return
    try:
        if out.is_dir() and any(out.iterdir()):
            raise ConfigurationError(f"{out} is not empty", hint="name a folder that is not there")
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot use {out}: {error.strerror}") from error


def _write(
    out: Path, runs: "Sequence[Run]", summaries: "Sequence[Summary]", written: Mapping[str, Any]
) -> None:
    from resourcesync.cli.simulation_html import page_of  # noqa: PLC0415 - help stays quick
    from resourcesync.wiring import simulating  # noqa: PLC0415 - help stays quick

    simulating.write_table(runs, out / "summary.csv")
    simulating.join_events(out / "events", out / "events.ndjson.gz")
    try:
        (out / "report.html").write_text(page_of(summaries, written), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write {out}: {error.strerror}") from error


def _table(summaries: "Sequence[Summary]") -> Iterator[Line]:
    """Yield the table that people read: a row for each value of the sweep."""
    keys = list(summaries[0].values) if summaries else []
    short = [key.rpartition(".")[2] for key in keys]
    named = [it if short.count(it) == 1 else key for key, it in zip(keys, short, strict=True)]
    heads = [*map(str.upper, named), "DESTINATION", "CONSISTENCY"]
    heads += ["LATENCY MEDIAN / P95", "EFFICIENCY", "REQUESTS", "FIRST PULL", "ENDED"]
    rows = [heads, *map(_row, summaries)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(heads))]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        yield Line("  ".join(cells).rstrip(), level=QUIET)


def _row(it: "Summary") -> list[str]:
    spread = it.spread("consistency")
    outcomes = [run.measured.outcome for run in it.runs]
    ended = (
        "converged"
        if set(outcomes) == {"converged"}
        else ", ".join(f"{outcomes.count(name)} {name}" for name in sorted(set(outcomes)))
    )
    return [
        *it.values.values(),
        it.destination,
        f"{it.mean('consistency'):.4f}" + (f" ± {spread:.4f}" if spread else ""),
        f"{wording.span(it.mean('latency'))} / {wording.span(it.mean('latency_95'))}",
        f"{it.mean('efficiency'):.3f}",
        f"{it.mean('requests'):,.0f}",
        f"{it.mean('first_requests'):,.0f}",
        ended,
    ]


def _last(runs: int, seconds: float) -> Line:
    return Line(f"{words.counted(runs, 'run')} in {seconds:.0f} s", "Simulated")


def _values(values: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in values.items())


def _fields(run: "Run") -> dict[str, object]:
    it = run.measured
    return {
        "seed": run.seed,
        "name": run.destination,
        "text": _values(run.values),
        "consistency": it.consistency,
        "latency": it.latency,
        "latency_95": it.latency_95,
        "efficiency": it.efficiency,
        "requests": it.requests,
        "received": it.received,
        "lies": it.lies,
        "state": it.outcome,
    }


def _words(event: str, fields: Mapping[str, object]) -> Iterator[Line]:
    if event == "ready":
        yield Line(f"{fields['uri']}; Ctrl-C ends it", "Serving", QUIET)
        yield Line(str(fields["pull"]), "Next")
    if event == "simulated":
        of = f" {fields['text']}" if fields["text"] else ""
        yield Line(f"seed {fields['seed']}{of}: {fields['state']}", "Ran", NORMAL)
