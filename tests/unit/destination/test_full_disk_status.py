"""What a mirror's state says of a pull that failed on a disk with no more room."""

from collections import deque
from pathlib import Path

import pytest

from resourcesync.destination.planner import as_unknown
from resourcesync.destination.reports import FailedRun, MirrorState
from resourcesync.destination.runs import record_failed_run
from resourcesync.destination.sync_state import status_of
from resourcesync.errors import DiskFullError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Copy, RunRow, StateTransaction
from tests.support.in_memory import ManualClock
from tests.support.storage.sqlite_connections import prepared


def fill(state: SqliteMirrorState) -> None:
    for size in (300, 0):
        rows = (
            RunRow(run=f"{size} {n}", started=1, ended=2, mode="m", outcome="ok", counts="x" * size)
            for n in range(1_000)
        )
        with pytest.raises(DiskFullError):
            deque(map(state.add_run, rows), maxlen=0)


def test_the_reason_of_the_last_failure_is_told_though_its_row_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    prepared(monkeypatch, lambda connection: connection.execute("PRAGMA max_page_count = 60"))
    with SqliteMirrorState(tmp_path / "state.db") as state:
        for message in ("no space left", "it was away"):
            record_failed_run(FailedRun(code="unavailable", message=message), state, clock)
            clock.advance(hours=1)
        later = status_of("M", state, running=False).failed_run
        fill(state)

        with pytest.raises(DiskFullError):
            record_failed_run(FailedRun(code="disk", message="no space left"), state, clock)
        told = status_of("M", state, running=False)

    assert later == FailedRun(code="unavailable", message="it was away")
    assert told.state is MirrorState.FAILING
    assert told.failed_run is not None
    assert (told.failed_run.message, told.outcome) == ("no space left", "disk")
    assert told.last_run == clock.now()


def test_files_that_a_killed_run_was_about_to_put_in_place_are_no_copies_yet(
    tmp_path: Path,
) -> None:
    here = Copy("u", "u", 3, "sha-256:aa", "sha-256:aa", 1, "", "", "sig", "verified", 0)
    begun = [here._replace(uri=f"u{n}", path=f"u{n}", signature="") for n in range(3)]
    with SqliteMirrorState(tmp_path / "state.db") as state:
        state.commit(StateTransaction(installed=[here]))
        state.commit(StateTransaction(suspect=[as_unknown(copy) for copy in begun]))
        told = status_of("M", state, running=False)

    assert (told.resources, told.listed.unchanged) == (1, 1)
    assert (told.evidence.by_hash, told.evidence.by_date) == (1, 0)
