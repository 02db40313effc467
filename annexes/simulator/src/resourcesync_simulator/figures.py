"""Figures of a simulation as text."""

from math import floor, log10
from typing import TYPE_CHECKING, Final

from resourcesync.model import formatting

if TYPE_CHECKING:
    from resourcesync_simulator.experiments import Summary

NO_FIGURE: Final = "-"
"""The text for a figure that no run has."""
_LEAST_DIGITS: Final = 4
_MOST_DIGITS: Final = 12


def mean_text(summary: "Summary", name: str, form: str, none: str = NO_FIGURE) -> str:
    """Return the mean of a figure."""
    mean = summary.mean(name)
    return none if mean is None else format(mean, form)


def _span_text(summary: "Summary", name: str) -> str:
    """Return the mean of a figure in seconds, and its spread over the seeds, if any."""
    mean, spread = summary.mean(name), summary.spread(name)
    if mean is None:
        return NO_FIGURE
    return (
        f"{formatting.span(mean)} ± {formatting.span(spread)}" if spread else formatting.span(mean)
    )


def latency_text(summary: "Summary") -> str:
    """Return the median and the 95th percentile."""
    return f"{_span_text(summary, 'latency')} / {_span_text(summary, 'latency_95')}"


def consistency_text(summary: "Summary") -> str:
    """Return the share of equal resources, with enough digits to show the unequal ones."""
    mean, spread = summary.mean("consistency"), summary.spread("consistency")
    if mean is None:
        return NO_FIGURE
    gap = 1.0 - mean
    digits = _LEAST_DIGITS if gap <= 0 else 1 - floor(log10(gap))
    digits = min(max(digits, _LEAST_DIGITS), _MOST_DIGITS)
    return f"{mean:.{digits}f}" + (f" ± {spread:.{digits}f}" if spread else "")
