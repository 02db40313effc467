"""The output of ``explore --cost``: the fields of its event, a table, and recommendations."""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import asdict

from resourcesync.cli import formatting
from resourcesync.cli.formatting import QUIET, TextLine
from resourcesync.discovery.cost import DAY, HOUR, CostEstimate, CostInputs, ModeCost

_NAMES: Final = {
    "change-lists": "Change Lists",
    "dumps": "dumps",
    "resource-lists": "Resource Lists only",
    "push": "push, Change Lists",
    "sitemap": "plain sitemap",
}
_HEADS: Final = (
    *("FOLLOWED BY", "FIRST COPY", "BYTES", "TIME"),
    *("EACH DAY", "BYTES", "PEAK", "DELAY"),
)
_SHOWN_ASSUMPTIONS: Final = {
    "resources": "resources",
    "mean_size": "bytes of a resource",
    "changes_per_day": "changes a day",
    "poll": "poll",
    "mirrors": "mirrors",
}
_MINUTE: Final = 60.0
_FEW_CHANGES: Final = 10
"""Below it, a number of changes a day has decimals."""


def cost_fields(estimate: CostEstimate) -> dict[str, object]:
    """Return an estimate as the fields of its event."""
    return {
        "inputs": asdict(estimate.inputs),
        "modes": [asdict(cost) for cost in estimate.modes],
        "recommended": asdict(estimate.advice),
    }


def cost_lines(estimate: CostEstimate, assumed: Iterable[str]) -> Iterator[TextLine]:
    """Yield the lines of an estimate.

    Args:
        estimate: The estimate.
        assumed: Names of the inputs that nobody gave.
    """
    yield TextLine(_inputs_text(estimate.inputs), "Source", QUIET)
    guesses = [text for name, text in _SHOWN_ASSUMPTIONS.items() if name in set(assumed)]
    if guesses:
        yield TextLine(f"{', '.join(guesses)}; options replace them", "Assumed", QUIET)
    rows = [_HEADS, *map(_row, estimate.modes)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADS))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
        yield TextLine("  ".join(cells), level=QUIET)
    if estimate.inputs.mirrors > 1:
        yield TextLine(_mirrors_text(estimate), "Together", QUIET)
    for sentence in _source_sentences(estimate):
        yield TextLine(sentence, "Publish", QUIET)
    for sentence in _destination_sentences(estimate):
        yield TextLine(sentence, "Follow", QUIET)


def _inputs_text(inputs: CostInputs) -> str:
    dumps = "with dumps" if inputs.dumps else "without dumps"
    changes = inputs.changes_per_day
    rate = f"{changes:.2g}" if 0 < changes < _FEW_CHANGES else f"{changes:,.0f}"
    return (
        f"{formatting.counted(inputs.resources, 'resource')} of"
        f" {formatting.size(round(inputs.mean_size))}, {rate} changes a day,"
        f" {dumps}; polled each {_span(inputs.poll)}"
    )


def _row(cost: ModeCost) -> tuple[str, ...]:
    return (
        _NAMES[cost.mode],
        formatting.count(cost.first_requests),
        formatting.size(cost.first_bytes),
        formatting.duration(cost.first_seconds),
        formatting.count(cost.daily_requests),
        formatting.size(cost.daily_bytes),
        f"{formatting.count(cost.peak)}/s",
        _span(cost.staleness),
    )


def _mirrors_text(estimate: CostEstimate) -> str:
    best, mirrors = estimate.modes[0], estimate.inputs.mirrors
    return (
        f"{formatting.counted(mirrors, 'mirror')}: by Change Lists"
        f" {formatting.count(best.daily_requests * mirrors)} requests and"
        f" {formatting.size(best.daily_bytes * mirrors)} a day"
    )


def _source_sentences(estimate: CostEstimate) -> Iterator[str]:
    of, inputs = estimate.advice, estimate.inputs
    yield (
        f"every {_span(of.publish)}: Change Lists, since the changes of a poll are less than the"
        " Resource List"
        if of.change_lists
        else f"every {_span(of.publish)}: a new Resource List, since the changes of a poll are as"
        " large"
    )
    yield (
        f"with --rotate {_option(of.rotate)}, so that a mirror reads the fewest bytes of lists,"
        f" and --keep {_option(of.keep)} --rebase-every {_option(of.keep)}, whose changes take no"
        " more bytes than the Resource List"
    )
    documents = formatting.counted(inputs.parts, "document")
    yield (
        f"the Resource List in {documents} of at most {formatting.count(of.max_entries)} entries,"
        f" {formatting.size(round(inputs.resource_list))};"
        + (" in gzip a quarter of that" if of.gzip else " gzip saves little")
    )
    yield (
        "a Resource Dump: a first copy needs few requests"
        if of.dump
        else "no Resource Dump: single requests cost little for so few or so large resources"
    )
    yield (
        "a Change Dump: a poll needs few requests"
        if of.change_dump
        else "no Change Dump: it would save fewer requests than it costs"
    )
    yield (
        "with a hub: changes are frequent, and push makes copies current within seconds"
        if of.push
        else "without a hub, unless minutes matter: changes are rare"
    )


def _destination_sentences(estimate: CostEstimate) -> Iterator[str]:
    of = estimate.advice
    why = (
        "most requests are for changed resources"
        if estimate.inputs.changes_per_day * of.poll >= 10 * DAY
        else "there are few changes"
    )
    yield f"every {_span(of.poll)}: {why}"
    copied = "from the dump" if of.dump else "in six hours"
    yield (
        f"with --per-host {of.connections}: enough for a first copy {copied}, and for a poll in a"
        " quarter of its interval"
        if of.connections < estimate.inputs.connections
        else f"with --per-host {of.connections}, the default: fewer connections take too long"
    )


def _span(seconds: float) -> str:
    """Return a time as the options write it where that is exact, else in words."""
    exact = _option(seconds)
    return exact if exact and seconds >= _MINUTE else formatting.age(seconds)


def _option(seconds: float) -> str:
    """Return a time as options take it, such as ``6h``; empty where that is not exact."""
    for many, unit in ((DAY, "d"), (HOUR, "h"), (_MINUTE, "m")):
        if seconds >= many and seconds % many == 0:
            return f"{seconds / many:.0f}{unit}"
    return ""
