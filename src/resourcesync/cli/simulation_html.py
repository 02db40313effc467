"""What a simulation came to, as one HTML page that needs nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from resourcesync import __version__
from resourcesync.cli import simulation_figures as figures
from resourcesync.cli.simulation_again import reproduction
from resourcesync.cli.simulation_plots import Bar, bar_plot, share_plot, time_plot
from resourcesync.model import formatting
from resourcesync.server.dashboard.charts import Plot, Series, lines
from resourcesync.server.dashboard.layout import card, outcome, row, table
from resourcesync.server.dashboard.markup import Markup, Piece, join_markup, tag
from resourcesync.server.dashboard.style import STYLE
from resourcesync.wiring import scenarios

if TYPE_CHECKING:
    from resourcesync.simulator.scenario import Scenario
    from resourcesync.wiring.simulation_runs import Summary

_NO_VALUE: Final = "none"
_MOST_LINES: Final = 4
_MOST_SEEDS: Final = 3
_MOST_ROWS: Final = 24
_GAPS: Final = tuple(digit * 10.0**power for power in (-4, -3, -2, -1) for digit in (1, 2, 5))
_MORE_STYLE: Final = """
dt { font-weight: 600; margin-top: .5rem; } dd { margin-left: 0; } dl { margin: 0; }
pre { margin: 0; overflow-x: auto; font: .88rem/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
.plots { margin: 1rem 0; }
.wide td { white-space: nowrap; }
.k3 { background: var(--good); } .s3 { fill: var(--good); } .l3 { stroke: var(--good); }
"""


def report_page(summaries: "Sequence[Summary]", written: Mapping[str, Any]) -> str:
    """Return the page.

    Args:
        summaries: The rows.
        written: The scenario as it was written.
    """
    names = _names(summaries)
    head = join_markup(
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", "A simulation | resourcesync"),
        tag("link", rel="icon", href="data:,"),
        # The style is ours, and has no markup in it.
        tag("style", Markup(STYLE + _MORE_STYLE)),
    )
    seeds = formatting.counted(max((len(it.runs) for it in summaries), default=0), "seed")
    said = f"Each figure is the mean of {seeds}, without those that have none; ± is its standard"
    body = tag(
        "main",
        tag("h1", "A simulation"),
        tag("p", f"{said} error.", class_="muted"),
        card(_table(summaries), title="Figures", look="wide"),
        _comparison(summaries, names) if len(summaries) > 1 else None,
        tag("div", list(_over_time(summaries, names, written)), class_="plots"),
        card(_definitions(), title="What is counted"),
        card(list(reproduction(summaries, written)), title="The scenario, and how to do it again"),
    )
    foot = tag("footer", f"resourcesync {__version__}. All times are UTC.")
    whole = tag("html", tag("head", head), tag("body", body, foot), lang="en")
    return f"<!doctype html>\n{whole}\n"


def _names(summaries: "Sequence[Summary]") -> list[str]:
    """Return what tells each row from the others, in few words."""
    keys = list(summaries[0].values) if summaries else []
    told = [key for key in keys if len({it.values[key] for it in summaries}) > 1]
    short = [key.rpartition(".")[2] for key in told]
    labels = short if len(set(short)) == len(short) else told
    are_several = len({it.destination for it in summaries}) > 1
    found = []
    for it in summaries:
        values = [it.values[key] for key in told]
        if len(told) > 1:
            values = [f"{label}={value}" for label, value in zip(labels, values, strict=True)]
        found.append(" ".join([*values, *([it.destination] if are_several or not told else [])]))
    return found


# --- figures ---


def _table(summaries: "Sequence[Summary]") -> Markup:
    keys = list(summaries[0].values) if summaries else []
    heads = [*keys, "Destination", *_HEADS]
    return table(heads, (row(heads, list(_cells(it))) for it in summaries))


_HEADS: Final = (
    *("Seeds", "Ended", "#Lies", "#Consistency", "#Latency, median / 95 %", "#Efficiency"),
    *("#Requests", "#Received", "#First pull", "#Changes"),
)


def _cells(it: "Summary") -> Iterator[Piece]:
    yield from it.values.values()
    yield it.destination
    yield _seeds(it)
    ended = [run.measured.outcome for run in it.runs]
    yield [
        outcome(is_good=word == "converged", word=f"{ended.count(word)} {word}")
        for word in sorted(set(ended))
    ]
    yield formatting.count(sum(run.measured.lies for run in it.runs))
    yield figures.consistency_text(it, _NO_VALUE)
    yield figures.latency_text(it, _NO_VALUE)
    yield figures.mean_text(it, "efficiency", ".3f", _NO_VALUE)
    yield figures.mean_text(it, "requests", ",.0f", _NO_VALUE)
    received = it.mean("received")
    yield _NO_VALUE if received is None else formatting.size(round(received))
    yield _first_pull(it)
    yield figures.mean_text(it, "changes", ",.0f", _NO_VALUE)


def _seeds(it: "Summary") -> str:
    seeds = [run.seed for run in it.runs]
    if len(seeds) > _MOST_SEEDS and seeds == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _first_pull(it: "Summary") -> str:
    """Return what the first pull took, and of how many seeds, where not of all."""
    many = len(it.known("first"))
    if not many:
        return "never ended"
    some = "" if many == len(it.runs) else f", {many} of {formatting.counted(len(it.runs), 'seed')}"
    requests = figures.mean_text(it, "first_requests", ",.0f", _NO_VALUE)
    return f"{requests} in {figures.span_text(it, 'first', _NO_VALUE)}{some}"


# --- plots ---


def _comparison(summaries: "Sequence[Summary]", names: Sequence[str]) -> Markup:
    """Return the rows side by side, for each measure."""
    rows = list(zip(summaries, names, strict=True))[:_MOST_ROWS]

    def shown(figure: str, form: str) -> list[Bar]:
        return [
            Bar(
                name=name,
                value=it.mean(figure),
                text=figures.mean_text(it, figure, form, _NO_VALUE),
            )
            for it, name in rows
        ]

    unequal = [_unequal_bar(name, it.mean("consistency")) for it, name in rows]
    waited = [
        Bar(
            name=name,
            value=it.mean("latency"),
            more=it.mean("latency_95"),
            text=_latencies(it),
        )
        for it, name in rows
    ]
    plots = (
        share_plot("Not equal, on average (1 - consistency)", unequal),
        time_plot("Latency: median, and the line to 95 %", waited),
        bar_plot("Efficiency", shown("efficiency", ".3f"), most=1.0),
        bar_plot("Requests after the first pull", shown("requests", ",.0f")),
    )
    return tag("div", [card(it) for it in plots], class_="plots")


def _latencies(it: "Summary") -> str:
    """Return both latencies in few letters: how far the seeds differ is in the table."""
    median, most = it.mean("latency"), it.mean("latency_95")
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
    """Yield consistency over time, some rows in each plot, all on one scale.

    Rows that begin together and take equally long are in one plot.
    """
    spans: dict[tuple[datetime, float], list[Series]] = {}
    for it, name in list(zip(summaries, names, strict=True))[:_MOST_ROWS]:
        scenario = _scenario_of(written, it.values)
        row = Series(name=name, values=_mean_series(it))
        spans.setdefault((scenario.start, scenario.duration), []).append(row)
    known = [it for rows in spans.values() for row in rows for it in row.values if it is not None]
    floor = _axis_floor(min(known, default=1.0))
    for (start, duration), rows in spans.items():
        for begin in range(0, len(rows), _MOST_LINES):
            some = tuple(rows[begin : begin + _MOST_LINES])
            step = timedelta(seconds=duration / max(len(it.values) for it in some))
            told = f", {formatting.span(duration)}" if len(spans) > 1 else ""
            plot = Plot(
                title=f"Consistency over time{told}",
                since=start,
                step=step,
                series=some,
                form=lambda value: f"{value:.5g}",
            )
            yield card(lines(plot, floor_=floor, ceiling=1.0))


def _scenario_of(written: Mapping[str, Any], values: Mapping[str, str]) -> "Scenario":
    table = dict(written)
    for key, value in values.items():
        table = scenarios.with_value(table, key, value)
    return scenarios.scenario_of(table)


def _axis_floor(least: float) -> float:
    """Return a round number that is a little less."""
    return 1.0 - next((gap for gap in _GAPS if gap >= 1.0 - least), 1.0)


def _mean_series(it: "Summary") -> tuple[float | None, ...]:
    """Return the mean over time of the seeds whose first pull had ended by then."""
    columns = zip(*(run.measured.series for run in it.runs), strict=True)
    known = ([it for it in column if it is not None] for column in columns)
    return tuple(fmean(some) if some else None for some in known)


# --- words ---


def _definitions() -> Markup:
    return tag("dl", [(tag("dt", name), tag("dd", text)) for name, text in DEFINITIONS.items()])


DEFINITIONS: Final = {
    "From when on": "All but the first pull is counted from the end of the first pull on, until the"
    " duration is over. Where no first pull ended, and where no change came, there is no figure."
    " In summary.csv, pulls, failed and crashes are those of the whole run.",
    "Consistency": "The share of the resources, of those that the origin has or the Destination"
    " holds, that are equal on both sides; the mean over time. Drawn over time, it begins when the"
    " first pull had ended; each point is the mean over the time from it to the next one.",
    "Latency": "From a change at the origin until the Destination has that version of the resource,"
    " or a later one; or has it no more, if it is gone. Changes that did not come before the end"
    " have none. A resource that is set back with its Source changes, too.",
    "Efficiency": "Bytes of resources that were put in place, of all bytes received: documents, the"
    " rest of packages, header fields and answers that brought nothing are received too.",
    "Requests": "All that were sent, also those that got no answer or nothing new.",
    "First pull": "Its requests, and how long it took.",
    "Lies": "How often a Destination called itself in sync and was not, also after the end, when"
    " all was quiet. It must be 0.",
    "Ended": "Converged: equal at the end, when all was quiet. Waiting: not equal, and it said so."
    " Silently wrong: not equal, and it said that it was.",
}
"""What each figure is, as the page says it."""
