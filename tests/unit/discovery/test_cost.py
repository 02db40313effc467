"""The cost calculator: against the simulator, against our own documents, and against good sense."""

import itertools
import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.discovery.cost import (
    DAY,
    HOUR,
    CostEstimate,
    CostInputs,
    FollowMode,
    ModeCost,
    estimate_cost,
)
from resourcesync.simulator.measures import Measurement
from resourcesync.simulator.scenario import (
    Burst,
    DestinationSettings,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
)
from resourcesync.simulator.simulation import simulate
from resourcesync.source.dumps.dump_publication import DumpRequest
from resourcesync.source.publication_options import PublishRequest
from tests.support.simulated.figures import known

RESOURCES = 200
CHANGES = 10
DAYS = 2
SIZES = [10**power for power in range(3, 9)]
RATES = [0.0, 0.3, 3.0, 30.0, 300.0, 3e3, 3e4, 3e5, 3e6]
SIMULATED = CostInputs(
    resources=RESOURCES,
    mean_size=1_000,
    changes_per_day=24 * CHANGES,
    poll=HOUR,
    uri_length=40,
    rotate=6 * HOUR,
    keep=DAYS / 2 * DAY,  # the mean of a Source that keeps all
    rebase=0,
)


def mode_of(estimate: CostEstimate, mode: FollowMode) -> ModeCost:
    return next(cost for cost in estimate.modes if cost.mode == mode)


def simulated(mode: FollowMode) -> Measurement:
    """Follow a Source for some days in which ten resources are created each hour."""
    is_push, strategy = mode == "push", "changes"
    if mode in {"resource-lists", "sitemap"}:
        strategy = "lists" if mode == "resource-lists" else "sitemap"
    destination = DestinationSettings(
        every=2 * DAY if is_push else HOUR,
        dumps="always" if mode == "dumps" else "never",
        jobs=100,
        phase=0.5,
        offline=((0.0, 1.0),) if mode == "sitemap" else (),
    )
    bursts = tuple(Burst(at=hour * HOUR + 2_700, changes=CHANGES) for hour in range(24))
    scenario = Scenario(
        duration=DAYS * DAY,
        origin=OriginSettings(
            resources=RESOURCES,
            sizes=Sizes(median=1_000, spread=0.0),
            media_types=("text/plain",),
            bursts=bursts,
            create=1.0,
            update=0.0,
            delete=0.0,
        ),
        publish=PublishSettings(
            strategy=strategy,  # type: ignore[arg-type]
            every=HOUR,
            rotate=6 * HOUR,
            push=is_push,
            dumps=mode == "dumps",
            dump_every=HOUR,
        ),
        destinations=(destination,),
    )
    return simulate(scenario, destination)


@pytest.mark.parametrize("mode", ["change-lists", "dumps", "resource-lists", "push", "sitemap"])
def test_requests_and_bytes_are_those_of_the_simulator(mode: FollowMode) -> None:
    measured = simulated(mode)
    first = mode_of(estimate_cost(SIMULATED), mode)
    # Ten resources are created each hour: these are as many as there are in the mean.
    mean = replace(SIMULATED, resources=RESOURCES + 24 * CHANGES * DAYS // 2)
    daily = mode_of(estimate_cost(mean), mode)
    # Without robots.txt; the simulated hub and the poll in case of a loss make no requests.
    unsimulated = 1 + (24 + 24 * 3 if mode == "push" else 0)

    assert first.first_requests == known(measured.first_requests) + 1
    assert first.first_bytes == pytest.approx(known(measured.first_received), rel=0.1)
    assert first.peak == pytest.approx(measured.peak, abs=20)
    requests = known(measured.requests) / DAYS
    # The first polls have no index of Change Lists, and the first of all finds nothing.
    assert daily.daily_requests - unsimulated == pytest.approx(requests, abs=12)
    assert daily.daily_bytes == pytest.approx(known(measured.received) / DAYS, rel=0.1)


@pytest.mark.parametrize(("max_entries", "parts"), [(50_000, 1), (25, 8)])
def test_polls_of_a_source_without_changes_are_counted_exactly(
    max_entries: int, parts: int
) -> None:
    scenario = Scenario(
        duration=2 * DAY,
        origin=OriginSettings(resources=RESOURCES, sizes=Sizes(median=1_000, spread=0.0)),
        publish=PublishSettings(max_entries=max_entries),
        destinations=(DestinationSettings(phase=0.5, dumps="never"),),
    )
    measured = simulate(scenario, scenario.destinations[0])
    quiet = replace(SIMULATED, changes_per_day=0.0, max_entries=max_entries)
    cost = mode_of(estimate_cost(quiet), "change-lists")

    assert cost.first_requests == known(measured.first_requests) + 1
    assert cost.daily_requests == 24 * 3 + 3
    # The first of the two days begins with the first pull, which reads the description anyway;
    # the second pull requests the parts of the Resource List, too, once.
    assert known(measured.requests) == 48 * 3 + 2 + (parts if parts > 1 else 0)


def test_lists_and_packages_have_the_bytes_that_our_writer_writes(tmp_path: Path) -> None:
    root, base = tmp_path / "public", "https://museum.example/"
    (root / "folder").mkdir(parents=True)
    whole = CostInputs(
        resources=500,
        mean_size=1_000,
        uri_length=len(f"{base}folder/resource-0000.txt"),
        rotate=DAY,
        keep=DAY,
    )

    def publish(files: int) -> dict[str, int]:
        """Write some files anew, publish, and return the size of each document and package."""
        for number in range(files):
            path = root / f"folder/resource-{number:04d}.txt"
            path.write_bytes(random.Random(f"{files} {number}").randbytes(1_000))
        publish_tree(
            root,
            {"url": base, "sitemap": True},
            clock=SystemClock(),
            asked=PublishRequest(dumps=DumpRequest(changes=True)),
        )
        return {path.name: path.stat().st_size for path in root.rglob("*") if path.is_file()}

    def each(mode: FollowMode) -> int:
        """Return the bytes of a first copy less those of an empty one: what the entries cost."""
        empty = mode_of(estimate_cost(replace(whole, resources=0)), mode)
        return mode_of(estimate_cost(whole), mode).first_bytes - empty.first_bytes

    written, bodies = publish(500), 500 * (1_000 + 250)
    packed = sum(size for name, size in written.items() if name.startswith("resourcedump-"))

    assert each("change-lists") - bodies == pytest.approx(written["resourcelist.xml"], rel=0.1)
    assert each("dumps") == pytest.approx(packed + written["resourcelist.xml"], rel=0.1)
    # A plain sitemap of one document is read twice: once to see what it is.
    sitemap = 2 * written["resourcesync-sitemap.xml"]
    assert each("sitemap") - bodies == pytest.approx(sitemap, rel=0.1)
    changes = publish(100)["changelist.xml"]
    assert 100 * whole.change_entry == pytest.approx(changes, rel=0.1)


def test_a_large_first_copy_from_a_dump_needs_the_requests_that_the_campaign_arxiv_counted() -> (
    None
):
    of = CostInputs(resources=240_000, mean_size=18, changes_per_day=1_800, poll=DAY, dumps=True)

    assert mode_of(estimate_cost(of), "change-lists").first_requests == 59


def test_a_source_with_more_resources_or_changes_never_costs_less() -> None:
    policy = CostInputs(resources=0, poll=HOUR, rotate=DAY, keep=30 * DAY, rebase=0)
    costs = {
        (resources, rate): estimate_cost(
            replace(policy, resources=resources, changes_per_day=rate)
        ).modes
        for resources in SIZES
        for rate in RATES
    }
    for rate in RATES:
        for less, more in itertools.pairwise(SIZES):
            for small, large in zip(costs[less, rate], costs[more, rate], strict=True):
                assert small.first_requests <= large.first_requests
                assert small.first_bytes < large.first_bytes
                assert small.first_seconds <= large.first_seconds
                assert small.daily_requests <= large.daily_requests
                assert small.daily_bytes <= large.daily_bytes
    for resources in SIZES:
        for less_often, more_often in itertools.pairwise(RATES):
            pairs = zip(costs[resources, less_often], costs[resources, more_often], strict=True)
            for rare, frequent in pairs:
                assert rare.daily_requests <= frequent.daily_requests
                assert rare.daily_bytes <= frequent.daily_bytes


@pytest.mark.parametrize("mean_size", [1_000, 100_000, 10_000_000])
@pytest.mark.parametrize("poll", [300.0, HOUR, DAY])
def test_advice_goes_one_way_when_resources_changes_or_mirrors_increase(
    mean_size: int, poll: float
) -> None:
    whole = CostInputs(resources=0, mean_size=mean_size, poll=poll)
    for resources in SIZES:
        of = [
            estimate_cost(replace(whole, resources=resources, changes_per_day=rate)).advice
            for rate in RATES
        ]
        for rare, frequent in itertools.pairwise(of):
            assert rare.publish >= frequent.publish
            assert rare.rotate >= frequent.rotate
            assert rare.keep >= frequent.keep
            assert rare.poll >= frequent.poll
            assert rare.push <= frequent.push
            assert rare.change_lists >= frequent.change_lists
    for rate in RATES:
        of = [
            estimate_cost(replace(whole, resources=resources, changes_per_day=rate)).advice
            for resources in SIZES
        ]
        for small, large in itertools.pairwise(of):
            assert small.keep <= large.keep
            assert small.dump <= large.dump
            assert small.change_lists <= large.change_lists
            assert small.gzip <= large.gzip
        polls = [
            estimate_cost(
                replace(whole, resources=1_000, changes_per_day=rate, mirrors=mirrors)
            ).advice.poll
            for mirrors in (1, 10, 100, 1_000, 10_000)
        ]
        assert polls == sorted(polls)


@pytest.mark.parametrize("resources", [0, 1, 1_000, 10**8, 10**10])
@pytest.mark.parametrize("rate", [0.0, 1e-6, 1.0, 1e9])
def test_advice_stays_in_its_bounds_for_any_source(resources: int, rate: float) -> None:
    estimate = estimate_cost(CostInputs(resources=resources, changes_per_day=rate, mirrors=50))
    advice = estimate.advice

    assert 300 <= advice.poll <= DAY
    assert 300 <= advice.publish <= advice.poll
    assert HOUR <= advice.rotate <= 30 * DAY
    assert 7 * DAY <= advice.keep <= 365 * DAY
    assert 4 <= advice.connections <= 100
    for cost in estimate.modes:
        assert cost.first_requests >= 3
        assert 0 < cost.peak <= 4_500
        assert cost.staleness <= DAY


def test_a_small_quiet_source_needs_little_and_a_large_busy_one_needs_it_all() -> None:
    small = estimate_cost(CostInputs(resources=100, mean_size=5_000, changes_per_day=1)).advice
    large = estimate_cost(
        CostInputs(resources=10**8, mean_size=5_000, changes_per_day=1e6, mirrors=10)
    ).advice

    assert (small.dump, small.change_dump, small.push, small.gzip) == (False,) * 4
    assert (large.dump, large.change_dump, large.push, large.gzip) == (True,) * 4
    assert (small.poll, small.connections) == (DAY, 4)
    assert (large.poll, large.rotate) == (300, HOUR)
    assert large.change_lists


def test_dumps_of_large_resources_are_not_recommended() -> None:
    videos = CostInputs(resources=10**6, mean_size=50e6, changes_per_day=10_000)

    assert not estimate_cost(videos).advice.dump
    assert not estimate_cost(videos).advice.change_dump


@pytest.mark.parametrize(
    "wrong",
    [
        {"resources": -1},
        {"changes_per_day": -1.0},
        {"poll": 0.0},
        {"mirrors": 0},
        {"rotate": -1.0},
    ],
)
def test_values_without_meaning_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"no |more than 0"):
        CostInputs(**{"resources": 1, **wrong})  # type: ignore[arg-type]
