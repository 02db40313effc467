"""``simulate``: scenarios to begin with, sweeps, files, and the same again for the same seed."""

import gzip
import json
from pathlib import Path

import pytest

from resourcesync.cli.main import run
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
        ("[faults]\nlost = 2", "faults.lost is wrong: expected `float` <= 1"),
        ('[publish]\nstrategy = "hope"', "publish.strategy is wrong"),
        ('[[destination]]\ndumps = "yes"', "destination[0].dumps is wrong"),
        ("[publish]\ndumps = 1", "publish.dumps is wrong"),
        ("[publish]\nmax_package = 0", "publish.max_package is wrong"),
        ("variant = 1", "variant must be a table"),
        ("[variant]\nx = 1", "x must be a table"),
        (
            "[variant.x]\npublish.ever = 1",
            "variant x: the scenario has an unknown key publish.ever",
        ),
        ("destination = 3", "destination is wrong: expected `array`"),
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


def test_a_folder_that_has_something_is_left_alone(scenario: Path, tmp_path: Path) -> None:
    assert run(["simulate", str(scenario), "--out", str(tmp_path)]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.toml"]
