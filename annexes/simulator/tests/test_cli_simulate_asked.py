"""``simulate``: what is asked for is done, or refused before anything is; stops leave nothing."""

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

TINY = """
seed = 3
duration = "20m"
[source]
resources = 4
changes = "20/h"
sizes = { median = 200, most = 2000 }
[publish]
every = "10m"
[[destination]]
every = "10m"
"""
LONG = """
duration = "3000d"
[source]
resources = 50
changes = "60/h"
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "s.toml"
    path.write_text(TINY)
    return path


# --- which scenario ---


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["init", "museumm"], "there is no profile 'museumm'"),
        (["s.toml", "arxiv"], "a second name is for init"),
        (["init", "--json"], "init writes a scenario to standard output"),
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
        (["s.toml", "--sweep", "start='02.03.2026'"], 'such as "2026-01-04T12:00:00Z"'),
        (["s.toml", "--sweep", "faults.outages=['4m..3m']"], "outages must begin before it ends"),
        (["s.toml", "--sweep", "publish.every=1h,"], "KEY=A,B,C"),
        (["museumm"], "no file museumm, and no profile of that name"),
        (["s.toml", "--sweep", "seed=1,2", "--sweep", "variant=a"], "has no variant 'a'"),
    ],
)
def test_what_makes_no_sense_is_refused_as_a_matter_of_usage(
    arguments: list[str],
    reason: str,
    tiny: Path,
    said: Said,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tiny.parent)

    assert run(["simulate", *arguments]) == 2

    told = said.readouterr()
    assert reason in " ".join((told.err + told.out).split())
    assert "Ran" not in told.out + told.err


# --- sweeps ---


def test_a_mistake_in_the_last_variant_is_told_before_anything_is_done(
    tiny: Path, tmp_path: Path, said: Said
) -> None:
    burst = '[{ at = "12:00", changes = 1, zone = "Mars/Olympus" }]'
    sweep = ["--sweep", f"source.bursts=[],{burst}", "--out", str(tmp_path / "out")]

    assert run(["simulate", str(tiny), *sweep]) == 2

    told = said.readouterr()
    assert "no time zone 'Mars/Olympus'" in told.err
    assert "source.bursts=[{" in told.err, "which of the runs"
    assert "Ran" not in told.out + told.err
    assert not (tmp_path / "out").exists()


def test_more_runs_than_can_be_kept_are_refused() -> None:
    written = scenario_files.parse_scenario(TINY, "it")
    with pytest.raises(ConfigurationError, match="these are 110,000 runs"):
        experiments.plan_runs(written, {"publish.every": ["1h"] * 11}, repeat=10_000)


# --- the folder of the results ---


def test_results_never_join_others(tiny: Path, tmp_path: Path, said: Said) -> None:
    out = tmp_path / "out"
    out.mkdir()
    assert run(["simulate", str(tiny), "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["events.ndjson.gz", "summary.csv"]
    assert run(["simulate", str(tiny), "--out", str(out)]) == 2
    assert "found  events.ndjson.gz, summary.csv" in said.readouterr().err


# --- stops ---


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
