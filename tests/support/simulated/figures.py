"""What came of a simulated run: its events, and its figures where there are some."""

from collections.abc import Mapping
from typing import Any

from resourcesync_simulator.measures import Measurement
from resourcesync_simulator.scenario import Scenario
from resourcesync_simulator.simulation import simulate

Event = tuple[float, str, Mapping[str, Any]]


def lived(scenario: Scenario) -> tuple[list[Event], Measurement]:
    events: list[Event] = []
    measured = simulate(
        scenario, scenario.destinations[0], lambda at, name, more: events.append((at, name, more))
    )
    return events, measured


def known(figure: float | None) -> float:
    assert figure is not None
    return figure
