"""Simulated worlds: the same seed is the same life, each fault happens, and nobody lies."""

from typing import Any, NoReturn

import pytest
from msgspec.structs import fields, replace

from campaigns.cursor import scenario_of, world_of
from resourcesync.errors import ConfigurationError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import StateTransaction
from resourcesync_simulator.faults import FaultInjector
from resourcesync_simulator.scenario import (
    DAY,
    HOUR,
    Burst,
    DestinationSettings,
    Faults,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
)
from resourcesync_simulator.simulation import simulate
from tests.support.simulated.figures import Event, known, lived

ALL_FAULTS = Faults(
    lost=0.02,
    refused=0.02,
    failed=0.02,
    late=0.02,
    cut=0.02,
    altered=0.02,
    stale=0.05,
    wrong_hash=0.01,
    undated=0.05,
    changed_while_listed=0.03,
    crash=0.002,
    outages=((DAY / 2, DAY / 2 + 2 * HOUR),),
    clock_steps=((DAY * 0.3, -3_000.0), (DAY * 0.4, 6_000.0)),
    restarts=(DAY * 0.5,),
    rollbacks=((DAY * 0.8, 5 * HOUR),),
    push_lost=0.1,
    push_doubled=0.1,
    push_forged=0.1,
)
TINY = Sizes(median=200, spread=1.0, most=2_000)
SMALL = Scenario(
    duration=DAY,
    origin=OriginSettings(resources=40, per_second=15 / HOUR, sizes=TINY),
    publish=PublishSettings(
        every=HOUR / 2, rotate=2 * HOUR, rebase=DAY / 2, keep=DAY / 2, max_entries=50
    ),
)


@pytest.mark.founding("WWW §1", "A simulator, for tests", "`simulate`")
def test_the_same_seed_is_the_same_life_and_another_seed_another_one() -> None:
    scenario = replace(SMALL, duration=DAY / 8, faults=replace(ALL_FAULTS, crash=0.02))

    assert lived(scenario) == lived(scenario)
    assert lived(scenario)[0] != lived(replace(scenario, seed=2))[0]


def test_what_happens_at_the_source_does_not_depend_on_who_follows() -> None:
    def origin(scenario: Scenario) -> list[Event]:
        return [item for item in lived(scenario)[0] if item[1] == "change"]

    quick, slow = DestinationSettings(every=600), DestinationSettings(every=6 * HOUR, latency=2)

    scenario = replace(SMALL, duration=DAY / 4)

    assert origin(replace(scenario, destinations=(quick,))) == origin(
        replace(scenario, destinations=(slow,))
    )


@pytest.mark.founding(
    "D-Lib §3", "DBpedia Live: push lowers latency; by how much is measured", "`simulate`"
)
def test_notifications_bring_changes_at_once() -> None:
    publish = replace(SMALL.publish, every=60.0, push=True)
    scenario = replace(SMALL, duration=DAY / 6, publish=publish)

    pushed = simulate(scenario, DestinationSettings(every=2 * HOUR))
    polled = simulate(
        replace(scenario, publish=replace(publish, push=False)), DestinationSettings()
    )

    assert known(pushed.latency) < 90 < known(polled.latency)
    assert known(pushed.consistency) > known(polled.consistency)


@pytest.mark.founding(
    "WWW §2.1", "arXiv: changes appear at 8 pm Eastern, Sunday to Thursday", "`simulate arxiv`"
)
def test_daily_lists_are_read_whole_and_bursts_come_at_their_hour() -> None:
    burst = Burst(at=20 * HOUR, zone="America/New_York", days=frozenset({6, 0, 1}), changes=7)
    scenario = replace(
        SMALL,
        duration=3 * DAY,
        origin=OriginSettings(resources=40, bursts=(burst,)),
        publish=PublishSettings(strategy="lists", every=DAY),
    )
    events, _ = lived(scenario)
    changes = [at for at, name, _ in events if name == "change"]

    # The first day is a Sunday; 20:00 in New York is 01:00 UTC of the next day, 13 hours later.
    assert sorted(set(changes)) == [13 * HOUR, 37 * HOUR, 61 * HOUR]
    assert len(changes) == 21
    pulls = [more for _, name, more in events if name == "pull"]
    assert {pull["mode"] for pull in pulls} <= {"baseline", "unchanged"}


def test_what_cannot_be_simulated_is_refused() -> None:
    for wrong in (replace(SMALL, destinations=()), replace(SMALL, faults=Faults(lost=1.5))):
        with pytest.raises(ConfigurationError):
            simulate(wrong, DestinationSettings())


# Lives of the campaign. What a Source that was set back took back stayed: further changes, or other
# lists, soon hid it.
SET_BACK = [2030, 5029, 5040, 5109, 14354]
# Old copies of lists were not noticed each time: of such a Source, and of changes without times.
OLD_COPIES = [2994, 7026, 2149, 10095, 11225, 20362]
# `in sync` came too early: the clock of the resources was ahead of that of the lists (10163); an
# old copy of an open list had the last word (10525), and one of an index called a list open that
# had ended (10554).
UNDATED = [10163, 10525, 10554, 30162]


# The journeys have such faults in their smallest forms: one life or two of each kind do by day.
DAILY = (SET_BACK[0], OLD_COPIES[0], *UNDATED[:2])


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=() if seed in DAILY else pytest.mark.night)
        for seed in (*SET_BACK, *OLD_COPIES, *UNDATED)
    ],
)
def test_lives_in_which_a_mirror_lied_once_end_in_step(seed: int) -> None:
    scenario = scenario_of(seed)

    measured = simulate(scenario, scenario.destinations[0])

    assert (measured.lies, measured.outcome) == (0, "converged")


BRIEF = Scenario(
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
    events, measured = lived(replace(BRIEF, faults=Faults(**chosen)))

    told = {more["kind"] for _, name, more in events if name == "fault"}
    told |= {key for key, name in OWN_EVENTS.items() if name in {event[1] for event in events}}
    assert told == {fault}
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
    events, measured = lived(replace(BRIEF, faults=Faults(**chosen)))

    told = [mapping for _, name, mapping in events if name == "fault"]
    died = [
        mapping for _, name, mapping in events if name == "pull" and mapping.get("error") == "died"
    ]
    assert len(told) == len(died) == measured.crashes == len(deaths) > 0, "one fault for each death"
    assert all(mapping["what"] not in ("", "0 copies") for mapping in told)


def test_a_notification_that_comes_while_nobody_is_there_changes_nothing() -> None:
    away = DestinationSettings(every=2 * HOUR, offline=((HOUR, 3 * HOUR),))
    quiet = replace(BRIEF, publish=replace(BRIEF.publish, push=False))

    def pulls(scenario: Scenario) -> list[float]:
        events, _ = lived(replace(scenario, destinations=(away,)))
        return [at / HOUR for at, name, _ in events if name == "pull" and at > 3 * HOUR]

    assert pulls(BRIEF)[0] <= pulls(quiet)[0]
    assert pulls(quiet)[0] == pytest.approx(4, abs=0.01)


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
    faults = replace(
        ALL_FAULTS,
        cut=0.1,
        altered=0.1,
        outages=(),
        restarts=(DAY * 0.1,),
        rollbacks=((DAY * 0.2, 2 * HOUR),),
        clock_steps=((DAY * 0.15, -2_000.0),),
    )
    origin = replace(DUMPED.origin, resources=40)
    publish = replace(DUMPED.publish, dump_every=HOUR, max_package=4_000)
    scenario = replace(DUMPED, seed=seed, origin=origin, publish=publish, faults=faults)

    measured = simulate(scenario, DestinationSettings(dumps="always"))

    assert (measured.lies, measured.outcome) == (0, "converged")
