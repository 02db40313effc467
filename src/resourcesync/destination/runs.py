"""A run, from its beginning to what the mirror remembers of it."""

import secrets
from dataclasses import replace
from typing import Final

import msgspec

from resourcesync.destination.memory import SyncState
from resourcesync.destination.options import Dependencies
from resourcesync.destination.reports import FailedRun, RunReport
from resourcesync.destination.reports import MirrorState as Word
from resourcesync.errors import ResourceSyncError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports.mirror import RunRow

_MAX_MESSAGE: Final = 2_000


class MirrorRun:
    """One run that may write to the mirror; it begins when it is made.

    Args:
        equipment: What it works with.

    Attributes:
        id: Its id.
    """

    def __init__(self, equipment: Dependencies) -> None:
        self._dependencies = equipment
        self._began_at = to_microseconds(equipment.clock.now())
        self._started_monotonic = equipment.clock.monotonic()
        self.id = new_run_id()

    def with_duration(self, report: RunReport) -> RunReport:
        """Return its report with how long it took."""
        return replace(
            report, seconds=self._dependencies.clock.monotonic() - self._started_monotonic
        )

    def record(self, report: RunReport, mode: str) -> None:
        """Write down how it ended.

        A mirror that is in sync is so up to the moment when the run began to ask: what the Source
        published later is not known here.
        """
        counts = msgspec.json.encode(replace(report, failures=())).decode()
        word = report.state
        outcome = "ok" if word is Word.IN_SYNC else report.spent or word.value
        is_proven = word is Word.IN_SYNC and not report.spent
        self._close(mode, outcome, counts, word, in_sync_at=self._began_at if is_proven else None)

    def record_failure(self, error: BaseException) -> None:
        """Write down that it could not go on, and why."""
        failed = failed_run(error)
        counts = msgspec.json.encode(failed).decode()
        self._close("", failed.code, counts, Word.FAILING)

    def _close(
        self, mode: str, outcome: str, counts: str, word: Word, *, in_sync_at: int | None = None
    ) -> None:
        ended = to_microseconds(self._dependencies.clock.now())
        began, state = self._began_at, self._dependencies.state
        row = RunRow(
            run=self.id, started=began, ended=ended, mode=mode, outcome=outcome, counts=counts
        )
        if word is Word.IN_SYNC:
            state.add_run(row)
            moved = "" if SyncState(state).moved_from else None  # it did move: there it is in sync
            SyncState(state).write(word=word, in_sync_at=in_sync_at, moved_from=moved)
        else:  # killed between the two, nobody may call it in sync
            SyncState(state).write(word=word)
            state.add_run(row)


def failed_run(error: BaseException) -> FailedRun:
    """Return what is remembered of a run that an error ended."""
    if not isinstance(error, ResourceSyncError):
        return FailedRun(code="interrupted")
    uri: str = getattr(error, "uri", "")
    of = f" ({uri})" if uri and uri not in error.message else ""
    return FailedRun(
        code=error.code,
        kind=type(error).__name__,
        message=f"{error.message}{of}"[:_MAX_MESSAGE],
        hint=error.hint[:_MAX_MESSAGE],
    )


def read_failed(row: RunRow | None) -> FailedRun | None:
    """Return why a run could not go on; ``None`` for one that came to its end."""
    if row is None or row.mode or row.outcome == "ok":
        return None
    try:
        return msgspec.json.decode(row.counts, type=FailedRun)
    except msgspec.MsgspecError:  # written by a version that knew the code only
        return FailedRun(code=row.outcome)


def new_run_id() -> str:
    """Return the id of a run."""
    return secrets.token_hex(6)
