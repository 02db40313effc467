"""What is measured of a simulated run: from the first pull to the end, and what the events tell."""

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from resourcesync_simulator.measures import ABSENT, ConsistencyMeter
from resourcesync_simulator.scenario import (
    HOUR,
    DestinationSettings,
    Faults,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
)
from tests.support.simulated.figures import lived

SMALL = Scenario(
    seed=3,
    duration=4 * HOUR,
    origin=OriginSettings(
        resources=20, per_second=30 / HOUR, sizes=Sizes(median=200, spread=0.0), create=0, delete=0
    ),
    publish=PublishSettings(every=HOUR / 2),
    destinations=(DestinationSettings(every=HOUR / 2),),
)
COUNTED_AFTER = (
    *("consistency", "latency", "latency_95", "efficiency", "requests", "received", "useful"),
    *("first", "first_requests", "first_received"),
)


@pytest.mark.parametrize(
    ("faults", "destination"),
    [
        (Faults(lost=1.0), DestinationSettings(every=HOUR)),
        (Faults(), DestinationSettings(latency=HOUR, jobs=1)),
    ],
    ids=["nothing is answered", "the first pull takes longer than there is time"],
)
def test_who_never_pulled_to_the_end_has_no_figures(
    faults: Faults, destination: DestinationSettings
) -> None:
    _, measured = lived(replace(SMALL, faults=faults, destinations=(destination,)))

    assert [getattr(measured, name) for name in COUNTED_AFTER] == [None] * len(COUNTED_AFTER)
    assert (measured.changes, measured.synchronized) == (0, 0)
    assert measured.pulls == measured.failed
    assert measured.outcome == "converged", "at last, when nothing hindered it any more"


@pytest.mark.parametrize(
    "faults",
    [
        Faults(),
        Faults(lost=0.3, crash=0.02),
        Faults(rollbacks=((2.4 * HOUR, HOUR),)),
        Faults(outages=((3 * HOUR, 5 * HOUR),)),
    ],
    ids=["well", "failing", "set back", "out until later"],
)
def test_the_events_up_to_the_end_are_what_the_figures_count(faults: Faults) -> None:
    told, measured = lived(replace(SMALL, faults=faults, origin=replace(SMALL.origin, create=1)))

    names = [name for _, name, _ in told]
    counted = told[: names.index("measured")]
    assert told[len(counted)][0] == SMALL.duration
    assert names.index("measured") < names.index("quiet")
    pulls = [more for _, name, more in counted if name == "pull"]
    assert measured.pulls == len(pulls)
    assert measured.crashes == sum(pull.get("error") == "died" for pull in pulls)
    assert measured.failed == sum("error" in pull for pull in pulls) - measured.crashes
    (first, *_) = (place for place, item in enumerate(counted) if "state" in item[2])
    after = counted[first + 1 :]
    assert measured.changes == sum(name == "change" for _, name, _ in after)
    assert measured.requests == sum(
        int(str(more["requests"])) for _, name, more in after if name == "pull"
    )
    assert all("state" in more for _, name, more in told[names.index("quiet") :] if name == "pull")


Happening = tuple[int, str, str, str]
NAMES = st.sampled_from("ab")
DIGESTS = st.sampled_from([ABSENT, "1", "2"])
HAPPENINGS = st.lists(
    st.tuples(st.integers(0, 19), st.sampled_from(["there", "here"]), NAMES, DIGESTS), max_size=12
)


@given(HAPPENINGS, st.integers(0, 25))
def test_consistency_is_what_it_is_when_counted_moment_by_moment(
    happenings: list[Happening], began: int
) -> None:
    compared = ConsistencyMeter()
    compared.fill({"a": "1", "b": "2"})
    sides = {"there": {"a": "1", "b": "2"}, "here": {"a": ABSENT, "b": ABSENT}}
    shares = []
    for second in range(20):
        for at, side, name, digest in happenings:
            if at == second:
                sides[side][name] = digest
                note = (
                    compared.record_origin_change
                    if side == "there"
                    else compared.record_copy_change
                )
                note(name, digest, at)
        if second == began:
            compared.begin(second)
        names = [name for name in "ab" if sides["there"].get(name) or sides["here"].get(name)]
        equal = [sides["there"][name] == sides["here"][name] for name in names]
        shares.append(fmean(equal) if equal else 1.0)

    known_from = shares[began:]
    assert compared.consistency(20.0) == (pytest.approx(fmean(known_from)) if known_from else None)
