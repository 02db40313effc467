"""``status``: the table, the gate, the lines for programs."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from resourcesync.app.mirrors import mirror_state
from resourcesync.cli.commands.status import StatusCheck
from resourcesync.cli.main import run
from resourcesync.cli.render.status import CheckedMirror, status_table
from resourcesync.destination.reports import ListedCounts, MirrorState, MirrorStatus
from resourcesync.settings.mirror import FreshnessSettings
from tests.support.commands.command_line import FILES, LATER, Said, rows
from tests.support.commands.settings_file import museum, put
from tests.support.servers.tiny_source import TinySource

LATE = r"museum  late: it was last found in sync \S+ s ago; max_lag is 0 s\."


def test_status_checks_the_state_and_the_lag(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])

    assert run(["status", "museum", "--check"]) == 0
    assert run(["status", "museum", "--check", "--max-lag", "1h"]) == 0
    said.readouterr()

    assert run(["status", "museum", "--check", "--max-lag", "0s"]) == 1
    assert re.search(LATE, said.readouterr().out)

    assert run(["status", "museum", "--check", "--max-lag", "0s", "-q"]) == 1
    seen = said.readouterr()
    assert re.search(LATE, seen.err)
    assert not seen.out


def test_a_source_that_stands_still_for_too_long_is_told_of_where_that_is_asked_for(
    source: TinySource, said: Said
) -> None:
    run(["pull", source.url, "copies/museum"])
    put(museum(source, 'max_quiet = "30d"\nmax_lag = "1h"'))
    said.readouterr()

    assert run(["status", "museum"]) == 0
    assert run(["status", "museum", "--check"]) == 1
    told = said.readouterr().out
    assert (
        "museum  the Source has not published since 2026-01-01 00:00:00Z: check that it still"
        in told
    )
    assert run(["status", "museum", "--check", "--max-quiet", "5000w"]) == 0
    assert run(["status", "museum", "--format", "prom"]) == 0
    assert 'resourcesync_mirror_source_quiet_seconds{mirror="museum"} ' in said.readouterr().out


def test_status_says_when_a_resource_that_failed_often_is_tried_again(
    source: TinySource, said: Said
) -> None:
    run(["pull", source.url, "museum"])
    source.offer({**FILES, "/new.txt": b"new"}, at=LATER)
    source.put("/new.txt", b"newer")
    for _ in range(4):
        run(["pull", "museum"])
    said.readouterr()
    run(["status", "museum"])
    assert "not in the mirror as listed; the next pull tries again." in said.readouterr().out
    run(["pull", "museum"])
    before = [asked.target for asked in source.asked].count("/new.txt")
    run(["pull", "museum"])
    assert [asked.target for asked in source.asked].count("/new.txt") == before, "it rests"
    said.readouterr()

    run(["status", "museum"])
    out = said.readouterr().out
    assert "the next pull tries again" not in out
    assert re.search(
        r"1 listed resource not in the mirror as listed;"
        r" tried again by the first pull after 20\S+ \S+Z\.",
        out,
    )
    assert "the list says 3 B, the Source served more (Content-Length: 5)" in out
    run(["status", "museum", "--json"])
    (mirror,) = [row for row in rows(said) if row["type"] == "mirror"]
    assert mirror["resting"] == 1
    assert mirror["tried_again"] == mirror["failures"][0]["due"] > mirror["last_run"]
    run(["why", "museum", f"{source.url}/new.txt", "--offline"])
    assert re.search(
        r"Tried     5 times since .*; next try after 20\S+ \S+Z\n", said.readouterr().out
    )


NOW = datetime(2026, 11, 21, 6, tzinfo=UTC)


def seen(status: MirrorStatus, **limits: float) -> CheckedMirror:
    return StatusCheck(is_requested=True, limits=FreshnessSettings(**limits)).measure(
        status, FreshnessSettings(), NOW
    )


def test_a_mirror_that_never_ran_has_no_lag_and_is_not_fine() -> None:
    new = MirrorStatus(mirror="m", source="", state=MirrorState.NEW)

    (_, row) = status_table([new], NOW)

    assert row.split() == ["m", "new", "-", "-", "never", "0", "0"]
    assert not seen(new).is_fine


def test_a_lag_that_is_not_known_is_not_within_a_limit() -> None:
    timeless = MirrorStatus(mirror="m", source="", state=MirrorState.IN_SYNC)

    assert seen(timeless).is_fine
    assert not seen(timeless, max_lag=3600).is_fine
    assert not seen(timeless, max_quiet=3600).is_fine


def test_the_share_counts_each_listed_resource_once() -> None:
    behind = MirrorStatus(
        mirror="m",
        source="",
        state=MirrorState.BEHIND,
        resources=11,  # of which one is an old copy of what waits
        listed=ListedCounts(unchanged=10, pending=2, refused=8),
    )

    assert (behind.listed.right, behind.wanted) == (10, 20)
    assert "  50 %  " in status_table([behind], NOW)[1]


def test_rechecks_that_are_late_change_no_exit_code() -> None:
    late = MirrorStatus(
        mirror="m",
        source="",
        state=MirrorState.IN_SYNC,
        recheck_seconds=1.0,
        recheck_reached_seconds=2.0,
    )

    assert late.is_recheck_late
    assert (
        StatusCheck(is_requested=True, limits=FreshnessSettings())
        .measure(replace(late, in_sync_at=NOW), FreshnessSettings(), NOW)
        .is_fine
    )


def test_a_folder_that_cannot_be_looked_into_is_no_mirror_of_ours(
    source: TinySource, here: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(["pull", source.url, "mirror"])
    (here / "closed").mkdir()
    said.readouterr()
    real = mirror_state.is_mirror

    def is_mirror(folder: Path) -> bool:
        if folder.name == "closed":
            raise PermissionError(13, "Permission denied")
        return real(folder)

    monkeypatch.setattr(mirror_state, "is_mirror", is_mirror)

    assert run(["status", "--json"]) == 0
    assert [row["mirror"] for row in rows(said) if row["type"] == "mirror"] == ["mirror"]
