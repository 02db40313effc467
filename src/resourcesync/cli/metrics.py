"""Figures of a run for Prometheus: a file that its node exporter reads (``--metrics-file``)."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from resourcesync.cli.output import CommandOutcome, Screen, problem_of
from resourcesync.errors import ResourceSyncError, StorageError

if TYPE_CHECKING:
    from resourcesync.server.metrics import Metric

_MetricRow = Mapping[str, object]

_METRICS: Final = {
    "resources": ("resources", "Resources in the mirror."),
    "listed": ("listed", "Resources that the Source lists and that are selected."),
    "unchanged": ("unchanged", "Listed resources that were here already."),
    "applied": ("applied", "Listed resources that the run brought."),
    "pending": ("pending", "Listed resources that are not here as listed."),
    "contradicting": ("contradicting", "Copies kept though they contradict the list."),
    "absent": ("absent", "Listed resources that the server does not have, where accepted."),
    "skipped": ("skipped", "Listed resources that the Source keeps out of reach, where accepted."),
    "refused": ("refused", "Entries of the Source that cannot be used."),
    "held": ("held_deletions", "Deletions that are held back."),
    "deleted": ("deleted", "Copies that the run deleted."),
    "requests": ("requests", "Requests that the run sent."),
    "bytes": ("received_bytes", "Bytes that the run received, lists included."),
    "seconds": ("duration_seconds", "How long the run took."),
    "as_of": ("complete_until_timestamp_seconds", "The Source's time up to which it is complete."),
}
_METRIC_PREFIX: Final = "resourcesync_pull_"


def with_metrics(
    work: Callable[[Screen], CommandOutcome], path: Path | None, mirror: str
) -> Callable[[Screen], CommandOutcome]:
    """Return work that also writes its figures to a file when it ends, however it ends.

    Args:
        work: Does the pull.
        path: The file; ``None`` writes none.
        mirror: The mirror's name, where there is only one.
    """
    if path is None:
        return work

    def measured(screen: Screen) -> CommandOutcome:
        from resourcesync.wiring import machine  # noqa: PLC0415 - help stays quick

        now = machine.system_clock().now
        try:
            outcome = work(screen)
        except ResourceSyncError as error:
            write_metrics(path, [{"mirror": mirror, "exit": problem_of(error).exit}], now())
            raise
        write_metrics(path, metric_rows(outcome, mirror), now())
        return outcome

    return measured


def metric_rows(outcome: CommandOutcome, mirror: str) -> list[_MetricRow]:
    """Return the fields of each mirror that a pull was of."""
    several = outcome.fields.get("mirrors") or outcome.fields.get("sets")
    if isinstance(several, list):
        return several
    return [{**outcome.fields, "mirror": mirror, "exit": outcome.exit}]


def write_metrics(path: Path, rows: Iterable[_MetricRow], now: datetime) -> None:
    """Write a file in the text format of Prometheus, so that nobody sees a part of it.

    Raises:
        StorageError: It cannot be written.
    """
    import tempfile  # noqa: PLC0415 - many keep no metrics

    from resourcesync.server.metrics import write_metrics  # noqa: PLC0415 - seldom needed

    text = write_metrics(_metric_figures(list(rows), now)).decode()
    temporary = ""
    try:
        file, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(file, "w", encoding="utf-8") as stream:
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
            evidence=(("kept", "the mirror is as the pull left it"),),
            hint="name a file in a folder that exists and may be written: --metrics-file FILE",
        ) from error


def _metric_figures(rows: list[_MetricRow], now: datetime) -> "Iterator[Metric]":
    yield _metric_figure(
        "end_timestamp_seconds", "When the run ended.", rows, lambda _: now.timestamp()
    )
    yield _metric_figure("exit_code", "How it ended.", rows, partial(_number_of, key="exit"))
    yield _metric_figure("in_sync", "1 when the mirror is in sync.", rows, _is_in_sync)
    for key, (name, what) in _METRICS.items():
        there = [row for row in rows if row.get(key) is not None]
        if there:
            yield _metric_figure(name, what, there, partial(_number_of, key=key))


def _metric_figure(
    name: str, what: str, rows: Iterable[_MetricRow], value: Callable[[_MetricRow], float]
) -> "Metric":
    from resourcesync.server.metrics import Metric  # noqa: PLC0415 - seldom needed

    values = tuple(((("mirror", str(row["mirror"])),), value(row)) for row in rows)
    return Metric(name=_METRIC_PREFIX + name, kind="gauge", help_text=what, values=values)


def _is_in_sync(row: _MetricRow) -> float:
    return row.get("state") == "in sync" and not row.get("dry_run")


def _number_of(row: _MetricRow, key: str) -> float:
    value = row[key]
    if isinstance(value, datetime):
        return value.timestamp()
    assert isinstance(value, int | float)
    return value
