"""What is simulated: an origin, how it is published, who follows it, and what goes wrong."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal

from resourcesync.destination.dump_policy import DumpPolicy

Strategy = Literal["changes", "lists"]

HOUR: Final = 3_600.0
DAY: Final = 86_400.0

Spans = tuple[tuple[float, float], ...]
"""From when until when, each in seconds from the beginning."""


def is_within(elapsed: float, spans: Spans) -> bool:
    """True if a moment, in seconds from the beginning, is in one of some spans."""
    return any(since <= elapsed < until for since, until in spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How long resources are: a log-normal distribution, within bounds.

    Attributes:
        median: Bytes.
        spread: Standard deviation of the logarithm; 0 makes all equal.
        least: The shortest, in bytes.
        most: The longest, in bytes.
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
        push: True if Destinations are told of each publication.
        dumps: True if there are a Resource Dump and a Change Dump, too.
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
        dumps: True if it takes resources from dumps: where that is cheaper, never, or always.
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
        doubled: The body comes twice, one after the other.
        altered: Some bytes of the body are others.
        stale: An older version of it is answered, as a cache does.
        wrong_hash: The Source lists another digest than the resource has.
        wrong_length: The Source lists another length than the resource has.
        undated: A change is listed without its time.
        changed_while_listed: A resource is listed as it was before.
        dropped: One of the Source's documents is not there until the next publication; for each
            publication.
        holes: An index of Change Lists leaves one of them out; for each index.
        outages: From and until when nothing answers, in seconds from the beginning.
        storms: From and until when every second answer is an error, of the client's or of the
            server's: 403, 404, 410, 429, 500, 502, 503 or 504.
        clock_steps: When the Source's clock steps, and by how much, in seconds.
        restarts: When the Source starts its lists over at the same addresses.
        rollbacks: When the Source is set back to what it was, and how many seconds before.
        crash: The Destination dies while it asks for something, and begins anew.
        crash_writing: It dies before or after it puts a copy in place, takes one away, or writes
            down what it knows; for each of these steps.
        power_cut: The power is cut while it puts copies in place: of those that it put there
            together, any are there afterwards, in no order; for each batch.
        disk_full: From and until when the Destination's disk is full.
        source_crash: The Source dies before or after it writes or removes a document; for each.
            Its next publication begins with what is there.
        source_disk_full: From and until when the Source's disk is full.
        push_lost: A notification does not come.
        push_doubled: A notification comes twice.
        push_forged: A notification comes, of nothing; for each publication.
    """

    lost: float = 0.0
    refused: float = 0.0
    failed: float = 0.0
    late: float = 0.0
    cut: float = 0.0
    doubled: float = 0.0
    altered: float = 0.0
    stale: float = 0.0
    wrong_hash: float = 0.0
    wrong_length: float = 0.0
    undated: float = 0.0
    changed_while_listed: float = 0.0
    dropped: float = 0.0
    holes: float = 0.0
    outages: tuple[tuple[float, float], ...] = ()
    storms: tuple[tuple[float, float], ...] = ()
    clock_steps: tuple[tuple[float, float], ...] = ()
    restarts: tuple[float, ...] = ()
    rollbacks: tuple[tuple[float, float], ...] = ()
    crash: float = 0.0
    crash_writing: float = 0.0
    power_cut: float = 0.0
    disk_full: tuple[tuple[float, float], ...] = ()
    source_crash: float = 0.0
    source_disk_full: tuple[tuple[float, float], ...] = ()
    push_lost: float = 0.0
    push_doubled: float = 0.0
    push_forged: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run of the simulator.

    Attributes:
        seed: Of all that is left to chance.
        start: When it begins, UTC.
        duration: How long it lasts, in seconds.
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
