"""The page of a simulation: what has no figure, rows of unlike lengths, and how to do it again."""

import html
import re
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from resourcesync.cli.simulation.report import simulation_page
from resourcesync.simulator import scenario_files
from resourcesync.simulator.experiments import SimulationRun, Summary, summarise
from resourcesync.simulator.measures import Measurement
from resourcesync.simulator.profiles import PROFILES

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
