"""``simulate``: sweeps, files, the same again for the same seed; refusals, and stops."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from resourcesync.errors import ConfigurationError
from resourcesync_simulator import experiments, scenario_files
from tests.support.commands.command_line import Said

SMALL = """
seed = 3
duration = "3h"
[source]
resources = 30
changes = "20/h"
sizes = { median = 200, most = 2000 }
[publish]
every = "10m"
[[destination]]
name = "quick"
every = "10m"
"""
LONG = """
duration = "3000d"
[source]
resources = 50
changes = "60/h"
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "s.toml"
    path.write_text(SMALL)
    return path


def test_a_sweep_takes_all_values_and_writes_what_came_of_them(
    scenario: Path, tmp_path: Path, said: Said
) -> None:
    sweep = ["--sweep", "publish.every=10m,2h", "--repeat", "2", "--jobs", "1"]

    assert run(["simulate", str(scenario), *sweep, "--out", str(tmp_path / "out")]) == 0

    lines = said.readouterr().out.splitlines()
    heads = next(place for place, line in enumerate(lines) if line.startswith("EVERY"))
    often, seldom = (line.split() for line in lines[heads + 1 : heads + 3])
    assert (often[0], seldom[0]) == ("10m", "2h")
    assert float(often[2]) > float(seldom[2]), "who publishes more often is nearer"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "events.ndjson.gz",
        "summary.csv",
    }
    table = (tmp_path / "out/summary.csv").read_text().splitlines()
    assert table[0].startswith("publish.every,seed,destination,consistency,")
    assert [line.split(",")[:2] for line in table[1:]] == [
        ["10m", "3"],
        ["10m", "4"],
        ["2h", "3"],
        ["2h", "4"],
    ]


def test_the_same_seed_gives_the_same_events_byte_for_byte(scenario: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        assert run(["simulate", str(scenario), "-q", "--out", str(tmp_path / name)]) == 0

    path, other = (tmp_path / name / "events.ndjson.gz" for name in ("one", "other"))
    assert path.read_bytes() == other.read_bytes()
    events = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert events[0]["event"] == "run.begin"
    assert events[-1]["event"] == "run.end"
    assert {"change", "publish", "pull"} <= {event["event"] for event in events}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("duration = 7", ""),
        ("[source]\nresource = 3", "unknown key source.resource"),
        ('[publish]\nevery = "soon"', "publish.every is wrong"),
        ('[faults]\noutages = ["2d"]', "faults.outages is wrong"),
        ('[[destination]]\ndumps = "yes"', "destination[0].dumps is wrong"),
        ("variant = 1", "variant must be a table"),
        ("[variant]\nx = 1", "x must be a table"),
        (
            "[variant.x]\npublish.ever = 1",
            "variant x: the scenario has an unknown key publish.ever",
        ),
        ("seed = ", "is not TOML"),
    ],
)
def test_a_scenario_with_a_mistake_says_which(
    text: str, reason: str, tmp_path: Path, said: Said
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)

    code = run(["simulate", str(path)])

    assert code == (0 if not reason else 2)
    assert reason in said.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["init", "museumm"], "there is no profile 'museumm'"),
        (["s.toml", "arxiv"], "a second name is for init"),
        (["s.toml", "--sweep", "seed=1,2", "--seed", "7"], "--sweep seed=... and --seed"),
        (["s.toml", "--sweep", "seed=1,2", "--repeat", "2"], "--repeat uses the following seeds"),
        (
            ["s.toml", "--sweep", "publish.every=1h", "--sweep", "publish.every=2h"],
            "every is given twice",
        ),
        (["s.toml", "--sweep", "publish.every=1h, 1h"], "has the value 1h twice"),
        (["s.toml", "--sweep", "publish.every"], "KEY=A,B,C"),
        (["s.toml", "--sweep", 'destination=[{name="x"}]'], "destinations cannot be swept"),
        (["s.toml", "--sweep", "faults.outages=['3m-4m']"], 'such as ["2d..5d"]'),
        (["s.toml", "--sweep", "fault.lost=1"], "did you mean faults? known here: destination"),
        (["init", "--json"], "init writes a scenario to standard output"),
        (["s.toml", "--sweep", "start='02.03.2026'"], 'such as "2026-01-04T12:00:00Z"'),
        (["museumm"], "no file museumm, and no profile of that name"),
        (["s.toml", "--sweep", "seed=1,2", "--sweep", "variant=a"], "has no variant 'a'"),
    ],
)
def test_what_makes_no_sense_is_refused_as_a_matter_of_usage(
    arguments: list[str], reason: str, scenario: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scenario.parent)

    assert run(["simulate", *arguments]) == 2

    told = said.readouterr()
    assert reason in " ".join((told.err + told.out).split())
    assert "Ran" not in told.out + told.err


def test_a_mistake_in_the_last_variant_is_told_before_anything_is_done(
    scenario: Path, tmp_path: Path, said: Said
) -> None:
    burst = '[{ at = "12:00", changes = 1, zone = "Mars/Olympus" }]'
    sweep = ["--sweep", f"source.bursts=[],{burst}", "--out", str(tmp_path / "out")]

    assert run(["simulate", str(scenario), *sweep]) == 2

    told = said.readouterr()
    assert "no time zone 'Mars/Olympus'" in told.err
    assert "source.bursts=[{" in told.err, "which of the runs"
    assert "Ran" not in told.out + told.err
    assert not (tmp_path / "out").exists()


def test_more_runs_than_can_be_kept_are_refused() -> None:
    written = scenario_files.parse_scenario(SMALL, "it")
    with pytest.raises(ConfigurationError, match="these are 110,000 runs"):
        experiments.plan_runs(written, {"publish.every": ["1h"] * 11}, repeat=10_000)


def test_results_never_join_others(scenario: Path, tmp_path: Path, said: Said) -> None:
    out = tmp_path / "out"
    out.mkdir()
    assert run(["simulate", str(scenario), "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["events.ndjson.gz", "summary.csv"]
    assert run(["simulate", str(scenario), "--out", str(out)]) == 2
    assert "found  events.ndjson.gz, summary.csv" in said.readouterr().err


def workers_of(pid: int) -> set[int]:
    """Return the processes that another one began to simulate in; ended ones have no words."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    return {int(name) for name in found if "spawn_main" in words_of(int(name))}


def words_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8")
    except OSError:
        return ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_all_processes_at_once_and_leaves_nothing(
    number: signal.Signals, tmp_path: Path
) -> None:
    path, out = tmp_path / "s.toml", tmp_path / "out"
    path.write_text(LONG)
    command = [sys.executable, "-m", "resourcesync", "simulate", str(path), "--jobs", "2"]
    process = subprocess.Popen(
        [*command, "--repeat", "4", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        deadline = time.monotonic() + 30
        while len([*tmp_path.glob(".out-*/events/*")]) < 2:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        workers = workers_of(process.pid)
        began = time.monotonic()
        if number is signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        told, _ = process.communicate(timeout=10)
        assert time.monotonic() - began < 8  # seconds; the simulation would take minutes
    finally:
        process.kill()
    assert process.returncode == (130 if number is signal.SIGINT else 143)
    assert "Traceback" not in told
    assert "Stopped" in told
    assert len(workers) == 2
    assert not [pid for pid in workers if words_of(pid)]
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]
