"""The status of a Source by its catalogue, where each run leaves what it did."""

from contextlib import suppress
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.catalogue.reader import read_note
from resourcesync.destination.mirror_health import is_over
from resourcesync.destination.reports import FailedRun
from resourcesync.errors import ResourceSyncError, damaged_note_error
from resourcesync.model.timestamps import from_microseconds
from resourcesync.source.publication_options import PublicationResult
from resourcesync.source.stored_plan import PLAN, encode

_NOTE: Final = "publish.run"


class SourceState(StrEnum):
    """State of a Source: how its last run ended."""

    NEW = "new"
    PUBLISHED = "published"
    INCOMPLETE = "incomplete"  # some files could not be published as they are, or it was stopped
    FAILING = "failing"


class SourceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of a Source by its catalogue.

    Its fields are those of ``status --json``.

    Attributes:
        source: Its name, or its folder.
        url: The address that it is published for.
        state: One of the four states.
        resources: Number of resources.
        changes: Number of changes since the first publication.
        unpublished: Files or rows that the last run could not publish as they are.
        last_run: End of the last run, UTC.
        complete_at: Start of the last run that published all, UTC; the lag counts from here.
        changed_at: End of the last run that wrote a document, UTC: without a change none is.
        next_list: Time of the next Resource List by ``rebase_every``, UTC.
        failed_run: Error that ended the last run; ``None`` if it completed.
        lag_seconds: Time since ``complete_at``.
        max_lag_seconds: Longest accepted lag (``max_lag``).
    """

    source: str = ""
    url: str = ""
    state: SourceState = SourceState.NEW
    resources: int = 0
    changes: int = 0
    unpublished: int = 0
    last_run: datetime | None = None
    complete_at: datetime | None = None
    changed_at: datetime | None = None
    next_list: datetime | None = None
    failed_run: FailedRun | None = None
    lag_seconds: float | None = None
    max_lag_seconds: float | None = None

    @property
    def is_late(self) -> bool:
        """True if the lag is over the limit."""
        return is_over(self.lag_seconds, self.max_lag_seconds)

    @property
    def is_fine(self) -> bool:
        """True if all is published, within the limit."""
        return self.state is SourceState.PUBLISHED and not self.is_late


def read_status(
    source: str, catalogue: Path, max_lag: float | None = None, now: datetime | None = None
) -> SourceStatus:
    """Return the status that the last run left in a catalogue, with the lag now."""
    found, lag = _decode(read_note(catalogue, _NOTE)), None
    if now is not None and found.complete_at is not None:
        lag = round(max((now - found.complete_at).total_seconds(), 0.0), 3)
    return replace(found, source=source, lag_seconds=lag, max_lag_seconds=max_lag)


def record_run(catalogue: Path, ended: PublicationResult | BaseException, now: datetime) -> None:
    """Record a run that ended now, if there is a catalogue, and it can be written."""
    if not catalogue.is_file():
        return
    with suppress(ResourceSyncError), SourceCatalogue(catalogue) as opened:
        before = _decode(opened.note(_NOTE))
        if isinstance(ended, BaseException):
            failed = FailedRun.of(ended)
            state = SourceState.INCOMPLETE if failed.is_stop else SourceState.FAILING
            after = replace(before, state=state, last_run=now, failed_run=failed)
        else:
            after = _completed(before, ended, opened, now)
        opened.write_notes({_NOTE: encode(after)})


def _completed(
    before: SourceStatus, done: PublicationResult, catalogue: SourceCatalogue, now: datetime
) -> SourceStatus:
    error = None if done.dumped is None else done.dumped.error
    left = done.scan.changing + done.scan.unreadable + done.mended
    every, plan = timedelta(seconds=done.settings.rebase_every), PLAN.read(catalogue)
    with catalogue.snapshot() as snapshot:
        changes = snapshot.last_change()
    state = SourceState.INCOMPLETE if left else SourceState.PUBLISHED
    whole_at = before.complete_at if left or error else now - timedelta(seconds=done.seconds)
    return SourceStatus(
        url=done.settings.url,
        state=SourceState.FAILING if error else state,
        resources=done.report().resources,
        changes=changes,
        unpublished=left,
        last_run=now,
        complete_at=whole_at,
        changed_at=now if done.documents_written else before.changed_at,
        next_list=from_microseconds(plan.monitored_since) + every if plan and every else None,
        failed_run=FailedRun.of(error) if error else None,
    )


def _decode(text: str | None) -> SourceStatus:
    try:
        return SourceStatus() if text is None else msgspec.json.decode(text, type=SourceStatus)
    except msgspec.MsgspecError as error:
        raise damaged_note_error("record of runs", error) from error
