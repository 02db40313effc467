"""Metrics of a Source in the text format of Prometheus."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, final

import msgspec

from resourcesync.destination.reports import flat_fields

Labels = tuple[tuple[str, str], ...]
"""Names and values of the labels of one value."""
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric, with its values: each with the names and values of its labels."""

    name: str
    kind: Literal["counter", "gauge"]
    help_text: str
    values: tuple[tuple[Labels, float], ...]


def gauge(name: str, help_text: str, values: Mapping[Labels, float]) -> Metric:
    """Return a metric of this program that may fall."""
    return Metric(
        name=f"resourcesync_{name}", kind="gauge", help_text=help_text, values=tuple(values.items())
    )


def counter(name: str, help_text: str, values: Mapping[Labels, float]) -> Metric:
    """Return a metric of this program that only rises."""
    rows = tuple(sorted(values.items()))
    return Metric(name=f"resourcesync_{name}", kind="counter", help_text=help_text, values=rows)


_HELP: Final = {
    "readable": "1 if its state can be read; else it has no others.",
    "state": "1 for the state that the last run left, 0 for the others.",
}
_REASONS: Final = "reasons_"
"""No metrics: their names may be those of a plug-in."""


def report_figures(
    noun: str,
    states: Iterable[StrEnum],
    reports: Iterable[tuple[StrEnum, Mapping[str, object]]],
    unreadable: Iterable[str] = (),
) -> Iterator[Metric]:
    """Yield the metrics of reports, each with its state; ``noun`` is the field of its name.

    Each number or time of a report is one with the name of the field: ``listed_pending`` is
    ``pending`` in ``listed``.
    """
    found: dict[str, list[tuple[Labels, float]]] = {"readable": [], "state": []}
    for now, fields in reports:
        label = (noun, str(fields[noun]))
        found["readable"].append(((label,), 1.0))
        found["state"] += (
            ((label, ("state", state.value)), float(now is state)) for state in states
        )
        for name, value in flat_fields(fields):
            if isinstance(value, datetime):
                moment = value.timestamp()
                found.setdefault(f"{name}_timestamp_seconds", []).append(((label,), moment))
            elif isinstance(value, int | float) and not name.startswith(_REASONS):
                found.setdefault(name, []).append(((label,), value))
    found["readable"] += ((((noun, name),), 0.0) for name in unreadable)
    for name, values in found.items():
        help_text = _HELP.get(name, f"The field {name} of the report.")
        if values:
            yield gauge(f"{noun}_{name}", help_text, dict(values))


def write_metrics(figures: Iterable[Metric]) -> bytes:
    """Return the metrics in version 0.0.4 of Prometheus' text format."""
    return "".join(line + "\n" for figure in figures for line in _lines(figure)).encode(
        "utf-8", "backslashreplace"
    )


def _lines(figure: Metric) -> Iterator[str]:
    yield f"# HELP {figure.name} {figure.help_text}"
    yield f"# TYPE {figure.name} {figure.kind}"
    for labels, value in figure.values:
        inner = ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in labels)
        number = int(value) if value == int(value) else value
        yield f"{figure.name}{{{inner}}} {number}" if inner else f"{figure.name} {number}"


@final
class RequestTally:
    """Counter of answers by status."""

    def __init__(self) -> None:
        self._answers: dict[int, int] = {}
        self._sent = 0

    def count(self, status: int, sent: int) -> None:
        """Count an answer, complete or not, with the bytes of its body that were sent."""
        self._answers[status] = self._answers.get(status, 0) + 1
        self._sent += sent

    def metrics(self) -> Iterator[Metric]:
        """Yield the metrics."""
        yield counter(
            "served_requests_total",
            "Requests answered, by status; 0 for those that were not.",
            {(("status", str(status)),): number for status, number in self._answers.copy().items()},
        )
        yield counter("served_bytes_total", "Bytes of the bodies sent.", {(): self._sent})
