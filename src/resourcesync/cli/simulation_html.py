"""What a simulation came to, as one HTML page that needs nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from html import escape
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from resourcesync import __version__
from resourcesync.server.dashboard.plots import Plot, Series, lines
from resourcesync.server.dashboard.style import STYLE
from resourcesync.wiring import scenarios

if TYPE_CHECKING:
    from resourcesync.wiring.simulating import Summary

_HEADS: Final = (
    *("Consistency", "Latency, median (s)", "Latency, 95 % (s)", "Efficiency", "Requests"),
    *("Bytes received", "Changes", "Lies", "Ended"),
)
_MOST_LINES: Final = 4


def page_of(summaries: "Sequence[Summary]", written: Mapping[str, Any]) -> str:
    """Return the page.

    Args:
        summaries: The rows.
        written: The scenario as it was written.
    """
    return "\n".join(_page(summaries, written))


def _page(summaries: "Sequence[Summary]", written: Mapping[str, Any]) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>ResourceSync: a simulation</title>\n<style>{STYLE}</style>\n</head>"
    yield "<body><main>"
    yield "<h1>A simulation</h1>"
    yield "<table><thead><tr>"
    keys = list(summaries[0].values) if summaries else []
    yield "".join(f"<th>{escape(it)}</th>" for it in (*keys, "Destination", *_HEADS))
    yield "</tr></thead><tbody>"
    for summary in summaries:
        yield "<tr>" + "".join(f"<td>{escape(it)}</td>" for it in _cells(summary)) + "</tr>"
    yield "</tbody></table>"
    yield from _plots(summaries, written)
    yield _WORDS
    yield "<h2>The scenario</h2>"
    yield f"<pre>{escape(_scenario(written))}</pre>"
    yield f"<footer>resourcesync {__version__}</footer></main></body>\n</html>"


def _cells(it: "Summary") -> Iterator[str]:
    yield from it.values.values()
    yield it.destination
    yield f"{it.mean('consistency'):.4f} ± {it.spread('consistency'):.4f}"
    yield f"{it.mean('latency'):,.1f}"
    yield f"{it.mean('latency_95'):,.1f}"
    yield f"{it.mean('efficiency'):.4f}"
    for figure in ("requests", "received", "changes", "lies"):
        yield f"{it.mean(figure):,.0f}"
    yield ", ".join(sorted({run.measured.outcome for run in it.runs}))


def _plots(summaries: "Sequence[Summary]", written: Mapping[str, Any]) -> Iterator[str]:
    """Yield consistency over time, some rows in each plot."""
    scenario = scenarios.scenario_of(dict(written))
    for begin in range(0, len(summaries), _MOST_LINES):
        some = summaries[begin : begin + _MOST_LINES]
        series = tuple(Series(name=_name(it), values=_over_time(it)) for it in some)
        points = max((len(it.values) for it in series), default=0)
        if not points:
            continue
        known = [value for it in series for value in it.values if value is not None]
        plot = Plot(
            title="Consistency over time",
            since=scenario.start,
            step=timedelta(seconds=scenario.duration / points),
            series=series,
            form=lambda value: f"{value:.4f}",
        )
        yield str(lines(plot, floor_=min([*known, 0.99]), ceiling=1.0))


def _over_time(it: "Summary") -> tuple[float | None, ...]:
    columns = zip(*(run.measured.series for run in it.runs), strict=False)
    return tuple(fmean(column) for column in columns)


def _name(it: "Summary") -> str:
    return " ".join((*(f"{key}={value}" for key, value in it.values.items()), it.destination))


def _scenario(written: Mapping[str, Any], place: str = "") -> str:
    """Return what the scenario says, a line for each value."""
    found: list[str] = []
    for key, value in written.items():
        name = f"{place}{key}"
        if isinstance(value, dict):
            found.append(_scenario(value, f"{name}."))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            found += [_scenario(it, f"{name}[{number}].") for number, it in enumerate(value)]
        else:
            found.append(f"{name} = {value!r}")
    return "\n".join(found)


_WORDS: Final = """<h2>What is counted</h2>
<dl>
<dt>Consistency</dt><dd>The share of the resources, of those that the origin has or the Destination
holds, that are equal on both sides; the mean over time from the end of the first pull.</dd>
<dt>Latency</dt><dd>From a change at the origin until the Destination has that version, or a later
one, of the resource; or has it no more, if it is gone.</dd>
<dt>Efficiency</dt><dd>Bytes of resources that were put in place, of all bytes received; documents
and answers that brought nothing are received too.</dd>
<dt>Lies</dt><dd>How often a Destination called itself in sync and was not. It must be 0.</dd>
<dt>Ended</dt><dd>Converged: equal at the end, when all was quiet. Waiting: not equal, and it said
so. Silently wrong: not equal, and it said that it was.</dd>
</dl>"""
