"""Metrics of mirrors for Prometheus: each number of a report is one, and has its name."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from resourcesync.cli.render.status import UnreadableMirror, mirror_fields
from resourcesync.destination.reports import CheckedMirror, MirrorState, flat_fields
from resourcesync.server.metrics import Metric

Labels = tuple[tuple[str, str], ...]
_MIRROR: Final = "resourcesync_mirror_"
_REASONS: Final = "reasons_"
"""No metrics: their names may be those of a plug-in."""


def mirror_figures(
    mirrors: Sequence[CheckedMirror], unreadable: Sequence[UnreadableMirror]
) -> Iterator[Metric]:
    """Yield the metrics of mirrors; of those that cannot be read, only that they cannot."""
    names = {
        **{seen.status.mirror: 1.0 for seen in mirrors},
        **{name: 0.0 for name, _ in unreadable},
    }
    readable = tuple(((("mirror", name),), value) for name, value in names.items())
    states = tuple(
        (
            (("mirror", seen.status.mirror), ("state", state.value)),
            float(seen.status.judged is state),
        )
        for seen in mirrors
        for state in MirrorState
    )
    for name, what, values in (
        ("readable", "1 if the state of the mirror can be read; else it has no others.", readable),
        ("state", "1 for the state that the last run left, 0 for the others.", states),
    ):
        if values:
            yield Metric(name=_MIRROR + name, kind="gauge", help_text=what, values=values)
    yield from report_metrics(_MIRROR, list(map(mirror_fields, mirrors)))


def report_metrics(prefix: str, rows: Sequence[Mapping[str, object]]) -> Iterator[Metric]:
    """Yield a metric for each number of reports, with the label ``mirror``.

    Its name is that of the field: ``listed_pending`` is ``pending`` in ``listed``.
    """
    found: dict[str, list[tuple[Labels, float]]] = {}
    for row in rows:
        label = (("mirror", str(row["mirror"])),)
        for name, value in flat_fields(row):
            if isinstance(value, datetime):
                found.setdefault(f"{name}_timestamp_seconds", []).append((label, value.timestamp()))
            elif isinstance(value, int | float) and not name.startswith(_REASONS):
                found.setdefault(name, []).append((label, value))
    for name, values in found.items():
        help_text = f"The field {name} of the report."
        yield Metric(name=prefix + name, kind="gauge", help_text=help_text, values=tuple(values))
