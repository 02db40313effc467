"""``status`` for programs that watch: one line for Nagios, figures for Prometheus, the order."""

import re
from datetime import UTC, datetime

import pytest

from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.main import run
from resourcesync.cli.output import Problem
from resourcesync.cli.render.status_formats import (
    CheckedMirror,
    UnreadableMirror,
    nagios_line,
    prometheus_lines,
)
from resourcesync.destination.reports import MirrorState, MirrorStatus
from resourcesync.settings.mirror import FreshnessSettings
from tests.support.commands.command_line import FILES, LATER, Said
from tests.support.servers.tiny_source import TinySource

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def seen(name: str, state: MirrorState, lag: float | None = 60, **more: float) -> CheckedMirror:
    status = MirrorStatus(
        folder=name,
        source="https://museum.example/",
        state=state,
        resources=10,
        pending=int(more.get("pending", 0)),
        as_of=NOON,
    )
    return CheckedMirror(status, lag, FreshnessSettings(max_lag=more.get("max_lag")))


IN_SYNC = MirrorState.IN_SYNC


@pytest.mark.parametrize(
    ("mirrors", "unknown", "word", "code", "names"),
    [
        ([seen("a", IN_SYNC)], 0, "OK", 0, "1 of 1 in sync"),
        ([seen("a", IN_SYNC, max_lag=60)], 0, "OK", 0, "1 of 1 in sync"),
        ([seen("a", IN_SYNC, max_lag=59)], 0, "WARNING", 1, "0 of 1 in sync, a late by 1 min"),
        ([seen("a", IN_SYNC, None, max_lag=9)], 0, "WARNING", 1, "0 of 1 in sync, a late"),
        ([seen("a", MirrorState.BEHIND)], 0, "WARNING", 1, "0 of 1 in sync, a behind"),
        ([seen("a", MirrorState.NEW)], 0, "WARNING", 1, "0 of 1 in sync, a new"),
        ([seen("a", MirrorState.FAILING)], 0, "CRITICAL", 2, "0 of 1 in sync, a failing"),
        (
            [seen("a", MirrorState.BEHIND), seen("b", MirrorState.STOPPED), seen("c", IN_SYNC)],
            1,
            "CRITICAL",
            2,
            "1 of 4 in sync, b stopped, a behind, u cannot be read: damaged",
        ),
        ([seen("a", IN_SYNC)], 1, "UNKNOWN", 3, "1 of 2 in sync, u cannot be read: damaged"),
        (
            [seen("a", MirrorState.BEHIND)],
            1,
            "UNKNOWN",
            3,
            "0 of 2 in sync, a behind, u cannot be read: damaged",
        ),
        ([], 0, "UNKNOWN", 3, "0 of 0 in sync"),
    ],
)
def test_a_line_of_a_plug_in_names_what_is_wrong(
    mirrors: list[CheckedMirror], unknown: int, word: str, code: int, names: str
) -> None:
    problem = Problem(code="state", message="damaged", exit=ExitCode.LOCAL)
    line, exit_code = nagios_line(mirrors, [UnreadableMirror("u", problem)] * unknown)

    assert exit_code == code
    assert line.partition(" | ")[0] == f"RESOURCESYNC {word} - {names}"


def test_the_figures_of_a_plug_in_can_be_drawn() -> None:
    line, _ = nagios_line([seen("it's", IN_SYNC, 61.4, max_lag=3600, pending=2)], [])

    assert line.partition(" | ")[2] == "'it_s lag'=61s;3600 'it_s failing'=2"


def test_the_figures_for_prometheus_are_well_formed() -> None:
    lines = prometheus_lines(
        [seen('a"b\\', IN_SYNC), seen("c", MirrorState.BEHIND, None, pending=10)]
    )

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


def test_nothing_is_no_figure() -> None:
    assert prometheus_lines([]) == []


def test_status_speaks_to_programs_that_watch(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])
    source.offer({**FILES, "/new.txt": b"new"}, at=LATER)
    del source.answers["/new.txt"]
    run(["pull", source.url, "late"])
    said.readouterr()

    assert run(["status", "museum", "--format", "nagios"]) == 0
    fine = said.readouterr().out
    assert run(["status", "museum", "--format", "nagios", "--max-lag", "0s"]) == 1
    assert run(["status", "--format", "nagios"]) == 1
    both = said.readouterr().out.splitlines()[-1]
    assert run(["status", "--format", "prom"]) == 0
    figures = said.readouterr().out

    assert fine.startswith("RESOURCESYNC OK - 1 of 1 in sync | 'museum lag'=")
    assert len(fine.splitlines()) == 1
    assert both.startswith("RESOURCESYNC WARNING - 1 of 2 in sync, late behind | ")
    assert 'resourcesync_mirror_pending_resources{mirror="late"} 1\n' in figures


def test_a_mirror_that_cannot_be_read_is_unknown(source: TinySource, said: Said) -> None:
    run(["pull", source.url, "museum"])
    said.readouterr()

    assert run(["status", "museum", "no-mirror", "--format", "nagios"]) == 3

    line = said.readouterr().out
    assert line.startswith("RESOURCESYNC UNKNOWN - 1 of 2 in sync, no-mirror cannot be read: ")


@pytest.mark.parametrize(
    ("order", "names"),
    [("name", ["a", "b"]), ("failing", ["b", "a"]), ("state", ["b", "a"]), ("lag", ["b", "a"])],
)
def test_the_table_is_in_the_order_that_is_asked_for(
    order: str, names: list[str], source: TinySource, said: Said
) -> None:
    run(["pull", source.url, "a"])
    source.offer({**FILES, "/new.txt": b"new"}, at=LATER)
    del source.answers["/new.txt"]
    run(["pull", source.url, "b"])
    said.readouterr()

    assert run(["status", "--sort", order]) == 0

    table = said.readouterr().out.splitlines()[1:3]
    assert [line.split()[0] for line in table] == names
