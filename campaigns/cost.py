"""What each way to follow a Source costs it: simulated, counted by nginx, and calculated.

A sample of the resources of three large Sources, with the changes that each poll of the whole
Source finds. Real mirrors pull at the times of the simulated ones, so both must send as many
requests, and the calculator of ``explore --cost`` must say so.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from campaigns.outcome import Asked, Campaign, Outcome
from campaigns.paced import (
    PacedMirror,
    PacedSource,
    StepClock,
    Traffic,
    can_delay,
    installed,
    serve_counted,
)
from resourcesync.destination.options import DumpPolicy, PullOptions
from resourcesync.discovery.cost import CostInputs, FollowMode, estimate_cost
from resourcesync.model import formatting
from resourcesync.simulator.scenario import (
    DAY,
    HOUR,
    DestinationSettings,
    OriginSettings,
    PublishSettings,
    Scenario,
    Sizes,
    Strategy,
)
from resourcesync.simulator.simulation import simulate
from resourcesync.source.dumps.dump_publication import DumpRequest
from resourcesync.source.naming import SITEMAP

_LENGTH: Final = 1_000
_JOBS: Final = 100
_LATENCY: Final = 0.05
_URI_LENGTH: Final = len("http://127.0.0.1:12345/r/0000/i0000000.txt")
_LEAST: Final = 100
_APART: Final = {"simulated": (0.1, 2), "calculated": (0.2, 5)}
"""The most that two figures may differ: a share, and some requests of a few.

``robots.txt`` is not simulated; the calculator's mirror has followed for long, and these have not.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A Source, of which a sample is published.

    Attributes:
        every: Seconds between two publications, and between two pulls.
        rotate: Seconds after which a Change List is closed.
        changes: Changes from one pull to the next, of the whole Source.
        polls: Number of pulls after the first one.
    """

    every: float
    rotate: float
    changes: int
    polls: int


SAMPLES: Final = {
    "arxiv": Sample(every=DAY, rotate=DAY, changes=1_800, polls=4),
    "wikipedia": Sample(every=300.0, rotate=HOUR, changes=420, polls=14),
    "core": Sample(every=HOUR, rotate=4 * HOUR, changes=4_167, polls=6),
}
"""arXiv: 1,800 changes a day; Wikipedia: 1.4 a second; CORE: 100,000 a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedMode:
    """A way to follow a Source, and how it is simulated and measured.

    Attributes:
        name: Its name in the calculator.
        strategy: What the Source publishes, as in the simulator.
        dumps: Whether the mirror takes all from dumps.
        push: Whether it pulls right after each publication.
    """

    name: FollowMode
    strategy: Strategy = "changes"
    dumps: bool = False
    push: bool = False

    @property
    def is_sitemap(self) -> bool:
        """Whether the mirror reads a plain sitemap."""
        return self.strategy == "sitemap"

    @property
    def policy(self) -> DumpPolicy:
        """The use of dumps."""
        return "always" if self.dumps else "never"


MODES: Final = (
    FollowedMode(name="change-lists"),
    FollowedMode(name="dumps", dumps=True),
    FollowedMode(name="resource-lists", strategy="lists"),
    FollowedMode(name="push", push=True),
    FollowedMode(name="sitemap", strategy="sitemap"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """What a mirror cost: the first pull, and a mean of the following ones."""

    first_requests: int
    first_bytes: int
    requests: float
    received: float
    peak: int
    seconds: float
    staleness: float | None = None

    def __str__(self) -> str:
        delay = "" if self.staleness is None else f"; delay {formatting.span(self.staleness)}"
        return (
            f"first {self.first_requests:,} requests, {formatting.size(self.first_bytes)},"
            f" {self.seconds:.1f} s; a poll {self.requests:,.1f} requests,"
            f" {formatting.size(round(self.received))}; peak {self.peak:,}/s{delay}"
        )


def run(asked: Asked) -> Outcome:
    """Compare each way to follow each sample."""
    outcome = Outcome()
    if not installed():
        outcome.missing = "nginx is not here"
        return outcome
    for name, sample in SAMPLES.items():
        for mode in MODES:
            compare(outcome, name, sample, mode, asked)
    if can_delay():
        slow = _measure(replace(SAMPLES["arxiv"], polls=0), MODES[0], asked, delay=_LATENCY)
        outcome.add(f"the first copy with {_LATENCY:g} s before each answer", slow)
    return outcome


def compare(outcome: Outcome, name: str, whole: Sample, mode: FollowedMode, asked: Asked) -> None:
    """Simulate, measure and calculate one way; what differs too much is a violation."""
    sample = replace(whole, changes=min(whole.changes, asked.size // 4))
    costs = {
        "simulated": _simulate(sample, mode, asked),
        "measured": _measure(sample, mode, asked),
        "calculated": _calculate(sample, mode, asked),
    }
    for how, cost in costs.items():
        outcome.add(f"{name}, {mode.name}, {how}", cost)
    measured = costs.pop("measured")
    for how, cost in costs.items():
        part, few = _APART[how]
        for what in ("first_requests", "first_bytes", "requests", "received"):
            left, right = getattr(cost, what), getattr(measured, what)
            apart = abs(left - right) - part * max(left, right)
            outcome.require(
                apart <= (few if what.endswith("requests") else 0),
                f"{name}, {mode.name}: {what} {how} {left:,.0f}, measured {right:,.0f}",
            )


def _calculate(sample: Sample, mode: FollowedMode, asked: Asked) -> _Cost:
    polls = DAY / sample.every
    estimate = estimate_cost(
        CostInputs(
            resources=asked.size,
            mean_size=_LENGTH,
            changes_per_day=sample.changes * polls,
            poll=sample.every,
            uri_length=_URI_LENGTH,
            rotate=sample.rotate,
            keep=sample.polls * sample.every,  # of so many publications
            rebase=0,
        )
    )
    cost = next(cost for cost in estimate.modes if cost.mode == mode.name)
    # Neither the deliveries of a hub nor the polls in case of a loss happen here.
    unsent = polls + 24 * 3 if mode.push else 0
    return _Cost(
        first_requests=cost.first_requests,
        first_bytes=cost.first_bytes,
        requests=(cost.daily_requests - unsent) / polls,
        received=cost.daily_bytes / polls,
        peak=cost.peak,
        seconds=cost.first_seconds,
        staleness=cost.staleness,
    )


def _simulate(sample: Sample, mode: FollowedMode, asked: Asked) -> _Cost:
    scenario = _scenario(sample, mode, asked)
    found = simulate(scenario, scenario.destinations[0])
    following = found.pulls - 1
    return _Cost(
        first_requests=found.first_requests or 0,
        first_bytes=found.first_received or 0,
        requests=(found.requests or 0) / following,
        received=(found.received or 0) / following,
        peak=found.peak,
        seconds=(found.first or 0.0) - (sample.every / 2 if mode.is_sitemap else 0.0),
        staleness=found.latency,
    )


def _scenario(sample: Sample, mode: FollowedMode, asked: Asked) -> Scenario:
    every = sample.every
    destination = DestinationSettings(
        every=50 * DAY if mode.push else every,
        dumps=mode.policy,
        jobs=_JOBS,
        latency=_LATENCY,
        # A sitemap is first read later: what was new a second ago would be fetched again.
        offline=((0.0, 1.0),) if mode.is_sitemap else ((1.0, every),),
        phase=0.5,
    )
    return Scenario(
        seed=asked.seed,
        duration=(sample.polls + 1) * every,
        origin=OriginSettings(
            resources=asked.size,
            sizes=Sizes(median=_LENGTH, spread=0.0, most=_LENGTH),
            media_types=("text/plain",),
            per_second=sample.changes / every,
            create=0.1,
            update=0.85,
            delete=0.05,
        ),
        publish=PublishSettings(
            strategy=mode.strategy,
            every=every,
            rotate=sample.rotate,
            keep=30 * DAY,
            push=mode.push,
            dumps=mode.dumps,
            dump_every=every,
        ),
        destinations=(destination,),
    )


def _measure(sample: Sample, mode: FollowedMode, asked: Asked, *, delay: float = 0.0) -> _Cost:
    """Publish a sample, let a mirror follow it, and count what nginx answers."""
    folder = asked.folder / "real"
    root = folder / "root"
    root.mkdir(parents=True)
    with serve_counted(root, folder / "nginx", delay=delay) as (url, log):
        first, following = _Following(sample, mode, asked, root, url, log).run()
    shutil.rmtree(folder)
    count = max(1, len(following))
    return _Cost(
        first_requests=first.requests,
        first_bytes=first.received,
        requests=sum(each.requests for each in following) / count,
        received=sum(each.received for each in following) / count,
        peak=max(each.peak for each in (first, *following)),
        seconds=first.seconds,
    )


class _Following:
    """A real mirror, which pulls at the times of the simulated one."""

    def __init__(
        self, sample: Sample, mode: FollowedMode, asked: Asked, root: Path, url: str, log: Path
    ) -> None:
        self._sample, self._mode, self._clock = sample, mode, StepClock()
        self._source = PacedSource(root, url, asked.size, _LENGTH, self._clock, asked.seed)
        address = url + SITEMAP if mode.is_sitemap else url
        self._mirror = PacedMirror(root.parent / "copy", address, log, self._clock)

    def run(self) -> tuple[Traffic, list[Traffic]]:
        """Pull for the first time, then after each publication."""
        chosen: dict[str, object] = {"rotate": self._sample.rotate, "keep": 30 * DAY}
        self._publish({**chosen, "sitemap": self._mode.is_sitemap})
        following: list[Traffic] = []
        if self._mode.is_sitemap:
            self._half()
        first = self._pull()
        if not (self._mode.is_sitemap or self._mode.push):
            self._half()
        for _ in range(self._sample.polls):
            self._half()
            if self._mode.push:
                self._half()
            self._publish({})
            if not self._mode.push:
                self._half()
            following.append(self._pull())
        return first, following

    def _half(self) -> None:
        """Let half an interval pass, with its changes."""
        self._source.change(self._sample.changes // 2)
        self._clock.step(self._sample.every / 2)

    def _publish(self, chosen: dict[str, object]) -> None:
        self._source.publish(
            chosen,
            rebase=self._mode.strategy != "changes",
            dumps=DumpRequest(changes=True) if self._mode.dumps else None,
        )

    def _pull(self) -> Traffic:
        options = PullOptions(
            mode="baseline" if self._mode.strategy == "lists" else "auto",
            dumps=self._mode.policy,
            delete="absent" if self._mode.is_sitemap else "auto",
        )
        return self._mirror.pull(options)[0]


CAMPAIGN: Final = Campaign(run=run, size=8_000, unit="resources", least=_LEAST)
