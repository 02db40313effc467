"""Trash of a mirror: deleted copies are restored, or purged, by the operator.

A restored copy is like any other, with one mark: it stays until the Source lists it again. No list
of the Source deletes it: that it was deleted there is known.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from resourcesync.destination.options import Dependencies
from resourcesync.destination.path_assignment import owner_of
from resourcesync.destination.pending_tasks import RESTORED, pending_delete, quarantine_warning
from resourcesync.destination.planner import FILTERED, OUT_OF_SCOPE, is_restored
from resourcesync.destination.sync_state import SyncState
from resourcesync.destination.transfers.verification import check_installed
from resourcesync.discovery.known_addresses import address_fields
from resourcesync.errors import StorageError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import (
    Copy,
    Fixity,
    Pending,
    PendingTask,
    StateTransaction,
    TrashRow,
)
from resourcesync.model.digests import disagree, format_digests, parse_digests, usable
from resourcesync.model.timestamps import SECOND, to_microseconds
from resourcesync.ports import Clock, Copies, CopyInstallation, Reporter, StagedCopy

_GROUP: Final = 64
_GROUP_OF_ROWS: Final = 256
_GROUP_BYTES: Final = 64 << 20
_ALGORITHM: Final = "sha-256"


class TrashResult(msgspec.Struct, kw_only=True):
    """Result of a restoration or purge, done or planned."""

    files: int = 0
    size: int = 0
    failed: int = 0


class _StagedRestore(msgspec.Struct, frozen=True, kw_only=True):
    row: TrashRow
    copy: Copy
    staged: StagedCopy


class Trash(msgspec.Struct, kw_only=True):
    """Trash of one mirror, which must be locked.

    ``size`` returns the bytes of one file of the trash; ``None`` if there is none. ``is_blocked``
    is true for a path where no file can be put: a folder is there, or a file in place of a folder.
    A dry run reads the bytes, too.
    """

    copies: Copies
    state: SqliteMirrorState
    clock: Clock
    purge: Callable[[str], None]
    size: Callable[[str], int | None]
    is_blocked: Callable[[str], bool]
    report: Reporter
    dry_run: bool = False
    _result: TrashResult = msgspec.field(default_factory=TrashResult)

    def restore(self, rows: Iterable[TrashRow]) -> TrashResult:
        """Restore files to their paths; the newest of each path, and never over a file.

        The bytes are in place and recorded before they leave the trash: after a kill at any moment,
        the next run completes it.
        """
        group: list[_StagedRestore] = []
        try:
            for row in _newest_of_each_path(rows):
                self._prepare(row, group)
                size = sum(restore.copy.length for restore in group)
                if len(group) >= _GROUP or size >= _GROUP_BYTES:
                    self._install(group)
                    group.clear()
            self._install(group)
        except BaseException:
            for ready in group:
                ready.staged.discard()
            raise
        return self._result

    def _prepare(self, row: TrashRow, group: list[_StagedRestore]) -> None:
        copies, state = self.copies, self.state
        if not (row.path and row.uri):
            self._fail(row, *_NO_PLACE)
            return
        algorithms = _algorithms(row)
        staged = copies.stage_trashed(row.place, algorithms)
        if staged is None:
            if self.state.copy(row.uri) is None:
                self._fail(row, *_GONE)
            else:  # a run that was killed restored it
                self._drop([row])
            return
        length, digests = staged.seal()
        if disagree(parse_digests(row.digests), digests):
            staged.discard()
            self._fail(row, _ALTERED, f"{_WRONG_BYTES}: .resourcesync/trash/{row.place}")
            return
        is_same = copies.digest(row.path, algorithms) == (length, digests)
        obstacle = self._obstacle(row, is_same=is_same)
        if obstacle is None and state.copy(row.uri) is None:
            copy = self._copy(row, length, format_digests(digests))
            group.append(_StagedRestore(row=row, copy=copy, staged=staged))
            return
        staged.discard()
        if obstacle:
            self._fail(row, *obstacle)
        else:
            self._count(row, length)
            self._drop([row])

    def _obstacle(self, row: TrashRow, *, is_same: bool) -> tuple[str, str] | None:
        if self.is_blocked(row.path):
            return _BLOCKED
        known, is_there = self.state.copy(row.uri), self.copies.signature(row.path) is not None
        if known is None:
            is_free = not is_there or (is_same and owner_of(self.state, row.path) is None)
            return None if is_free else _OCCUPIED
        if is_same and is_restored(known) and check_installed(known, self.copies):
            return None
        return _OCCUPIED if is_there else _NEWER

    def _copy(self, row: TrashRow, length: int, digests: str) -> Copy:
        return Copy(
            uri=row.uri,
            path=row.path,
            length=length,
            digests=digests,
            listed="",
            lastmod=None,
            etag="",
            last_modified="",
            signature="",
            fixity=Fixity.RESTORED,
            installed=to_microseconds(self.clock.now()),
        )

    def _install(self, group: list[_StagedRestore]) -> None:
        if self.dry_run:
            for ready in group:
                ready.staged.discard()
                self._count(ready.row, ready.copy.length)
            return
        results = self.copies.install(
            [CopyInstallation(staged=restore.staged, path=restore.copy.path) for restore in group]
        )
        for path, place in self.copies.newly_quarantined():
            self.report("warning", quarantine_warning(path, place))
        installed: list[tuple[TrashRow, Copy]] = []
        failure: StorageError | None = None
        for ready, result in zip(group, results, strict=True):
            if isinstance(result, StorageError):
                self._fail(ready.row, result.code, result.message)
                failure = failure if result.code == "path-in-the-way" else result
            else:
                installed.append((ready.row, ready.copy._replace(signature=result)))
        copies = [copy for _, copy in installed]
        now, tasks = to_microseconds(self.clock.now()), [self._task(*each) for each in installed]
        self.state.commit(StateTransaction(installed=copies, pending=tasks, now=now))
        for row, copy in installed:
            self._count(row, copy.length)
        self._drop([row for row, _ in installed])
        if failure is not None:
            raise failure

    def _task(self, trashed: TrashRow, copy: Copy) -> Pending:
        known = self.state.pending_of(copy.uri)
        if known is not None and known.task == PendingTask.FETCH:
            return known
        now, generation = copy.installed, SyncState(self.state).cursor.generation
        row = pending_delete(copy, reason="", now=now, at=0, generation=generation)
        code = FILTERED if trashed.reason == OUT_OF_SCOPE else RESTORED  # it is still listed
        return row._replace(task=PendingTask.RETAIN, code=code)

    def empty(self, fits: Callable[[TrashRow], bool]) -> TrashResult:
        """Remove the files that a filter selects for good; a full disk needs no room for it."""
        rest = filter(fits, self.state.trash(removed_before=_EVER))
        while group := list(islice(rest, _GROUP)):
            for row in group:
                self._count(row, self.size(row.place) or 0, action="empty")
            self._drop(group)
        return self._result

    def _drop(self, rows: list[TrashRow]) -> None:
        if self.dry_run:
            return
        for row in rows:
            self.purge(row.place)
        self.state.commit(StateTransaction(purged=[row.place for row in rows]))

    def _count(self, row: TrashRow, size: int, action: str = "restore") -> None:
        self._result.files += 1
        self._result.size += size
        self.report("item", {"status": "ok", **self._fields(row, action), "bytes": size})

    def _fail(self, row: TrashRow, code: str, reason: str) -> None:
        self._result.failed += 1
        fields = self._fields(row, "restore")
        why = {"code": code, "reason": reason, "place": row.place}
        self.report("item", {"status": "error", **fields, **why})

    def _fields(self, row: TrashRow, action: str) -> dict[str, object]:
        address = address_fields(row.uri, SyncState(self.state).moved)
        return {"action": action, **address, "path": row.path}


_EVER: Final = 2**63 - 1
_ALTERED: Final = "hash-mismatch"
_WRONG_BYTES: Final = "its bytes were changed in the trash; restore it by hand"
_NO_PLACE: Final = ("no-place", "its path is unknown: restore it from the trash by hand")
_GONE: Final = ("missing", "it is no longer in the trash")
_OCCUPIED: Final = ("occupied", "another file has its path, and is not overwritten")
_WAY: Final = "repair fetches it, or forgets it with --delete if the Source does not list it"
_BLOCKED: Final = ("path-in-the-way", "a folder has its path, or a file that of its folder")
_NEWER: Final = ("occupied", f"the mirror has a later copy without its file: {_WAY}")


def _algorithms(row: TrashRow) -> list[str]:
    claims = usable(parse_digests(row.digests))
    return sorted({_ALGORITHM, *(digest.algorithm for digest in claims)})


def _newest_of_each_path(rows: Iterable[TrashRow]) -> Iterator[TrashRow]:
    last = ""
    for row in rows:
        if not row.path or row.path != last:
            yield row
        last = row.path


def register_lost_trash(state: SqliteMirrorState, copies: Copies, clock: Clock) -> None:
    """Record files that the state does not know: it is of a killed run, or from a backup.

    Otherwise they would never be purged. Only the file name shows what they were.
    """
    now = to_microseconds(clock.now())
    lost = (place for place in copies.trashed() if state.trash_at(place) is None)
    reason = "the state did not know it"
    while group := list(islice(lost, _GROUP_OF_ROWS)):
        rows = [TrashRow(place=name, uri="", path="", removed=now, reason=reason) for name in group]
        state.commit(StateTransaction(trashed=rows))
    SyncState(state).write(trashing=False)


def purge_old_trash(equipment: Dependencies, age: float) -> int:
    """Purge files older than ``age`` seconds in the trash; return their number."""
    now = to_microseconds(equipment.clock.now())
    equipment.state.correct_trash(now)
    old: Iterator[TrashRow] = equipment.state.trash(removed_before=now - int(age * SECOND) + 1)
    count = 0
    while group := list(islice(old, _GROUP_OF_ROWS)):
        for row in group:
            equipment.purge(row.place)
        equipment.state.commit(StateTransaction(purged=[row.place for row in group]))
        count += len(group)
    return count
