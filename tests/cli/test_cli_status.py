"""``status``: what it counts, and what a failed run leaves."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from resourcesync.app.mirrors import mirror_state
from resourcesync.cli.commands.status import StatusCheck
from resourcesync.cli.main import run
from resourcesync.cli.options import load
from resourcesync.cli.render.metrics import mirror_figures
from resourcesync.cli.render.status import status_table
from resourcesync.destination.reports import CheckedMirror, ListedCounts, MirrorState, MirrorStatus
from resourcesync.destination.sync_state import read_failed
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import RunRow
from resourcesync.server.metrics import write_metrics
from resourcesync.settings.mirror import FreshnessSettings
from tests.support.commands.command_line import Said, rows
from tests.support.commands.settings_file import museum, put
from tests.support.servers.tiny_source import Answer, TinySource

NOW = datetime(2026, 11, 21, 6, tzinfo=UTC)


def seen(status: MirrorStatus, **limits: float) -> CheckedMirror:
    return StatusCheck(is_requested=True, limits=FreshnessSettings(**limits)).measure(
        status, FreshnessSettings(), NOW
    )


def test_a_mirror_that_never_ran_has_no_lag_and_is_not_fine() -> None:
    new = MirrorStatus(mirror="m", source="", state=MirrorState.NEW)

    (_, row) = status_table([seen(new)], NOW)

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
    assert "  50 %  " in status_table([seen(behind)], NOW)[1]


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


# --- status after a run that failed: when, why, with which exit code, and what to do now ----------


def told(said: Said) -> dict[str, Any]:
    (mirror,) = [row for row in rows(said) if row["type"] == "mirror"]
    return mirror


def test_a_failed_run_whose_row_is_damaged_is_told_by_its_code() -> None:
    with SqliteMirrorState(":memory:") as state:
        row = RunRow(run="1", started=1, ended=2, mode="", outcome="dns", counts="{}")
        state.add_run(row)
        failed = read_failed(state.last_run())

    assert failed is not None
    assert (failed.code, failed.message) == ("dns", "")


@pytest.mark.parametrize(
    "mistake",
    [
        ["http://127.0.0.1:9/other", "copy"],
        ["copy", "--include", "[a-z]"],
        ["copy", "-o", "map=no-such-rule"],
        ["copy", "--set", "no-such-set"],
        ["copy", "-o", "proxy=gopher://h/"],
    ],
    ids=["another Source", "a bad glob", "another mapping", "another set", "a bad proxy"],
)
def test_a_mistake_on_the_command_line_says_nothing_of_the_mirror(
    mistake: list[str], source: TinySource, said: Said
) -> None:
    assert run(["pull", source.url, "copy"]) == 0
    said.readouterr()
    run(["status", "copy", "--json"])
    before = told(said)

    assert run(["pull", *mistake]) == 2

    said.readouterr()
    assert run(["status", "copy", "--check"]) == 0
    said.readouterr()
    run(["status", "copy", "--json"])
    assert told(said)["last_run"] == before["last_run"]


@pytest.mark.parametrize(
    ("answer", "cause", "step"),
    [
        (
            Answer(status=502),
            "unavailable (502 Bad Gateway): ",
            "try again later; if it lasts, tell",
        ),
        (Answer(status=503), "unavailable (503 Service Unavailable): ", "try again later;"),
        (Answer(status=403), "refuses access (403 Forbidden): ", "ask the operator of the server"),
        (
            Answer(body=b"<urlset>"),
            "The document stops before its end: ",
            "resourcesync validate http",
        ),
    ],
    ids=["502", "503", "403", "a list that was cut"],
)
def test_a_failure_is_told_with_its_number_its_address_and_what_helps(
    answer: Answer, cause: str, step: str, source: TinySource, said: Said
) -> None:
    assert run(["pull", source.url, "copy", "-q"]) == 0
    source.answers.update(dict.fromkeys(source.answers, answer))
    assert run(["pull", "copy", "-qq", "-o", "retries=0"]) in {4, 5, 6}

    assert run(["status", "copy"]) == 0

    _, _, note, following, *_ = said.readouterr().out.splitlines()[1:]
    assert f"{cause}{source.url}" in note
    assert following.strip().startswith("next   ")
    assert step in following


def test_only_what_is_bad_is_told_in_short_and_the_worst_is_first(
    source: TinySource, said: Said
) -> None:
    names = ["good", "failing", "late"]
    tables = [museum(source).replace("museum", name) for name in names]
    put("".join(tables) + "max_lag = 0\n")
    assert run(["pull", "--all", "-qq"]) == 0
    source.answers.clear()
    assert run(["pull", "failing", "-qq", "-o", "retries=0"]) == 5
    load(None).state_file("paused").write_text('["good"]')

    assert run(["status", "--check"]) == 1
    table = said.readouterr().out.splitlines()
    assert run(["status", "--check", "-q"]) == 1
    short = said.readouterr()
    assert run(["status", "good", "--check", "-q"]) == 0

    assert [line.split()[0] for line in table[1:4]] == ["failing", "late", "good"]
    assert "  in sync, paused  " in table[3]
    assert short.out == ""
    assert [line.split()[0] for line in short.err.splitlines()[:3]] == ["MIRROR", "failing", "late"]
    assert "good" not in short.err
    assert "failing  the last pull failed " in short.err
    assert said.readouterr() == ("", "")


# --- status for programs that watch: figures for Prometheus, the order ----------------------------


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def seen_formats(
    name: str, state: MirrorState, lag: float | None = 60, **more: float
) -> CheckedMirror:
    status = MirrorStatus(
        mirror=name,
        source="https://museum.example/",
        state=state,
        resources=10,
        listed=ListedCounts(unchanged=10, pending=int(more.get("pending", 0))),
        as_of=NOON,
    )
    return CheckedMirror(status, lag, more.get("max_lag"))


IN_SYNC = MirrorState.IN_SYNC


def test_the_figures_for_prometheus_are_well_formed() -> None:
    mirrors = [
        seen_formats('a"b\\', IN_SYNC),
        seen_formats("c", MirrorState.BEHIND, None, pending=10),
    ]
    lines = write_metrics(mirror_figures(mirrors, [])).decode().splitlines()

    samples = [line for line in lines if not line.startswith("#")]
    pattern = (
        r'resourcesync_mirror_[a-z_]+\{mirror="(?:[^"\\]|\\.)*"(?:,state="[a-z ]+")?\} [0-9.e+]+'
    )
    assert all(re.fullmatch(pattern, line) for line in samples)
    assert len(set(samples)) == len(samples)
    assert 'resourcesync_mirror_state{mirror="c",state="behind"} 1' in samples
    assert 'resourcesync_mirror_state{mirror="c",state="in sync"} 0' in samples
    assert 'resourcesync_mirror_in_sync_ratio{mirror="c"} 0.5' in samples
    assert 'resourcesync_mirror_lag_seconds{mirror="a\\"b\\\\"} 60' in samples
    assert not any(
        line.startswith('resourcesync_mirror_lag_seconds{mirror="c"') for line in samples
    )
    heads = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(set(heads)) == len(heads)
