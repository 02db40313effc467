"""Dumps in simulated worlds: real packages of made-up bytes, taken where that is cheaper."""

import pytest
from msgspec.structs import replace

from resourcesync_simulator.scenario import (
    DAY,
    HOUR,
    DestinationSettings,
    Faults,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
)
from resourcesync_simulator.simulation import simulate
from tests.support.simulated.figures import known

DUMPED = Scenario(
    duration=DAY / 4,
    origin=OriginSettings(
        resources=100, per_second=20 / HOUR, sizes=Sizes(median=200, spread=1.0, most=9_000)
    ),
    publish=PublishSettings(every=HOUR, rebase=DAY / 8, dumps=True, dump_every=2 * HOUR),
)
WITHOUT = replace(DUMPED, publish=replace(DUMPED.publish, dumps=False))


def test_who_takes_dumps_begins_with_few_requests_and_has_the_same() -> None:
    often = DestinationSettings(dumps="always")
    dumped, singly = simulate(DUMPED, often), simulate(WITHOUT, often)
    never = simulate(DUMPED, replace(often, dumps="never"))

    assert known(singly.first_requests) > 100
    assert known(dumped.first_requests) < 20
    assert never.first_requests == singly.first_requests
    assert known(dumped.requests) < known(never.requests)
    assert {measurement.outcome for measurement in (dumped, singly, never)} == {"converged"}
    assert dumped.lies == 0


def test_by_itself_a_destination_begins_with_a_dump_and_asks_for_a_few_changes_singly() -> None:
    chosen = simulate(DUMPED, DestinationSettings())
    gone = simulate(DUMPED, DestinationSettings(offline=((HOUR, 5 * HOUR),)))

    assert known(chosen.first_requests) < 20
    assert known(gone.requests) < known(chosen.requests) / 2, (
        "what was missed for long comes in packages"
    )
    assert gone.outcome == chosen.outcome == "converged"


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_goes_wrong_with_dumps_nobody_lies_and_all_ends_in_step(seed: int) -> None:
    faults = Faults(
        lost=0.03,
        failed=0.03,
        cut=0.1,
        altered=0.1,
        stale=0.1,
        wrong_hash=0.05,
        changed_while_listed=0.05,
        crash=0.01,
        restarts=(DAY * 0.1,),
        rollbacks=((DAY * 0.2, 2 * HOUR),),
        clock_steps=((DAY * 0.15, -2_000.0),),
    )
    origin = replace(DUMPED.origin, resources=40)
    publish = replace(DUMPED.publish, dump_every=HOUR, max_package=4_000)
    scenario = replace(DUMPED, seed=seed, origin=origin, publish=publish, faults=faults)

    measured = simulate(scenario, DestinationSettings(dumps="always"))

    assert (measured.lies, measured.outcome) == (0, "converged")
