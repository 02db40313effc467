"""``status``: what it counts, and what a failed run leaves."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from resourcesync import Mirror, Network
from resourcesync.app import mirror_home
from resourcesync.cli.commands.status import StatusCheck
from resourcesync.cli.main import run
from resourcesync.cli.render.audit import conclude as conclude_audit
from resourcesync.cli.render.pull import conclude
from resourcesync.cli.render.status import mirror_metrics, notes_of, status_table
from resourcesync.destination.audits.reports import AuditReport
from resourcesync.destination.mirror_health import CheckedMirror
from resourcesync.destination.reports import (
    FailedRun,
    Failing,
    ListedCounts,
    MirrorState,
    MirrorStatus,
    Mode,
    RetainedCounts,
    RunReport,
)
from resourcesync.destination.sync_state import read_failed
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import RunRow
from resourcesync.model.formatting import moment
from resourcesync.server.metrics import write_metrics
from resourcesync.settings.mirror import FreshnessSettings
from tests.support.commands.command_line import Said, rows
from tests.support.servers.tiny_source import Answer, TinySource

NOW = datetime(2026, 11, 21, 6, tzinfo=UTC)


def seen(status: MirrorStatus, **limits: float) -> CheckedMirror:
    return StatusCheck(is_requested=True, limits=FreshnessSettings(**limits)).measure(
        status, FreshnessSettings(), NOW
    )


def status(state: MirrorState, **more: Any) -> MirrorStatus:
    return MirrorStatus(mirror="m", state=state, **{"source": "", **more})


def test_a_mirror_that_never_ran_has_no_lag_and_is_not_fine() -> None:
    new = seen(status(MirrorState.NEW))

    assert status_table([new], NOW)[1].split() == ["m", "new", "-", "-", "never", "0", "0"]
    assert not new.is_fine


def test_what_a_run_that_goes_on_did_not_try_yet_is_not_failing() -> None:
    failures = tuple(Failing(uri=str(tries), code="", reason="r", tries=tries) for tries in (0, 1))
    counts, stop = ListedCounts(unchanged=4, pending=2), FailedRun(code="stopped")
    about: dict[str, Any] = {"listed": counts, "failures": failures, "failed_run": stop}
    about["outcome"] = stop.code
    running = seen(status(MirrorState.SYNCING, source="https://s.example/", **about))

    assert status_table([running], NOW)[1].split()[-1] == "-"
    assert notes_of(running) == [
        "the last pull was asked to stop",
        "2 listed resources not in the mirror as listed; a run is under way.",
        "! 1   r",
    ]


def test_what_was_not_requested_was_not_tried(source: TinySource, said: Said) -> None:
    source.offer({f"/{name}.txt": b"x" for name in "ab"})
    source.answers["/a.txt"] = Answer(status=429, headers={"Retry-After": "3600"})
    mirror = Mirror(source.url, "m", network=Network(retries=0, per_host=1))

    told = [mirror.pull().failures for _ in range(5)]
    busy, unasked = mirror.status().failures

    assert [[failing.tries for failing in of] for of in told] == [[n, 0] for n in range(1, 6)]
    assert told[-1] == (busy, unasked)
    assert unasked.reason.startswith("not requested: the server is temporarily unavailable")
    assert run(["pull", "m"]) == 3
    assert f"the first pull after {moment(busy.due or NOW)} tries" in said.readouterr().out


def test_a_pull_names_when_it_tries_what_a_rerun_helps() -> None:
    codes = {"refused": 1, "timeout": 3, "connect": 2}
    report = RunReport(
        pull="1",
        mode=Mode.BASELINE,
        state=MirrorState.BEHIND,
        failed=4,
        reasons={**codes, "local-change": 1},
        retained=RetainedCounts(edited=1),
        failures=(
            *(
                Failing(uri=of, code=of, reason="r", due=NOW.replace(day=n))
                for of, n in codes.items()
            ),
            Failing(uri="edited", code="local-change", reason="r"),
        ),
    )

    shown = "\n".join(line.text for line in conclude(report, "m", first=False, plan={}).closing)

    assert f"the first pull after {moment(NOW.replace(day=2))} tries again" in shown


@pytest.mark.parametrize("kind", ["extra", "refused"])
def test_an_audit_of_sound_copies_names_a_pull_for_what_else_is_wrong(kind: str) -> None:
    audit = AuditReport(audit="1", at=NOW, listed=2, present=2, accurate=1, originals=1)

    shown = [
        conclude_audit(each, Path("m")).closing[-1].text
        for each in (audit, replace(audit, **{kind: 1}))
    ]

    assert shown[0].startswith("  next        ask the Source to copy these originals again")
    assert shown[1] == "  next        resourcesync pull m"


def test_a_lag_that_is_not_known_is_not_within_a_limit() -> None:
    timeless = status(MirrorState.IN_SYNC)

    assert seen(timeless).is_fine
    assert not seen(timeless, max_lag=3600).is_fine
    quiet = seen(timeless, max_quiet=3600)
    assert not quiet.is_fine
    assert any("leave max_quiet out" in note for note in notes_of(quiet))


def test_the_share_counts_each_listed_resource_once() -> None:
    listed = ListedCounts(unchanged=10, pending=2, refused=8)
    behind = status(MirrorState.BEHIND, resources=11, listed=listed)  # one is old, of what waits

    assert (behind.listed.right, behind.wanted) == (10, 20)
    assert "  50 %  " in status_table([seen(behind)], NOW)[1]


def test_a_run_that_goes_on_has_the_longest_lag_to_do_what_it_found() -> None:
    syncing = status(MirrorState.SYNCING, left=MirrorState.IN_SYNC, in_sync_at=NOW)
    found = replace(syncing, listed=ListedCounts(unchanged=4, pending=2))

    assert seen(syncing).is_fine
    for busy in (found, replace(syncing, deletions=1), replace(syncing, in_sync_at=None)):
        assert not seen(busy).is_fine
    assert seen(found, max_lag=60).is_fine
    assert not seen(replace(found, in_sync_at=NOW - timedelta(hours=1)), max_lag=60).is_fine
    assert not seen(replace(found, left=MirrorState.BEHIND), max_lag=60).is_fine


def test_rechecks_that_are_late_change_no_exit_code() -> None:
    times = {"recheck_seconds": 1.0, "recheck_reached_seconds": 2.0}
    late = status(MirrorState.IN_SYNC, in_sync_at=NOW, **times)

    assert late.is_recheck_late
    assert seen(late).is_fine


def test_a_folder_that_cannot_be_looked_into_is_no_mirror_of_ours(
    source: TinySource, here: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(["pull", source.url, "mirror"])
    (here / "closed").mkdir()
    said.readouterr()
    real = mirror_home.is_mirror

    def is_mirror(folder: Path) -> bool:
        if folder.name == "closed":
            raise PermissionError(13, "Permission denied")
        return real(folder)

    monkeypatch.setattr(mirror_home, "is_mirror", is_mirror)

    assert run(["status", "--json"]) == 0
    assert [row["mirror"] for row in rows(said) if row["type"] == "mirror"] == ["mirror"]


def test_a_name_of_both_tables_is_shown_once_as_each_and_that_of_a_mirror_is_no_folder(
    source: TinySource, here: Path, said: Said
) -> None:
    (here / "site").mkdir()
    (here / "site/a").write_text("a")
    run(["publish", "site", "--url", "https://s.example/"])
    both = f'[mirror.big]\nsource = "{source.url}"\ndest = "m"\n[source.big]\npath = "site"\n'

    def shown(*words: str) -> list[str]:
        said.readouterr()
        assert run(["status", "--json", *words]) == 0
        names = {"mirror": "mirror", "source.status": "source"}
        found = [f"{names[row['type']]} {row[names[row['type']]]}" for row in rows(said)[1:-1]]
        return [each.replace(str(here), "") for each in found]

    (here / "resourcesync.toml").write_text(both)
    assert shown() == shown("big") == ["mirror big", "source big"]
    (here / "resourcesync.toml").write_text(both.partition("[source")[0].replace("big", "site"))
    assert shown() == shown("site") == ["mirror site"]


def test_a_copy_that_an_audit_found_missing_or_changed_is_listed_as_such(
    source: TinySource, here: Path, said: Said
) -> None:
    source.offer({f"/{name}": name.encode() for name in ("gone", "other", "well")})
    run(["pull", source.url, "m"])
    (here / "m/gone").unlink()
    (here / "m/other").write_bytes(b"OTHER")
    run(["audit", "m"])
    with Mirror(None, "m") as held:
        assert held.status().left is MirrorState.BEHIND
    said.readouterr()

    run(["list", "m", "--json"])
    proofs = {row["path"]: row["fixity"] for row in rows(said) if row["type"] == "copy"}
    assert proofs == {"gone": "missing", "other": "altered", "well": "verified"}


def test_a_failed_run_whose_row_is_damaged_is_told_by_its_code() -> None:
    with SqliteMirrorState(":memory:") as state:
        row = RunRow(run="1", started=1, ended=2, mode="", outcome="dns", counts="{}")
        state.add_run(row)
        failed = read_failed(state.last_run())

    assert failed is not None
    assert (failed.code, failed.message) == ("dns", "")


def test_the_figures_for_prometheus_are_well_formed() -> None:
    listed = ListedCounts(unchanged=10, pending=10)
    asked, failed = (FailedRun(code="unavailable", retry_after=wait) for wait in (60.0, None))
    there = replace(status(MirrorState.IN_SYNC, failed_run=failed), mirror='a"b\\')
    behind = replace(status(MirrorState.BEHIND, listed=listed, failed_run=asked), mirror="c")
    mirrors = [CheckedMirror(there, 60, None), CheckedMirror(behind, None, None)]
    lines = write_metrics(mirror_metrics(mirrors, [])).decode().splitlines()

    samples = [line for line in lines if not line.startswith("#")]
    labels = r'\{mirror="(?:[^"\\]|\\.)*"(?:,state="[a-z ]+")?\}'
    assert all(re.fullmatch(rf"resourcesync_mirror_[a-z_]+{labels} [0-9.e+]+", x) for x in samples)
    assert len(set(samples)) == len(samples)
    assert 'resourcesync_mirror_state{mirror="c",state="behind"} 1' in samples
    assert 'resourcesync_mirror_state{mirror="c",state="in sync"} 0' in samples
    assert 'resourcesync_mirror_in_sync_ratio{mirror="c"} 0.5' in samples
    lags = [line for line in samples if line.startswith("resourcesync_mirror_lag_seconds")]
    assert lags == ['resourcesync_mirror_lag_seconds{mirror="a\\"b\\\\"} 60']
    waits = [line.partition("{")[2] for line in samples if "retry_after" in line]
    assert waits == ['mirror="c"} 60']
    heads = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(set(heads)) == len(heads)
