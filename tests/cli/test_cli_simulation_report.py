"""The page of a simulation: what has no figure, rows of unlike lengths, and how to do it again."""

import html
import re
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from resourcesync.cli.main import run
from resourcesync.cli.simulation.report import simulation_page
from resourcesync.simulator import scenario_files
from resourcesync.simulator.experiments import SimulationRun, Summary, summarise
from resourcesync.simulator.measures import Measurement
from resourcesync.simulator.profiles import PROFILES
from tests.support.commands.command_line import Said

WRITTEN = scenario_files.parse_scenario(PROFILES["museum"], "museum")
GOOD = Measurement(
    consistency=0.99,
    latency=600.0,
    latency_95=900.0,
    efficiency=0.5,
    requests=40,
    received=4_000,
    useful=2_000,
    changes=10,
    synchronized=9,
    pulls=5,
    failed=0,
    crashes=0,
    outcome="converged",
    first=2.0,
    first_requests=30,
    first_received=3_000,
    series=(None, *[0.99] * 199),
)
DEAD = Measurement(pulls=5, failed=5, crashes=0, outcome="waiting", series=(None,) * 200)


def rows_of(*runs: tuple[Mapping[str, str], int, Measurement]) -> list[Summary]:
    return summarise(
        [
            SimulationRun(values=values, seed=seed, destination="m", measured=measured)
            for values, seed, measured in runs
        ]
    )


def simulated_page(found: list[Summary], written: Mapping[str, Any]) -> str:
    return simulation_page(
        found, written, name="museum", when=datetime(2026, 11, 21, 15, tzinfo=UTC)
    )


def scenario_on(page: str) -> str:
    (text,) = re.findall("<pre.*?>(.*?)</pre>", page, re.DOTALL)
    return html.unescape(text)


def figures_of(page: str, title: str) -> list[str]:
    """Return what a plot with this title has in it."""
    return [
        item for item in re.findall("<svg.*?</svg>", page, re.DOTALL) if f"<title>{title}" in item
    ]


def test_a_row_that_brought_nothing_is_drawn_nowhere_and_told_as_none() -> None:
    found = rows_of(({"variant": "good"}, 1, GOOD), ({"variant": "dead"}, 1, DEAD))

    page = simulated_page(
        found, {**WRITTEN, "variant": {"good": {}, "dead": {"faults": {"lost": 1.0}}}}
    )

    for title in ("Not equal", "Latency"):
        (plot,) = figures_of(page, title)
        assert re.findall("<circle.*?<title>(.*?):", plot) == ["good"]
        assert "dead none" in plot, "said in the description"
    for title in ("Efficiency", "Requests after the first pull"):
        (plot,) = figures_of(page, title)
        assert re.findall("<rect.*?<title>(.*?):", plot) == ["good"]
    (over_time,) = figures_of(page, "Consistency over time")
    assert over_time.count("<circle") == 199


def test_means_leave_out_the_seeds_that_brought_nothing_and_say_of_how_many_they_are() -> None:
    (both,) = found = rows_of(({}, 1, GOOD), ({}, 2, DEAD), ({}, 3, GOOD))

    assert both.mean("latency") == 600.0
    assert both.mean("failed") == pytest.approx(5 / 3)
    assert both.spread("consistency") == 0.0
    assert "30 in 2.0 s, 2 of 3 seeds" in simulated_page(found, WRITTEN)
    (none,) = rows_of(({}, 2, DEAD))
    assert (none.mean("latency"), none.spread("latency")) == (None, 0.0)
    assert "never ended" in simulated_page([none], WRITTEN)


def test_rows_of_unlike_durations_are_drawn_each_on_its_own_time() -> None:
    found = rows_of(*(({"duration": name}, 1, GOOD) for name in ("6h", "48h", "360m")))

    page = simulated_page(found, WRITTEN)

    short, long = figures_of(page, "Consistency over time")
    assert [short.count("<circle"), long.count("<circle")] == [2 * 199, 199]
    last = [re.findall("<title>([0-9-]{10} [0-9:]{5})", name)[-1] for name in (short, long)]
    start = scenario_files.scenario_of(WRITTEN).start
    assert [item[:10] == f"{start:%Y-%m-%d}" for item in last] == [True, False]


def test_what_the_page_says_of_the_scenario_suffices_to_do_it_again() -> None:
    written: dict[str, Any] = {
        "seed": 3,
        "duration": "6h",
        "source": {
            "sizes": {"median": 200, "spread": 0.5},
            "media_types": ['a/b; c="d"', "c/d; e=\\f"],
            "bursts": [{"at": "20:00", "changes": 5}],
        },
        "publish": {"push": True},
        "destination": [{"name": "m", "every": "1h"}, {"name": "n", "offline": ["1h..2h"]}],
        "variant": {"plain": {}, "a b": {"publish": {"push": False}}},
    }
    values = ({"variant": "plain"}, {"variant": "a b"})

    page = simulated_page(
        rows_of(*((value, seed, GOOD) for value in values for seed in (9, 10))), written
    )

    told = scenario_on(page)
    assert tomllib.loads(told) == {**written, "seed": 9}
    assert (
        "simulate scenario.toml --seed 9 --repeat 2 --sweep 'variant=plain,a b'"
        in html.unescape(page)
    )
    assert ">9, 10</td>" in page
    many = simulated_page(rows_of(*(({}, seed, GOOD) for seed in range(9, 200))), written)
    assert ">9 to 199</td>" in many
    differing = rows_of(({"seed": "4"}, 4, GOOD), ({"seed": "6"}, 6, GOOD))
    page = html.unescape(simulated_page(differing, written))
    assert tomllib.loads(scenario_on(page)) == written
    assert "simulate scenario.toml --sweep seed=4,6<" in page
    page = html.unescape(simulated_page(rows_of(({"seed": "5"}, 5, GOOD)), written))
    assert "simulate scenario.toml --sweep seed=5<" in page, "both are refused together"


def test_small_gaps_are_told_and_drawn_where_they_are() -> None:
    near, nearer = (replace(GOOD, consistency=1 - gap) for gap in (3.4e-5, 2.43e-7))
    far = replace(near, consistency=1 - 3.6e-5, latency=1_800.0)
    found = rows_of(
        ({"variant": "a"}, 1, near), ({"variant": "b"}, 1, nearer), ({"variant": "a"}, 2, far)
    )

    page = simulated_page(found, {**WRITTEN, "variant": {"a": {}, "b": {}}})

    assert ">0.999965 ± 0.000001<" in page
    assert ">0.99999976<" in page
    assert ">20 min ± 10 min / 15 min<" in page, "how far the seeds differ"
    (plot,) = figures_of(page, "Not equal")
    assert "0.0000243 %" in plot
    places = [float(item) for item in re.findall('<circle[^>]* cx="([0-9.]+)"', plot)]
    begin = min(float(item) for item in re.findall('<line x1="([0-9.]+)"', plot))
    assert places[1] > begin, "not at the edge of the scale"


def test_a_report_has_the_name_of_its_scenario_and_the_time_of_its_simulation() -> None:
    page = simulated_page(rows_of(({}, 1, GOOD)), WRITTEN)

    assert "<title>Simulation of museum | resourcesync</title>" in page
    assert "<h1>Simulation of museum</h1>" in page
    assert "Simulated 2026-11-21 15:00:00Z." in page


def test_a_seed_given_on_the_command_line_is_the_one_on_the_page(tmp_path: Path) -> None:
    path, out = tmp_path / "s.toml", tmp_path / "out"
    path.write_text('seed = 3\nduration = "1h"\nsource.resources = 5\npublish.every = "10m"')

    assert run(["simulate", str(path), "-q", "--seed", "9", "--jobs", "1", "--out", str(out)]) == 0

    page = (out / "report.html").read_text()
    again = tomllib.loads(scenario_on(page))
    assert again["seed"] == 9
    path.write_text(scenario_on(page))
    assert run(["simulate", str(path), "-q", "--jobs", "1", "--out", str(tmp_path / "two")]) == 0
    first, second = ((path / "summary.csv").read_text() for path in (out, tmp_path / "two"))
    assert first == second


def test_a_figure_that_there_is_not_is_empty_in_the_table(tmp_path: Path, said: Said) -> None:
    path, out = tmp_path / "s.toml", tmp_path / "out"
    path.write_text(
        'duration = "1h"\nsource.resources = 5\ndestination = [{every = "30m"}]\nfaults.lost = 1.0'
    )

    assert run(["simulate", str(path), "--out", str(out)]) == 0

    (told,) = (
        splitline.split()
        for splitline in said.readouterr().out.splitlines()
        if splitline.startswith("mirror")
    )
    assert told == ["mirror", "-", "-", "/", "-", "-", "-", "never", "ended", "converged"]
    heads, row = (
        splitline.split(",") for splitline in (out / "summary.csv").read_text().splitlines()
    )
    empty = {name for name, value in zip(heads, row, strict=True) if not value}
    assert {"consistency", "latency", "efficiency", "requests", "first", "first_requests"} <= empty
    assert not {"pulls", "failed", "outcome"} & empty
