"""Rows of a catalogue that cannot be published: each is told and mended, and the rest goes on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from resourcesync.catalogue import bad_rows
from resourcesync.catalogue.bad_rows import BadRow
from resourcesync.errors import StorageError
from resourcesync.ports import Clock, Reporter
from resourcesync.source.publication_options import PublicationResult, PublishRequest
from resourcesync.source.read_back import BAD_ROW_CODES


def report_bad_rows(path: Path, asked: PublishRequest) -> int:
    """Report the rows that cannot be published; return their number."""
    from resourcesync.source.round_trip import find_fault  # noqa: PLC0415 - quick start

    count = 0
    for row in bad_rows.find_bad_rows(path, find_fault):
        _report_row(asked.report, row)
        count += 1
    return count


def publish_mended(
    path: Path, clock: Clock, asked: PublishRequest, attempt: Callable[[], PublicationResult]
) -> PublicationResult:
    """Publish; if bad rows were met and mended, publish again."""
    try:
        return attempt()
    except StorageError as error:
        count = _mend(error, path, clock, asked)
        if not count:
            raise
    return replace(attempt(), mended=count)


@contextmanager
def mending(path: Path, clock: Clock, asked: PublishRequest) -> Iterator[None]:
    """Mend the bad rows that end the block, so that the next run can go on."""
    try:
        yield
    except StorageError as error:
        if count := _mend(error, path, clock, asked):
            error.evidence = (*error.evidence, ("mended", f"{count:,} of its rows"))
            error.hint = "publish again"
        raise


def _mend(error: StorageError, path: Path, clock: Clock, asked: PublishRequest) -> int:
    if error.code not in BAD_ROW_CODES:
        return 0
    if asked.dry_run:
        report_bad_rows(path, asked)
        return 0
    from resourcesync.source.round_trip import find_fault  # noqa: PLC0415 - quick start

    return bad_rows.mend_rows(path, clock.now(), find_fault, partial(_report_row, asked.report))


def _report_row(report: Reporter, row: BadRow) -> None:
    instead = "its URI alone" if row.table == "resource" else "its resource as it is now"
    former = {name: repr(value) for name, value in row.values.items() if value not in (None, "")}
    message = (
        f"{row.place} cannot be published: {row.uri}: {row.reason}; published instead:"
        f" {instead if row.has_uri else 'nothing'}; its values: "
        + ", ".join(f"{name} {value}" for name, value in former.items())
    )
    hint = "correct the program that wrote it: the view post refuses such rows"
    fields = {"place": row.place, "uri": row.uri, "reason": row.reason, "former": former}
    report("warning", {"code": "mended-row", "message": message, "hint": hint, **fields})
