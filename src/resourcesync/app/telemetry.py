"""Traces and metrics for OpenTelemetry, where its SDK is installed and its variables name a target.

Nothing of the SDK is imported before the first run ends, or before metrics are exported. What it
reports is a warning of this library, and ends nothing.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import msgspec

from resourcesync import __version__
from resourcesync.model.timestamps import to_microseconds
from resourcesync.server.metrics import Metric
from resourcesync.settings.environment import read_telemetry

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

_NAME: Final = "resourcesync"
_LOG: Final = logging.getLogger(__name__)
_EXPORTER: Final = "opentelemetry.exporter.otlp.proto.http"
_PATIENCE_MILLISECONDS: Final = 5_000
_UNITS: Final = {"seconds": "s", "bytes": "By", "ratio": "1"}

AttributeValue = str | bool | int | float


class RunTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A finished run, or a part of one, as a span.

    Attributes:
        name: Its name, such as ``pull``.
        attributes: Its attributes, without the prefix.
        code: The code of the error that ended it, or its exit code; empty for a good one.
    """

    name: str
    started: datetime
    ended: datetime
    attributes: Mapping[str, AttributeValue] = msgspec.field(default_factory=dict)
    code: str = ""
    parts: "tuple[RunTrace, ...]" = ()


class TraceExporter:
    """An exporter of runs as spans; it starts with the first run."""

    def __init__(self) -> None:
        self._provider: TracerProvider | None = None

    def export(self, run: RunTrace) -> None:
        """Export a run with its parts; a thread sends it soon."""
        if self._provider is None:
            self._provider = _open_provider()
        self._add(run, None)

    def _add(self, run: RunTrace, parent: "Context | None") -> None:
        from opentelemetry.trace import Status, StatusCode, set_span_in_context  # noqa: PLC0415 - an extra

        assert self._provider is not None
        span = self._provider.get_tracer(_NAME, __version__).start_span(
            run.name,
            context=parent,
            start_time=_nanoseconds(run.started),
            attributes={f"{_NAME}.{name}": value for name, value in run.attributes.items()},
        )
        for part in run.parts:
            self._add(part, set_span_in_context(span))
        if run.code:
            span.set_status(Status(StatusCode.ERROR, run.code))
        span.end(_nanoseconds(run.ended))

    def close(self) -> None:
        """Send what is left, for some seconds at most."""
        if self._provider is not None:
            self._provider.force_flush(_PATIENCE_MILLISECONDS)
            self._provider.shutdown()
            self._provider = None


@contextmanager
def open_traces() -> Iterator[TraceExporter | None]:
    """Yield the exporter of runs; ``None`` if no target is named, or the SDK is not installed."""
    if not read_telemetry().traces or not _is_installed():
        yield None
        return
    exporter = TraceExporter()
    with _reported_warnings():
        try:
            yield exporter
        finally:
            exporter.close()


@contextmanager
def exported_metrics(
    figures: Callable[[], Iterable[Metric]], known: Iterable[Metric]
) -> Iterator[None]:
    """Export metrics while the block runs, if a target is named and the SDK is installed.

    Args:
        figures: Returns the metrics; called on another thread, once for each export.
        known: All metrics that there may be; their values are not used.
    """
    if not read_telemetry().metrics or not _is_installed():
        yield
        return
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415 - an extra

    with _reported_warnings():
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        provider = MeterProvider([reader], _resource())
        meter, source = provider.get_meter(_NAME, __version__), _Observations(figures)
        for metric in known:
            create = (
                meter.create_observable_counter
                if metric.kind == "counter"
                else meter.create_observable_gauge
            )
            unit = _unit_of(metric.name)
            create(metric.name, [source.of(metric.name)], unit=unit, description=metric.help_text)
        try:
            yield
        finally:
            provider.shutdown(_PATIENCE_MILLISECONDS)


class _Observations:
    """The metrics of one collection: they are read once, when the first of them is asked for.

    Args:
        figures: Returns the metrics.
    """

    def __init__(self, figures: Callable[[], Iterable[Metric]]) -> None:
        self._figures = figures
        self._found: dict[str, Metric] = {}
        self._used: set[str] = set()

    def of(self, name: str) -> "Callable[[CallbackOptions], Iterable[Observation]]":
        """Return the callback of a metric."""

        def observe(_options: "CallbackOptions") -> "Iterable[Observation]":
            from opentelemetry.metrics import Observation  # noqa: PLC0415 - an extra

            if not self._used or name in self._used:
                self._used.clear()
                self._found = {metric.name: metric for metric in self._figures()}
            self._used.add(name)
            metric = self._found.get(name)
            for labels, value in () if metric is None else metric.values:
                yield Observation(value, dict(labels))

        return observe


def _unit_of(name: str) -> str:
    words: Sequence[str] = name.removesuffix("_total").rsplit("_", 1)
    return _UNITS.get(words[-1], "")


def _is_installed() -> bool:
    try:
        found = find_spec(_EXPORTER) is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        _LOG.info("OTEL variables are set, and the extra `otel` is not installed")
    return found


def _open_provider() -> "TracerProvider":
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - an extra

    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _resource() -> "Resource":
    """Return the description of this service; ``OTEL_SERVICE_NAME`` and others come first."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415 - an extra

    own = Resource.create({"service.name": _NAME, "service.version": __version__})
    return own.merge(OTELResourceDetector().detect())


def _nanoseconds(moment: datetime) -> int:
    return to_microseconds(moment) * 1_000


class _ForwardingHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Log a warning of the SDK as one of this library."""
        _LOG.warning("OpenTelemetry: %s", record.getMessage())


@contextmanager
def _reported_warnings() -> Iterator[None]:
    logger, handler = logging.getLogger("opentelemetry"), _ForwardingHandler(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
