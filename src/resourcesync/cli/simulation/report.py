"""The report of a simulation: one self-contained HTML page.

It has tables, SVG plots (bars, or dots on a logarithmic scale), and the scenario as TOML with the
command that repeats the simulation.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from resourcesync.model import formatting
from resourcesync.server.dashboard.charts import (
    Bar,
    Plot,
    Series,
    bar_plot,
    lines,
    share_plot,
    time_plot,
)
from resourcesync.server.dashboard.layout import card, outcome, report_page, row, table
from resourcesync.server.dashboard.markup import Markup, Piece, tag
from resourcesync.simulator import figures, scenario_files

if TYPE_CHECKING:
    from resourcesync.simulator.experiments import Summary
    from resourcesync.simulator.scenario import Scenario


_BARE: Final = re.compile("[A-Za-z0-9_-]+")


def reproduction(summaries: "Sequence[Summary]", written: Mapping[str, Any]) -> Iterator[Markup]:
    """Yield the scenario, and the command that simulates it again.

    Args:
        summaries: The rows.
        written: The scenario as it was written; another seed may have been used.
    """
    firsts = {summary.runs[0].seed for summary in summaries}
    command = ["resourcesync", "simulate", "scenario.toml"]
    if len(firsts) == 1:  # else each row has its own, in the scenario or in the sweep
        (seed,) = firsts
        written = {"seed": seed, **{key: item for key, item in written.items() if key != "seed"}}
        is_swept = "seed" in summaries[0].values
        command += [] if is_swept else ["--seed", str(seed)]
    repeat = max((len(summary.runs) for summary in summaries), default=1)
    command += ["--repeat", str(repeat)] if repeat > 1 else []
    for key in summaries[0].values if summaries else ():
        values = dict.fromkeys(summary.values[key] for summary in summaries)
        command += ["--sweep", f"{key}={','.join(values)}"]
    yield tag("p", "As scenario.toml: ", tag("code", shlex.join(command)))
    yield tag("pre", [(line, Markup("\n")) for line in toml_lines(written)], tabindex="0")


def toml_lines(written: Mapping[str, Any]) -> Iterator[str]:
    """Yield a scenario as TOML, a line for each value.

    Args:
        written: The scenario as parsed TOML.
    """
    tables = {key: item for key, item in written.items() if _is_table_array(item)}
    yield from _table_lines({key: item for key, item in written.items() if key not in tables}, "")
    for key, rows in tables.items():
        for chunk in rows:
            yield f"[[{_toml_key(key)}]]"
            yield from _table_lines(chunk, "")


def _is_table_array(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _table_lines(table: Mapping[str, Any], place: str) -> Iterator[str]:
    for key, value in table.items():
        name = f"{place}{_toml_key(key)}"
        if isinstance(value, dict) and value:
            yield from _table_lines(value, f"{name}.")
        else:
            yield f"{name} = {_toml_value(value)}"


def _toml_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _toml_text(key)


def _toml_value(value: object) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{_toml_key(key)} = {_toml_value(item)}" for key, item in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, str):
        return _toml_text(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _toml_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


_NO_VALUE: Final = "none"
_MOST_LINES: Final = 4
_MOST_SEEDS: Final = 3
_MOST_ROWS: Final = 24
_GAPS: Final = tuple(digit * 10.0**power for power in (-4, -3, -2, -1) for digit in (1, 2, 5))
_MORE_STYLE: Final = """
dt { font-weight: 600; margin-top: .5rem; } dd { margin-left: 0; } dl { margin: 0; }
pre { background: none; padding: 0; margin: 0; font-size: .88rem; }
.plots { margin: 1rem 0; }
.wide td { white-space: nowrap; }
.k3 { background: var(--good); } .s3 { fill: var(--good); } .l3 { stroke: var(--good); }
"""


def simulation_page(
    summaries: "Sequence[Summary]", written: Mapping[str, Any], *, name: str, when: datetime
) -> str:
    """Return the page.

    Args:
        summaries: The rows.
        written: The scenario as it was written.
        name: The name of the scenario.
        when: The time of the simulation, UTC.
    """
    names = _names(summaries)
    seeds = formatting.counted(max((len(summary.runs) for summary in summaries), default=0), "seed")
    said = f"Each figure is the mean of {seeds}, without those that have none; ± is its standard"
    return report_page(
        f"Simulation of {name}",
        tag("h1", f"Simulation of {name}"),
        tag("p", f"Simulated {formatting.moment(when)}. {said} error.", class_="muted"),
        card(tag("div", _table(summaries), class_="wide", tabindex="0"), title="Figures"),
        _comparison(summaries, names) if len(summaries) > 1 else None,
        tag("div", list(_over_time(summaries, names, written)), class_="plots"),
        card(_definitions(), title="Definitions"),
        card(list(reproduction(summaries, written)), title="The scenario, and how to repeat it"),
        style=_MORE_STYLE,
    )


def _names(summaries: "Sequence[Summary]") -> list[str]:
    """Return a short name of each row that distinguishes it from the others."""
    keys = list(summaries[0].values) if summaries else []
    varied = [key for key in keys if len({summary.values[key] for summary in summaries}) > 1]
    short = [key.rpartition(".")[2] for key in varied]
    labels = short if len(set(short)) == len(short) else varied
    are_several = len({summary.destination for summary in summaries}) > 1
    found = []
    for summary in summaries:
        values = [summary.values[key] for key in varied]
        if len(varied) > 1:
            values = [f"{label}={value}" for label, value in zip(labels, values, strict=True)]
        found.append(
            " ".join([*values, *([summary.destination] if are_several or not varied else [])])
        )
    return found


def _table(summaries: "Sequence[Summary]") -> Markup:
    keys = list(summaries[0].values) if summaries else []
    heads = [*keys, "Destination", *_HEADS]
    return table(heads, (row(heads, list(_cells(summary))) for summary in summaries))


_HEADS: Final = (
    *("Seeds", "Ended", "#Lies", "#Consistency", "#Latency, median / 95 %", "#Efficiency"),
    *("#Requests", "#Received", "#First pull", "#Changes"),
)


def _cells(summary: "Summary") -> Iterator[Piece]:
    yield from summary.values.values()
    yield summary.destination
    yield _seeds(summary)
    ended = [run.measured.outcome for run in summary.runs]
    yield [
        outcome(is_good=word == "converged", word=f"{ended.count(word)} {word}")
        for word in sorted(set(ended))
    ]
    yield formatting.count(sum(run.measured.lies for run in summary.runs))
    yield figures.consistency_text(summary, _NO_VALUE)
    yield figures.latency_text(summary, _NO_VALUE)
    yield figures.mean_text(summary, "efficiency", ".3f", _NO_VALUE)
    yield figures.mean_text(summary, "requests", ",.0f", _NO_VALUE)
    received = summary.mean("received")
    yield _NO_VALUE if received is None else formatting.size(round(received))
    yield _first_pull(summary)
    yield figures.mean_text(summary, "changes", ",.0f", _NO_VALUE)


def _seeds(summary: "Summary") -> str:
    seeds = [run.seed for run in summary.runs]
    if len(seeds) > _MOST_SEEDS and seeds == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _first_pull(summary: "Summary") -> str:
    """Return the requests and the time of the first pull, and the number of its seeds."""
    many = len(summary.known("first"))
    if not many:
        return "never ended"
    some = (
        ""
        if many == len(summary.runs)
        else f", {many} of {formatting.counted(len(summary.runs), 'seed')}"
    )
    requests = figures.mean_text(summary, "first_requests", ",.0f", _NO_VALUE)
    return f"{requests} in {figures.span_text(summary, 'first', _NO_VALUE)}{some}"


def _comparison(summaries: "Sequence[Summary]", names: Sequence[str]) -> Markup:
    """Return a plot of all rows for each measure."""
    rows = list(zip(summaries, names, strict=True))[:_MOST_ROWS]

    def shown(figure: str, form: str) -> list[Bar]:
        return [
            Bar(
                name=name,
                value=summary.mean(figure),
                text=figures.mean_text(summary, figure, form, _NO_VALUE),
            )
            for summary, name in rows
        ]

    unequal = [_unequal_bar(name, summary.mean("consistency")) for summary, name in rows]
    waited = [
        Bar(
            name=name,
            value=summary.mean("latency"),
            more=summary.mean("latency_95"),
            text=_latencies(summary),
        )
        for summary, name in rows
    ]
    plots = (
        share_plot("Not equal, on average (1 - consistency)", unequal),
        time_plot("Latency: median, and the line to 95 %", waited),
        bar_plot("Efficiency", shown("efficiency", ".3f"), most=1.0),
        bar_plot("Requests after the first pull", shown("requests", ",.0f")),
    )
    return tag("div", [card(plot) for plot in plots], class_="plots")


def _latencies(summary: "Summary") -> str:
    """Return both latencies in short; the table has their spread over the seeds."""
    median, most = summary.mean("latency"), summary.mean("latency_95")
    if median is None or most is None:
        return _NO_VALUE
    return f"{formatting.span(median)} / {formatting.span(most)}"


def _unequal_bar(name: str, consistency: float | None) -> Bar:
    if consistency is None:
        return Bar(name=name, value=None, text=_NO_VALUE)
    return Bar(name=name, value=1 - consistency, text=figures.unequal_text(consistency))


def _over_time(
    summaries: "Sequence[Summary]", names: Sequence[str], written: Mapping[str, Any]
) -> Iterator[Markup]:
    """Yield plots of consistency over time, all on one scale.

    Rows with the same start and duration share a plot.
    """
    spans: dict[tuple[datetime, float], list[Series]] = {}
    for summary, name in list(zip(summaries, names, strict=True))[:_MOST_ROWS]:
        scenario = _scenario_of(written, summary.values)
        row = Series(name=name, values=_mean_series(summary))
        spans.setdefault((scenario.start, scenario.duration), []).append(row)
    known = [
        value
        for rows in spans.values()
        for row in rows
        for value in row.values
        if value is not None
    ]
    floor = _axis_floor(min(known, default=1.0))
    for (start, duration), rows in spans.items():
        for begin in range(0, len(rows), _MOST_LINES):
            some = tuple(rows[begin : begin + _MOST_LINES])
            step = timedelta(seconds=duration / max(len(series.values) for series in some))
            span = f", {formatting.span(duration)}" if len(spans) > 1 else ""
            plot = Plot(
                title=f"Consistency over time{span}",
                since=start,
                step=step,
                series=some,
                form=lambda value: f"{value:.5g}",
            )
            yield card(lines(plot, floor_=floor, ceiling=1.0))


def _scenario_of(written: Mapping[str, Any], values: Mapping[str, str]) -> "Scenario":
    table = dict(written)
    for key, value in values.items():
        table = scenario_files.with_value(table, key, value)
    return scenario_files.scenario_of(table)


def _axis_floor(least: float) -> float:
    """Return the next lower round number."""
    return 1.0 - next((gap for gap in _GAPS if gap >= 1.0 - least), 1.0)


def _mean_series(summary: "Summary") -> tuple[float | None, ...]:
    """Return the mean over time of the seeds whose first pull had ended by then."""
    columns = zip(*(run.measured.series for run in summary.runs), strict=True)
    known = ([item for item in column if item is not None] for column in columns)
    return tuple(fmean(some) if some else None for some in known)


def _definitions() -> Markup:
    return tag("dl", [(tag("dt", name), tag("dd", text)) for name, text in DEFINITIONS.items()])


DEFINITIONS: Final = {
    "Period": "All figures except the first pull count from the end of the first pull until the end"
    " of the duration. Without a completed first pull, or without a change, there is no figure. In"
    " summary.csv, pulls, failed and crashes count over the whole run.",
    "Consistency": "The share of resources that are equal on both sides, of those that the origin"
    " or the Destination has; the mean over time. In the plot it begins after the first pull;"
    " each point is the mean over the time to the next point.",
    "Latency": "The time from a change at the origin until the Destination has that version of the"
    " resource, or a later one; for a deletion, until it has no copy. Changes that did not arrive"
    " before the end have none. A resource that is rolled back with its Source also changes.",
    "Efficiency": "The share of bytes of stored resources, of all received bytes. Documents, the"
    " rest of packages, header fields and responses without new content are received bytes too.",
    "Requests": "All requests that were sent, also those without a response or new content.",
    "First pull": "Its requests, and its duration.",
    "Lies": "The number of times that a Destination falsely reported to be in sync, also after the"
    " end, when no more changes came. It must be 0.",
    "Ended": "Converged: equal at the end, when no more changes came. Waiting: not equal, and"
    " reported so. Silently wrong: not equal, but reported to be in sync.",
}
"""The definitions of the figures on the page."""
