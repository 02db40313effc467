"""Metrics of a Source in the text format of Prometheus."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, final

import msgspec

Labels = tuple[tuple[str, str], ...]
"""Names and values of the labels of one value."""


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric, with its values: each with the names and values of its labels."""

    name: str
    kind: Literal["counter", "gauge"]
    help_text: str
    values: tuple[tuple[Labels, float], ...]


def gauge(name: str, help_text: str, values: Mapping[Labels, float]) -> Metric:
    """Return a metric of this program that may fall."""
    return Metric(
        name=f"resourcesync_{name}",
        kind="gauge",
        help_text=help_text,
        values=tuple(values.items()),
    )


def counter(name: str, help_text: str, values: Mapping[Labels, float]) -> Metric:
    """Return a metric of this program that only rises."""
    return Metric(
        name=f"resourcesync_{name}",
        kind="counter",
        help_text=help_text,
        values=tuple(sorted(values.items())),
    )


def write_metrics(figures: Iterable[Metric]) -> bytes:
    """Return the metrics in version 0.0.4 of Prometheus' text format."""
    return "".join(line + "\n" for figure in figures for line in _lines(figure)).encode(
        "utf-8", "backslashreplace"
    )


def _lines(figure: Metric) -> Iterator[str]:
    yield f"# HELP {figure.name} {figure.help_text}"
    yield f"# TYPE {figure.name} {figure.kind}"
    for labels, value in figure.values:
        inner = ",".join(f'{name}="{_escape(text)}"' for name, text in labels)
        number = int(value) if value == int(value) else value
        yield f"{figure.name}{{{inner}}} {number}" if inner else f"{figure.name} {number}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


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
