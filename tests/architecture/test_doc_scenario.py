"""The page on scenarios is complete: every event and its fields."""

import ast
from pathlib import Path
from typing import Any

from docs.scenario_events import EVENTS
from msgspec.structs import replace

from resourcesync_simulator.scenario import HOUR, Faults, OriginSettings, Scenario, Sizes
from resourcesync_simulator.simulation import simulate

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "annexes/simulator/scenarios.md").read_text("utf-8")
SIMULATOR = ROOT / "annexes/simulator/src/resourcesync_simulator"


def test_every_event_that_the_code_can_tell_of_is_explained_and_no_other() -> None:
    told = {"run.begin", "run.end"}
    for path in SIMULATOR.glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "self._event":
                name = call.args[0]
                assert isinstance(name, ast.Constant)
                told.add(str(name.value))

    assert told == set(EVENTS)
    assert all(f"\n### {name}\n" in PAGE for name in told)


def test_events_have_the_fields_that_are_explained() -> None:
    scenario = Scenario(
        duration=4 * HOUR,
        origin=OriginSettings(
            resources=5, per_second=5 / HOUR, sizes=Sizes(median=50, spread=0.5, most=100)
        ),
        faults=Faults(
            failed=0.2,
            clock_steps=((HOUR, 5.0),),
            restarts=(1.5 * HOUR,),
            rollbacks=((2.2 * HOUR, HOUR),),
        ),
    )
    scenario = replace(scenario, publish=replace(scenario.publish, every=HOUR / 2))
    seen: dict[str, list[dict[str, Any]]] = {}
    simulate(
        scenario,
        scenario.destinations[0],
        lambda _at, name, more: seen.setdefault(name, []).append(dict(more)),
    )

    assert set(EVENTS) - set(seen) <= {"run.begin", "run.end", "lie"}
    for name, told in seen.items():
        event = EVENTS[name]
        for names in told:
            assert set(event.always) <= set(names) <= {*event.always, *event.sometimes}, name
