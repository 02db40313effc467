"""Scenario of a simulation: an origin, its publication, its followers, and faults."""

from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

from resourcesync.destination.options import DumpPolicy

Strategy = Literal["changes", "lists", "sitemap"]

HOUR: Final = 3_600.0
DAY: Final = 86_400.0

Spans = tuple[tuple[float, float], ...]
"""Intervals, from and until, in seconds from the start."""


def is_within(elapsed: float, spans: Spans) -> bool:
    """True if a moment, in seconds from the start, is in one of the intervals."""
    return any(since <= elapsed < until for since, until in spans)


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Lengths of resources: a log-normal distribution, within bounds.

    Attributes:
        median: The median, in bytes.
        spread: Standard deviation of the logarithm; 0 makes all equal.
        least: The shortest, in bytes.
        most: The longest, in bytes.
    """

    median: int = 8_000
    spread: float = 1.2
    least: int = 1
    most: int = 1_000_000


class Burst(msgspec.Struct, frozen=True, kw_only=True):
    """Many changes at one time of the day.

    Attributes:
        at: Seconds after midnight, in the zone.
        zone: A name of the time zone database, such as ``America/New_York``.
        days: Days of the week, 0 for Monday.
        changes: Number of changes.
    """

    at: float
    changes: int
    zone: str = "UTC"
    days: frozenset[int] = frozenset(range(7))


class OriginSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The resources and their changes.

    Attributes:
        resources: Number of resources at first.
        sizes: Their lengths.
        media_types: Their media types, each as likely as the others.
        per_second: Changes a second, as a Poisson process.
        bursts: Further changes, many at a time.
        create, update, delete: Weights of the kinds of changes; their sum counts as one.
    """

    resources: int = 1_000
    sizes: Sizes = msgspec.field(default_factory=Sizes)
    media_types: tuple[str, ...] = ("text/html",)
    per_second: float = 0.0
    bursts: tuple[Burst, ...] = ()
    create: float = 0.2
    update: float = 0.75
    delete: float = 0.05


class PublishSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the Source's publication.

    Attributes:
        strategy: ``changes``: Change Lists from one Resource List to the next. ``lists``: each time
            a new Resource List, which Destinations read whole. ``sitemap``: each time a new plain
            sitemap, too, and Destinations read nothing else.
        every: Seconds from one publication to the next.
        rotate: Seconds after which an open Change List is closed; 0 for never.
        rebase: Seconds after which a new Resource List is written; 0 for never.
        rebase_up_to: Entries of a Resource List that is written again with each change, at most; 0
            for none.
        keep: Seconds for which closed Change Lists stay at least; 0 for ever.
        push: True to notify Destinations of each publication.
        dumps: True to publish a Resource Dump and a Change Dump, too.
        dump_every: Seconds from one dump to the next, at least; a dump precedes a publication.
        max_package: Most bytes of content in one package.
        max_entries: Most entries of one document.
    """

    strategy: Strategy = "changes"
    every: float = HOUR
    rotate: float = 0.0
    rebase: float = 0.0
    rebase_up_to: int = 0
    keep: float = 0.0
    push: bool = False
    dumps: bool = False
    dump_every: float = DAY
    max_package: int = 256 * 2**20
    max_entries: int = 50_000


class DestinationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one Destination.

    Attributes:
        name: Its name.
        every: Seconds from the end of one pull to the next, at most.
        dumps: True to use dumps: where that is cheaper, never, or always.
        jobs: Requests at a time.
        latency: Seconds until an answer starts.
        bandwidth: Bytes a second, of each request.
        phase: The share of ``every`` that passes before the second pull, 0 to 1: a client that
            pulls as often as the Source publishes would otherwise always pull just before or just
            after a publication.
        offline: Intervals without pulls, in seconds from the start.
    """

    name: str = "mirror"
    every: float = HOUR
    dumps: DumpPolicy = "auto"
    jobs: int = 8
    latency: float = 0.05
    bandwidth: float = 10e6
    phase: float = 1.0
    offline: tuple[tuple[float, float], ...] = ()


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """Faults. Rates are for each request, or for each named object, 0 to 1.

    Attributes:
        lost: No answer comes in 30 seconds.
        refused: The answer is 404.
        failed: The answer is 503.
        late: The answer takes ten times as long, and a second.
        cut: The body ends too early, without an error.
        doubled: The body comes twice, one after the other.
        altered: Some bytes of the body differ.
        stale: The answer is an older version, as from a cache.
        wrong_hash: The Source lists another digest than the resource has.
        wrong_length: The Source lists another length than the resource has.
        undated: A change is listed without its time.
        changed_while_listed: A resource is listed as it was before.
        dropped: One of the Source's documents is missing until the next publication; for each
            publication.
        holes: An index of Change Lists leaves one of them out; for each index.
        outages: Intervals without any answer, in seconds from the start.
        storms: Intervals in which every second answer is an error, of the client's or of the
            server's: 403, 404, 410, 429, 500, 502, 503 or 504.
        clock_steps: The times and sizes of steps of the Source's clock, in seconds.
        restarts: The times when the Source starts its lists over at the same addresses.
        rollbacks: The times when the Source is rolled back, and the age in seconds of the state
            that it is restored to.
        crash: The Destination crashes during a request, and restarts.
        crash_writing: It crashes before or after it installs a copy, removes one, or stores its
            state; for each of these steps.
        power_cut: The power is cut while it installs a batch of copies: any of them survive, in no
            order; for each batch.
        disk_full: Intervals in which the Destination's disk is full.
        source_crash: The Source crashes before or after it writes or removes a document; for each.
            Its next publication starts with the documents that exist.
        source_disk_full: Intervals in which the Source's disk is full.
        push_lost: A notification does not arrive.
        push_doubled: A notification arrives twice.
        push_forged: A forged notification arrives; for each publication.
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


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the simulator.

    Attributes:
        seed: The seed of all random choices.
        start: The start, UTC.
        duration: The duration, in seconds.
        origin: The resources.
        publish: The settings of the publication.
        destinations: The Destinations.
        faults: The faults.
    """

    seed: int = 1
    start: datetime = datetime(2026, 1, 4, 12, tzinfo=UTC)
    duration: float = 7 * DAY
    origin: OriginSettings = msgspec.field(default_factory=OriginSettings)
    publish: PublishSettings = msgspec.field(default_factory=PublishSettings)
    destinations: tuple[DestinationSettings, ...] = (DestinationSettings(),)
    faults: Faults = msgspec.field(default_factory=Faults)
