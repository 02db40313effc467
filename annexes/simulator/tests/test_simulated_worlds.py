"""Simulated worlds: the same seed is the same life, nobody lies, and all ends in step."""

import pytest
from msgspec.structs import replace

from campaigns.cursor import scenario_of
from resourcesync.errors import ConfigurationError
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


@pytest.mark.parametrize(
    "wrong",
    [
        replace(SMALL, origin=OriginSettings(resources=0)),
        replace(SMALL, publish=PublishSettings(every=0)),
        replace(SMALL, destinations=()),
        replace(SMALL, duration=-1),
        replace(SMALL, faults=Faults(lost=1.5)),
    ],
)
def test_what_cannot_be_simulated_is_refused(wrong: Scenario) -> None:
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
