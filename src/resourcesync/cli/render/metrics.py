"""Metrics of mirrors for Prometheus: each number of a report is one, and has its name."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from resourcesync.cli.render.status import UnreadableMirror, mirror_fields
from resourcesync.destination.reports import CheckedMirror, MirrorState, flat_fields
from resourcesync.server.metrics import Labels, Metric, gauge

_HELP: Final = {
    "readable": "1 if the state of the mirror can be read; else it has no others.",
    "state": "1 for the state that the last run left, 0 for the others.",
}
_REASONS: Final = "reasons_"
"""No metrics: their names may be those of a plug-in."""


def mirror_figures(
    mirrors: Sequence[CheckedMirror], unreadable: Sequence[UnreadableMirror]
) -> Iterator[Metric]:
    """Yield the metrics of mirrors; of those that cannot be read, only that they cannot.

    Each number of a report is one with the name of the field: ``listed_pending`` is ``pending`` in
    ``listed``.
    """
    found: dict[str, list[tuple[Labels, float]]] = {"readable": [], "state": []}
    for seen in mirrors:
        label = ("mirror", seen.status.mirror)
        found["readable"].append(((label,), 1.0))
        found["state"] += (
            ((label, ("state", state.value)), float(seen.status.judged is state))
            for state in MirrorState
        )
        for name, value in flat_fields(mirror_fields(seen)):
            if isinstance(value, datetime):
                moment = value.timestamp()
                found.setdefault(f"{name}_timestamp_seconds", []).append(((label,), moment))
            elif isinstance(value, int | float) and not name.startswith(_REASONS):
                found.setdefault(name, []).append(((label,), value))
    found["readable"] += (((("mirror", name),), 0.0) for name, _ in unreadable)
    for name, values in found.items():
        help_text = _HELP.get(name, f"The field {name} of the report.")
        if values:
            yield gauge(f"mirror_{name}", help_text, dict(values))
