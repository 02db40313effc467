"""Jobs of watching: history and audit of a mirror, and hand-over of its changes to a program."""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import chain
from pathlib import Path

import msgspec

from resourcesync.adapters.consumer_programs import run_program
from resourcesync.adapters.mirror.own_folder import STATE_FILE
from resourcesync.app.mirrors import mirror_state
from resourcesync.destination.audits.fixity import AuditRolling
from resourcesync.destination.options import AuditMethod
from resourcesync.destination.reports import FailedRun
from resourcesync.destination.runs import failed_run, record_failed_run
from resourcesync.destination.sync_state import SyncState
from resourcesync.errors import ResourceSyncError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import LoggedChange
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import CancelToken, Clock
from resourcesync.watch.scheduler import MirrorHistory

_LOG = logging.getLogger(__name__)
_SECOND = 1_000_000


class AuditOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a mirror's audits."""

    method: AuditMethod = "hash"
    share: float = 1.0
    oldest_first: bool = False
    """True if the copies that were verified longest ago come first."""

    @property
    def rolling(self) -> AuditRolling | None:
        """The copies to check; ``None`` for all."""
        if self.method == "lists" or (self.share >= 1 and not self.oldest_first):
            return None
        return AuditRolling(share=self.share, oldest_first=self.oldest_first)


def read_history(folder: Path) -> MirrorHistory:
    """Return what a mirror's own state has of its last pull and audit.

    Of a folder with a mirror for each set, the one that waits longest counts.
    """
    pasts = [
        _read_mirror_history(path)
        for path in mirror_state.each_mirror([folder])
        if mirror_state.is_mirror(path)
    ]
    return MirrorHistory(
        pulled=_earliest([past.pulled for past in pasts]),
        audited=_earliest([past.audited for past in pasts]),
        has_failed=any(past.has_failed for past in pasts),
    )


def record_failed_pull(
    folder: Path, failed: Mapping[str, FailedRun | ResourceSyncError], began: datetime, clock: Clock
) -> dict[Path, FailedRun]:
    """Record a failed pull in each mirror that has no record of it, so that none is in sync.

    Returns what could not be recorded, as on a full disk, by the mirror's folder.

    A pull may fail before the mirror is opened, as by its configuration.
    """
    since, unrecorded = to_microseconds(began), dict[Path, FailedRun]()
    for path in mirror_state.each_mirror([folder]):
        found = failed.get(str(path), failed.get(""))
        if found is None or not mirror_state.is_mirror(path) or mirror_state.is_locked(path):
            continue  # a run that goes on will record its own end
        failure = found if isinstance(found, FailedRun) else failed_run(found)
        try:
            with SqliteMirrorState(path / OWN_FOLDER / STATE_FILE) as state:
                last = state.last_run()
                if last is None or last.ended < since:
                    record_failed_run(failure, state, clock)
        except ResourceSyncError as error:  # a state that cannot be written; status reports damage
            _LOG.warning("the failed pull of %s cannot be recorded: %s", path, error)
            unrecorded[path] = failure
    return unrecorded


def _read_mirror_history(folder: Path) -> MirrorHistory:
    with mirror_state.open_state(folder) as state:
        last, audited = state.last_run(), SyncState(state).audited_at
    return MirrorHistory(
        pulled=None if last is None else last.ended / _SECOND,
        audited=None if audited is None else audited / _SECOND,
        has_failed=last is not None and not last.mode,
    )


def _earliest(moments: list[float | None]) -> float | None:
    known = [moment for moment in moments if moment is not None]
    return min(known, default=None) if len(known) == len(moments) else None


class ChangeForwarder:
    """Hands new changes over to a program."""

    def __init__(
        self,
        consumer: str,
        command: tuple[str, ...],
        line: Callable[[LoggedChange, Callable[[str], str]], bytes],
    ) -> None:
        self._consumer, self._command, self._line = consumer, command, line

    def forward(self, folder: Path, cancel: CancelToken) -> tuple[int, int]:
        """Run the program when a mirror has changes for it; return their number, and its exit code.

        After exit code 0 it does not get them again, even if it did not read all of them.
        """
        with mirror_state.open_changes(folder) as opened:
            reader = opened.reader(self._consumer)
            before, present_uri = reader.position, opened.present_uris()
            count = 0

            def counted(change: LoggedChange) -> bytes:
                nonlocal count
                count += 1
                return self._line(change, present_uri)

            waiting = map(counted, reader.read_new())
            first = next(waiting, None)
            code = 0
            if first is not None:
                code = run_program(self._command, chain((first,), waiting), cancel)
            if not code:
                deque(waiting, maxlen=0)
                if reader.position is not None and reader.position != before:
                    opened.consumers.acknowledge(self._consumer, reader.position)
        return count, code
