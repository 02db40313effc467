"""Each fault of a scenario: it happens, it is told, and nobody lies."""

from typing import Any, NoReturn

import pytest
from msgspec.structs import fields, replace

from campaigns.cursor import world_of
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import StateTransaction
from resourcesync_simulator.faults import FaultInjector
from resourcesync_simulator.scenario import (
    HOUR,
    DestinationSettings,
    Faults,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
)
from resourcesync_simulator.simulation import simulate
from tests.support.simulated.figures import lived

SMALL = Scenario(
    duration=6 * HOUR,
    origin=OriginSettings(
        resources=8, per_second=6 / HOUR, sizes=Sizes(median=200, spread=1.0, most=2_000)
    ),
    publish=PublishSettings(every=HOUR / 2, rotate=HOUR, rebase=3 * HOUR, push=True),
    destinations=(DestinationSettings(every=HOUR / 4),),
)
MOMENTS = {
    "outages": ((HOUR, 2 * HOUR),),
    "storms": ((HOUR, 2 * HOUR),),
    "disk_full": ((HOUR, 2 * HOUR),),
    "source_disk_full": ((HOUR, 2 * HOUR),),
    "clock_steps": ((HOUR, -900.0),),
    "restarts": (HOUR,),
    "rollbacks": ((4 * HOUR, 2 * HOUR),),
}
RATES = {"push_forged": 0.9, "crash_writing": 0.05}
OWN_EVENTS = {"clock_steps": "clock step", "restarts": "restart", "rollbacks": "set back"}


@pytest.mark.parametrize("fault", [field.name for field in fields(Faults)])
def test_each_fault_happens_is_told_and_makes_nobody_lie(fault: str) -> None:
    chosen: dict[str, Any] = {fault: MOMENTS.get(fault, RATES.get(fault, 0.3))}
    events, measured = lived(replace(SMALL, faults=Faults(**chosen)))

    told = {more["kind"] for _, name, more in events if name == "fault"}
    told |= {key for key, name in OWN_EVENTS.items() if name in {event[1] for event in events}}
    assert told == {fault}
    assert (measured.lies, measured.outcome) == (0, "converged")


def test_a_source_can_be_set_back_twice_also_to_moments_before_the_first_time() -> None:
    chosen = Faults(rollbacks=((4 * HOUR, HOUR), (4.5 * HOUR, 2 * HOUR)))
    events, measured = lived(replace(SMALL, faults=chosen))

    assert [round(at / HOUR, 1) for at, name, _ in events if name == "set back"] == [4.0, 4.5]
    assert (measured.lies, measured.outcome) == (0, "converged")


@pytest.mark.parametrize("seed", [30001, 30012, 42133, 56504, 62229, 66885, 103040])
def test_with_all_faults_at_once_both_sides_end_in_step(seed: int) -> None:
    scenario = world_of(seed)

    measured = simulate(scenario, scenario.destinations[0])

    assert (measured.lies, measured.outcome) == (0, "converged")


@pytest.mark.parametrize(
    ("fault", "rate"), [("crash", 0.05), ("crash_writing", 0.05), ("power_cut", 0.4)]
)
def test_who_is_dead_does_nothing_more(
    fault: str, rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths, stored = list[float](), list[int]()
    die, commit, begin = FaultInjector.die, SqliteMirrorState.commit, FaultInjector.revive

    def dying(self: FaultInjector, kind: str, what: str) -> NoReturn:
        deaths.append(len(stored))
        die(self, kind, what)

    def committing(self: SqliteMirrorState, step: StateTransaction) -> None:
        stored.append(1)
        commit(self, step)

    def beginning(self: FaultInjector) -> None:
        assert len(stored) == deaths[-1], "nothing is written down on the way up"
        begin(self)

    monkeypatch.setattr(FaultInjector, "die", dying)
    monkeypatch.setattr(FaultInjector, "revive", beginning)
    monkeypatch.setattr(SqliteMirrorState, "commit", committing)
    chosen: dict[str, Any] = {fault: rate}
    events, measured = lived(replace(SMALL, faults=Faults(**chosen)))

    told = [mapping for _, name, mapping in events if name == "fault"]
    died = [
        mapping for _, name, mapping in events if name == "pull" and mapping.get("error") == "died"
    ]
    assert len(told) == len(died) == measured.crashes == len(deaths) > 0, "one fault for each death"
    assert all(mapping["what"] not in ("", "0 copies") for mapping in told)


def test_a_notification_that_comes_while_nobody_is_there_changes_nothing() -> None:
    away = DestinationSettings(every=2 * HOUR, offline=((HOUR, 3 * HOUR),))
    quiet = replace(SMALL, publish=replace(SMALL.publish, push=False))

    def pulls(scenario: Scenario) -> list[float]:
        events, _ = lived(replace(scenario, destinations=(away,)))
        return [at / HOUR for at, name, _ in events if name == "pull" and at > 3 * HOUR]

    assert pulls(SMALL)[0] <= pulls(quiet)[0]
    assert pulls(quiet)[0] == pytest.approx(4, abs=0.01)
