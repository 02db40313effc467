"""Metrics of mirrors and pulls for Prometheus: each number of a report is one, and has its name."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from resourcesync.app import machine
from resourcesync.cli.render.status import CheckedMirror, UnreadableMirror
from resourcesync.destination.reports import MirrorState, flat_fields
from resourcesync.errors import StorageError
from resourcesync.server import metrics
from resourcesync.server.metrics import Metric

Labels = tuple[tuple[str, str], ...]
_PREFIX: Final = "resourcesync_pull_"
_MIRROR: Final = "resourcesync_mirror_"
_REASONS: Final = "reasons_"
"""No metrics: their names may be those of a plug-in."""


def write_metrics(path: Path, pulls: Sequence[Mapping[str, object]]) -> None:
    """Write the reports of pulls to a file for the textfile collector, in one atomic step."""
    now = machine.system_clock().now()
    rows = [{**pull, "end": now, "in_sync": _is_in_sync(pull)} for pull in pulls]
    text = metrics.write_metrics(report_metrics(_PREFIX, rows))
    temporary = ""
    try:
        file, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(file, "wb") as stream:
            stream.write(text)
            stream.flush()
            os.fchmod(stream.fileno(), 0o644)  # the exporter is another user
            os.fsync(stream.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        with suppress(OSError):
            Path(temporary).unlink()
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}",
            evidence=(("kept", "the mirror and the result of the pull"),),
            hint="name a file in a folder that exists and is writable: --metrics-file FILE",
        ) from error


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
    yield from report_metrics(_MIRROR, [seen.fields() for seen in mirrors])


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


def _is_in_sync(pull: Mapping[str, object]) -> bool:
    return pull.get("state") == "in sync" and not pull.get("dry_run")
