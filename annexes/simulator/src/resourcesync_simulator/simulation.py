"""Simulation run: an origin changes, a Source publishes, a Destination follows, all is measured."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Final, NamedTuple

from msgspec.structs import replace

from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import MirrorState, RunReport
from resourcesync.errors import ResourceSyncError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.source.naming import SITEMAP
from resourcesync.source.stored_plan import PublicationStep
from resourcesync_simulator import bounds
from resourcesync_simulator.clock import SimulatedClock
from resourcesync_simulator.destination import SimulatedDestination
from resourcesync_simulator.faults import FaultInjector
from resourcesync_simulator.measures import ABSENT, ConsistencyMeter, Measurement, percentile
from resourcesync_simulator.network import SimulatedNetwork
from resourcesync_simulator.origin import BASE, SimulatedOrigin, burst_times
from resourcesync_simulator.scenario import HOUR, DestinationSettings, Scenario, is_within
from resourcesync_simulator.source import PackedDocuments, SavedSource, SimulatedSource
from resourcesync_simulator.temporary_folders import TemporaryFolders, make_folders

OnEvent = Callable[[float, str, Mapping[str, object]], None]
"""Called for each event: the seconds since the start, its name, and further fields."""

_DELIVERY: Final = 0.1
_MICROSECOND: Final = 1e-6
"""Smallest interval that counts: the resolution of the clock."""
_LAST_PULLS: Final = 10
"""Pulls after the end: a rollback is accepted after a day; deletions wait for a later list."""


def simulate(
    scenario: Scenario,
    destination: DestinationSettings,
    on_event: OnEvent | None = None,
    within: TemporaryFolders | None = None,
) -> Measurement:
    """Let one Destination follow a Source from the start to the end.

    The events at the Source are the same for every Destination: they follow from the seed.
    """
    bounds.check(scenario)
    with make_folders(within) as folders:
        world = _Simulation(scenario, destination, folders, on_event or _nothing)
        with closing(world.destination):
            return world.run()


@contextmanager
def simulate_source(
    scenario: Scenario, base: str
) -> Iterator[tuple[SimulatedClock, SimulatedSource]]:
    """Run a Source as in ``simulate``, with a Destination that never pulls."""
    bounds.check(scenario)
    with make_folders() as folders:
        world = _Simulation(scenario, scenario.destinations[0], folders, _nothing, base)
        with closing(world.destination):
            yield world.start_source()


class _NetworkUse(NamedTuple):
    requests: int
    received: int
    useful: int

    def __sub__(self, other: "_NetworkUse") -> "_NetworkUse":
        return _NetworkUse(*(new - old for new, old in zip(self, other, strict=True)))


class _Simulation:
    def __init__(
        self,
        scenario: Scenario,
        destination: DestinationSettings,
        folders: TemporaryFolders,
        on_event: OnEvent,
        base: str = BASE,
    ) -> None:
        self._scenario = scenario
        self._settings = destination
        self._on_event = on_event
        self._clock = SimulatedClock(scenario.start)
        self._random = random.Random(f"world {scenario.seed}")  # noqa: S311 - a simulation
        faults, seed = scenario.faults, scenario.seed
        self._origin = SimulatedOrigin(scenario.origin, seed, self._clock.now, base)
        self._compared = ConsistencyMeter()
        self._claimed = ConsistencyMeter()
        documents = PackedDocuments(folders.disk)
        self._source = SimulatedSource(
            self._origin, scenario, documents, self._clock, self._on_listed, self._fault
        )
        injector = self._injector = FaultInjector(faults, seed, self._clock, self._fault)
        self._network = SimulatedNetwork(
            self._source, destination, faults, seed, self._clock, injector=injector
        )
        self.destination = SimulatedDestination(
            folders.memory,
            self._network,
            _options(scenario, destination),
            self._clock,
            self._on_copy_change,
            injector=injector,
        )
        if scenario.publish.strategy == "sitemap":
            self.destination.source = BASE + SITEMAP
        self._compared.fill({name: at.digest for name, at in self._origin.versions.items()})
        self._is_notified = False
        self._lies = 0
        self._first: _NetworkUse | None = None
        self._measured: Measurement | None = None

    def start_source(self) -> tuple[SimulatedClock, SimulatedSource]:
        """Start the Source; return the clock and the Source."""
        self._prepare()
        return self._clock, self._source

    def run(self) -> Measurement:
        """Run the whole time, measure, then check the outcome without changes and faults."""
        duration = self._scenario.duration
        self._prepare()
        due, share = 0.0, self._settings.phase
        while True:
            until = min(due, duration)
            while until - self._clock.elapsed > _MICROSECOND and not self._is_notified:
                self._clock.pass_to_next(until)
            if duration - self._clock.elapsed <= _MICROSECOND:
                break
            is_early = due - self._clock.elapsed > _MICROSECOND
            self._is_notified = False
            elapsed = self._clock.elapsed
            if not is_within(elapsed, self._settings.offline):
                self._pull()
            elif is_early:
                continue  # a notification for a Destination that is offline
            due, share = self._clock.elapsed + self._settings.every * share, 1.0
        measured = self._measured or self._measure()
        outcome = self._conclude()
        return replace(measured, lies=self._lies, outcome=outcome)

    def _measure(self) -> Measurement:
        """Return the figures at the end: a pull may still be in progress."""
        compared, follower, first = self._compared, self.destination, self._first
        duration = self._scenario.duration
        measured = Measurement(
            pulls=follower.pulls,
            failed=follower.failed,
            crashes=follower.crashes,
            peak=self._network.peak,
        )
        if first is None:
            return measured
        spent, latencies = self._network_use() - first, compared.latencies
        return replace(
            measured,
            consistency=compared.consistency(duration),
            latency=percentile(latencies, 0.5),
            latency_95=percentile(latencies, 0.95),
            efficiency=spent.useful / spent.received if spent.received else None,
            requests=spent.requests,
            received=spent.received,
            useful=spent.useful,
            changes=compared.changes,
            synchronized=len(latencies),
            first=compared.began,
            first_requests=first.requests,
            first_received=first.received,
        )

    def _end(self) -> None:
        """Store the figures: later events count in none of them."""
        self._measured = self._measure()
        self._event("measured")

    def _prepare(self) -> None:
        """Publish for the first time, and schedule all events."""
        scenario, faults, at = self._scenario, self._scenario.faults, self._clock.call_at
        self._source.publish()
        at(scenario.publish.every, self._publish)
        self._change_later()
        for burst in scenario.origin.bursts:
            for moment in burst_times(burst, scenario.start, scenario.duration):
                at(moment, lambda many=burst.changes: self._change(many))  # type: ignore[misc]
        for moment, seconds in faults.clock_steps:
            at(moment, lambda by=seconds: self._step_clock(by))  # type: ignore[misc]
        for moment in faults.restarts:
            at(moment, self._restart)
        for moment, seconds in faults.rollbacks:
            self._schedule_restore(moment, seconds)
        at(scenario.duration, self._end)

    def _pull(self) -> "RunReport | ResourceSyncError | None":
        before = self._network.requests
        ended = self.destination.pull()
        fields: dict[str, object] = {"requests": self._network.requests - before}
        if isinstance(ended, RunReport):
            if self._first is None:
                self._compared.begin(self._clock.elapsed)
                self._first = self._network_use()
            fields |= {"state": ended.state.value, "mode": ended.mode.value}
            if ended.state is MirrorState.IN_SYNC:
                self._check_claim(ended)
        else:
            fields["error"] = ended.code if isinstance(ended, ResourceSyncError) else "died"
        self._event("pull", consistency=round(self._compared.share, 6), **fields)
        return ended

    def _network_use(self) -> "_NetworkUse":
        """Return the requests and bytes so far."""
        useful = self.destination.copies.installed
        return _NetworkUse(self._network.requests, self._network.received, useful)

    def _check_claim(self, report: RunReport) -> None:
        """Count a false "in sync": the copies equal no listed state, then or later."""
        if report.as_of is None:
            return
        as_of = self._source.published_at(to_microseconds(report.as_of))
        if not self._claimed.is_true(as_of, self._clock.elapsed):
            self._lies += 1
            self._event("lie", as_of=as_of)

    def _conclude(self) -> str:
        """End all changes and faults, pull some times more, and compare both sides."""
        self._clock.cancel_all()
        self._network.is_healthy = self._injector.is_healthy = True
        self._source.stop_faults()
        self._event("quiet")
        for _ in range(_LAST_PULLS):
            self._clock.sleep(4 * HOUR)
            self._source.publish(PublicationStep.REBASE)
            ended = self._pull()
            if not isinstance(ended, RunReport) or ended.state is not MirrorState.IN_SYNC:
                continue
            if self._claimed.wrong:
                return "silently wrong"
            if not self._compared.wrong:
                return "converged"
        return "waiting"

    def _change_later(self) -> None:
        gap = self._origin.gap()
        moment = self._clock.elapsed + gap
        if moment <= self._scenario.duration:
            self._clock.call_at(moment, self._change_and_reschedule)

    def _change_and_reschedule(self) -> None:
        self._change(1)
        self._change_later()

    def _change(self, many: int) -> None:
        for _ in range(many):
            happening = self._origin.change()
            self._source.changed(happening.name, happening.before)
            self._changed(happening.name, happening.kind)

    def _changed(self, name: str, kind: ChangeKind) -> None:
        """Count and report a change of a resource."""
        version = self._origin.versions.get(name)
        digest = ABSENT if version is None else version.digest
        self._compared.record_origin_change(name, digest, self._clock.elapsed)
        self._event("change", kind=kind.value, name=name)

    def _publish(self) -> None:
        wrote = self._source.publish()
        self._event("publish", wrote=wrote, **self._error_field())
        self._clock.call_at(self._clock.elapsed + self._scenario.publish.every, self._publish)
        if self._scenario.publish.push:
            self._notify(wrote=wrote)

    def _error_field(self) -> dict[str, object]:
        """Return why the last publication failed, if it did."""
        return {"error": self._source.error} if self._source.error else {}

    def _notify(self, *, wrote: bool) -> None:
        faults, luck = self._scenario.faults, self._random
        times = int(wrote and luck.random() >= faults.push_lost)
        if wrote and not times:
            self._fault("push_lost", "")
        if times and luck.random() < faults.push_doubled:
            self._fault("push_doubled", "")
            times += 1
        if luck.random() < faults.push_forged:
            self._fault("push_forged", "")
            times += 1
        for number in range(times):
            self._clock.call_at(
                self._clock.elapsed + _DELIVERY * (number + 1), self._on_notification
            )

    def _step_clock(self, seconds: float) -> None:
        self._source.clock.step(seconds)
        self._event("clock step", seconds=seconds)

    def _on_notification(self) -> None:
        self._is_notified = True

    def _restart(self) -> None:
        self._source.publish(PublicationStep.INITIALISE)
        self._event("restart", **self._error_field())

    def _schedule_restore(self, moment: float, seconds: float) -> None:
        """Schedule a rollback of the Source to the state so many seconds before."""
        kept: list[SavedSource] = []
        self._clock.call_at(max(0.0, moment - seconds), lambda: kept.append(self._source.save()))
        self._clock.call_at(moment, lambda: self._restore(kept.pop(), seconds))

    def _restore(self, saved: SavedSource, seconds: float) -> None:
        before = set(self._origin.versions)
        names = self._source.restore(saved)
        self._event("set back", seconds=seconds)
        for name in names:
            kind = ChangeKind.UPDATED if name in before else ChangeKind.CREATED
            self._changed(name, kind if name in self._origin.versions else ChangeKind.DELETED)

    def _on_listed(self, name: str, digest: str) -> None:
        self._claimed.record_origin_change(name, digest, self._clock.elapsed)

    def _on_copy_change(self, path: str, digest: str) -> None:
        self._compared.record_copy_change(path, digest, self._clock.elapsed)
        self._claimed.record_copy_change(path, digest, self._clock.elapsed)

    def _fault(self, kind: str, what: str) -> None:
        self._event("fault", kind=kind, what=what)

    def _event(self, event: str, **fields: object) -> None:
        self._on_event(self._clock.elapsed, event, fields)


def _options(scenario: Scenario, destination: DestinationSettings) -> PullOptions:
    """Return the options of all pulls."""
    strategy = scenario.publish.strategy
    return PullOptions(
        mode="baseline" if strategy == "lists" else "auto",
        dumps=destination.dumps,
        # As an operator chooses who trusts the sitemap.
        delete="absent" if strategy == "sitemap" else "auto",
    )


def _nothing(_at: float, _event: str, _fields: Mapping[str, object]) -> None:
    pass
