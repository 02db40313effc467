"""What is simulated: an origin, how it is published, who follows it, and what goes wrong."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal

from resourcesync.destination.choosing import DumpPolicy
from resourcesync.errors import ConfigurationError

Strategy = Literal["changes", "lists"]

HOUR: Final = 3_600.0
DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How long resources are: a log-normal distribution, within bounds.

    Attributes:
        median: Bytes.
        spread: Standard deviation of the logarithm; 0 makes all equal.
        least, most: Bounds, in bytes.
    """

    median: int = 8_000
    spread: float = 1.2
    least: int = 1
    most: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Many changes at one time of the day.

    Attributes:
        at: Seconds after midnight, in the zone.
        zone: A name of the time zone database, such as ``America/New_York``.
        days: Days of the week, 0 for Monday.
        changes: How many.
    """

    at: float
    changes: int
    zone: str = "UTC"
    days: frozenset[int] = frozenset(range(7))


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginSettings:
    """The resources, and what becomes of them.

    Attributes:
        resources: How many there are at first.
        sizes: How long they are.
        media_types: What they are, each as likely as the others.
        per_second: Changes a second, as a Poisson process.
        bursts: Further changes, many at a time.
        create, update, delete: How likely a change is which; their sum counts as one.
    """

    resources: int = 1_000
    sizes: Sizes = field(default_factory=Sizes)
    media_types: tuple[str, ...] = ("text/html",)
    per_second: float = 0.0
    bursts: tuple[Burst, ...] = ()
    create: float = 0.2
    update: float = 0.75
    delete: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishSettings:
    """How the Source publishes.

    Attributes:
        strategy: ``changes``: Change Lists from one Resource List to the next. ``lists``: each
            time a new Resource List, which Destinations read whole.
        every: Seconds from one publication to the next.
        rotate: Seconds after which an open Change List is closed; 0 for never.
        rebase: Seconds after which a new Resource List is written; 0 for never.
        keep: Seconds for which closed Change Lists stay at least; 0 for ever.
        push: Whether Destinations are told of each publication.
        dumps: Whether there are a Resource Dump and a Change Dump, too.
        dump_every: Seconds from one packing to the next, at least; packed is before publishing.
        max_package: Most bytes of content in one package.
        max_entries: Most entries of one document.
    """

    strategy: Strategy = "changes"
    every: float = HOUR
    rotate: float = 0.0
    rebase: float = 0.0
    keep: float = 0.0
    push: bool = False
    dumps: bool = False
    dump_every: float = DAY
    max_package: int = 256 * 2**20
    max_entries: int = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationSettings:
    """One who follows.

    Attributes:
        name: What it is called.
        every: Seconds from the end of one pull to the next, at most.
        dumps: Whether it takes resources from dumps: where that is cheaper, never, or always.
        jobs: Requests at a time.
        latency: Seconds until an answer begins.
        bandwidth: Bytes a second, of each request.
        phase: The share of ``every`` that passes before the second pull, 0 to 1: who pulls as often
            as is published would else come just before it, or just after it, all the time.
        offline: From and until when it does not pull, in seconds from the beginning.
    """

    name: str = "mirror"
    every: float = HOUR
    dumps: DumpPolicy = "auto"
    jobs: int = 8
    latency: float = 0.05
    bandwidth: float = 10e6
    phase: float = 1.0
    offline: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong. Rates are for each request, or for each thing that is named, 0 to 1.

    Attributes:
        lost: No answer comes in 30 seconds.
        refused: The answer is 404.
        failed: The answer is 503.
        late: The answer takes ten times as long, and a second.
        cut: The body ends too early, and nothing tells.
        altered: Some bytes of the body are others.
        stale: An older version of it is answered, as a cache does.
        wrong_hash: The Source lists another digest than the resource has.
        undated: A change is listed without its time.
        changed_while_listed: A resource is listed as it was before.
        outages: From and until when nothing answers, in seconds from the beginning.
        clock_steps: When the Source's clock steps, and by how much, in seconds.
        restarts: When the Source starts its lists over at the same addresses.
        rollbacks: When the Source is set back to what it was, and how many seconds before.
        crash: The Destination dies while it asks for something, and begins anew.
        push_lost, push_doubled: A notification does not come, or comes twice.
        push_forged: A notification comes, of nothing; for each publication.
    """

    lost: float = 0.0
    refused: float = 0.0
    failed: float = 0.0
    late: float = 0.0
    cut: float = 0.0
    altered: float = 0.0
    stale: float = 0.0
    wrong_hash: float = 0.0
    undated: float = 0.0
    changed_while_listed: float = 0.0
    outages: tuple[tuple[float, float], ...] = ()
    clock_steps: tuple[tuple[float, float], ...] = ()
    restarts: tuple[float, ...] = ()
    rollbacks: tuple[tuple[float, float], ...] = ()
    crash: float = 0.0
    push_lost: float = 0.0
    push_doubled: float = 0.0
    push_forged: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run of the simulator.

    Attributes:
        seed: Of all that is left to chance.
        start: When it begins, UTC.
        duration: Seconds.
        origin: The resources.
        publish: How they are published.
        destinations: Who follows.
        faults: What goes wrong.
    """

    seed: int = 1
    start: datetime = datetime(2026, 1, 4, 12, tzinfo=UTC)
    duration: float = 7 * DAY
    origin: OriginSettings = field(default_factory=OriginSettings)
    publish: PublishSettings = field(default_factory=PublishSettings)
    destinations: tuple[DestinationSettings, ...] = (DestinationSettings(),)
    faults: Faults = field(default_factory=Faults)

    def check(self) -> None:
        """Refuse what cannot be simulated.

        Raises:
            ConfigurationError: A value cannot work.
        """
        origin = self.origin
        shares = (origin.create, origin.update, origin.delete)
        checks = {
            "source.resources must be from 1 to 10,000,000": 0 < origin.resources <= _MOST,
            "create, update and delete cannot all be 0": sum(shares) > 0,
            "rates of changes cannot be negative": min(*shares, origin.per_second) >= 0,
            "publish.every must be longer than 0": self.publish.every > 0,
            "publish.max_package must be from 1 byte to 1 GiB": (
                0 < self.publish.max_package <= _LARGEST
            ),
            "duration must be from a moment to ten years": 0 < self.duration <= 3_660 * DAY,
            "there is no destination": bool(self.destinations),
            **{
                f"faults.{name} must be from 0 to 1": 0 <= getattr(self.faults, name) <= 1
                for name in _RATES
            },
            **{
                f"destination {it.name} cannot ask like that": _can_ask(it)
                for it in self.destinations
            },
        }
        for reason, is_good in checks.items():
            if not is_good:
                raise ConfigurationError(reason)


def _can_ask(it: DestinationSettings) -> bool:
    return it.every > 0 and it.jobs > 0 and it.bandwidth > 0 and it.latency >= 0


_MOST: Final = 10_000_000
_LARGEST: Final = 1 << 30
"""A package is in memory while it is on its way."""
_RATES: Final = (
    *("lost", "refused", "failed", "late", "cut", "altered", "stale", "wrong_hash", "undated"),
    *("changed_while_listed", "crash", "push_lost", "push_doubled", "push_forged"),
)
