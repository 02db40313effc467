"""Metrics of mirrors and Sources for Prometheus: each number of a report is one."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from resourcesync.cli.render.status import Unreadable, mirror_fields, source_fields
from resourcesync.destination.mirror_health import CheckedMirror
from resourcesync.destination.reports import MirrorState
from resourcesync.server.metrics import Metric, report_figures

if TYPE_CHECKING:
    from resourcesync.app.source_status import SourceStatus


def mirror_figures(
    mirrors: Sequence[CheckedMirror], unreadable: Sequence[Unreadable]
) -> Iterator[Metric]:
    """Yield the metrics of mirrors; of those that cannot be read, only that they cannot."""
    seen = [(mirror.status.judged, mirror_fields(mirror)) for mirror in mirrors]
    gone = [name for name, _, noun, _ in unreadable if noun == "mirror"]
    return report_figures("mirror", MirrorState, seen, gone)


def source_figures(
    sources: "Sequence[SourceStatus]", unreadable: Sequence[Unreadable]
) -> Iterator[Metric]:
    """Yield the metrics of Sources in the same way."""
    from resourcesync.app.source_status import SourceState  # noqa: PLC0415 - not for mirrors

    seen = [(source.state, source_fields(source)) for source in sources]
    gone = [name for name, _, noun, _ in unreadable if noun == "source"]
    return report_figures("source", SourceState, seen, gone)
