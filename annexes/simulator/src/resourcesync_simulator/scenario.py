"""Scenario of a simulation: an origin, its publication, its followers, and faults.

A field's type has its bounds, and ``form`` where a file writes it as a text.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import accumulate
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Meta

from resourcesync.destination.options import DumpPolicy

Strategy = Literal["changes", "lists", "sitemap"]

HOUR: Final = 3_600.0
DAY: Final = 86_400.0
LONGEST: Final = 3_660 * DAY
_FIRST: Final = datetime(1980, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(2999, 12, 31, tzinfo=UTC)
_LARGEST: Final = 1 << 30
"""A resource or a package is in memory while it is transferred."""

_MediaType = Annotated[
    str, Meta(pattern=r"^[\w!#$&^.+-]+/[\w!#$&^.+-]+( ?;[ -~]*)?$", max_length=100)
]
_Count = Annotated[int, Meta(ge=1, le=10_000_000)]
_Weight = Annotated[float, Meta(ge=0, le=1_000_000)]
_Bytes = Annotated[int, Meta(ge=1, le=_LARGEST)]
_Start = Annotated[datetime, Meta(extra={"form": "moment"})]
_Share = Annotated[float, Meta(ge=0, le=1)]
_Interval = Annotated[float, Meta(ge=1, le=LONGEST, extra={"form": "time"})]
_Age = Annotated[float, Meta(ge=0, le=LONGEST, extra={"form": "age"})]
_Moment = Annotated[float, Meta(ge=0, le=LONGEST)]
_Step = Annotated[float, Meta(ge=-LONGEST, le=LONGEST)]
_Moments = Annotated[tuple[_Moment, ...], Meta(extra={"form": "times"})]
_Steps = Annotated[tuple[tuple[_Moment, _Step], ...], Meta(extra={"form": "steps"})]
_Ages = Annotated[tuple[tuple[_Moment, _Moment], ...], Meta(extra={"form": "steps"})]
Spans = Annotated[tuple[tuple[_Moment, _Moment], ...], Meta(extra={"form": "spans"})]
"""Intervals, from and until, in seconds from the start."""


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone by its name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"there is no time zone {name[:100]!r}; UTC is one") from error


def _check_spans(name: str, spans: Spans) -> None:
    if any(since >= until for since, until in spans):
        raise ValueError(f"{name} must begin before it ends")


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

    median: _Bytes = 8_000
    spread: Annotated[float, Meta(ge=0, le=10)] = 1.2
    least: Annotated[int, Meta(ge=0, le=_LARGEST)] = 1
    most: _Bytes = 1_000_000

    def __post_init__(self) -> None:
        if not self.least <= self.median <= self.most:
            raise ValueError("median must be from least to most")


class Burst(msgspec.Struct, frozen=True, kw_only=True):
    """Many changes at one time of the day.

    Attributes:
        at: Seconds after midnight, in the zone.
        zone: A name of the time zone database, such as ``America/New_York``.
        days: Days of the week, 0 for Monday.
        changes: Number of changes.
    """

    at: Annotated[float, Meta(ge=0, lt=DAY, extra={"form": "clock"})]
    changes: _Count
    zone: str = "UTC"
    days: Annotated[
        frozenset[Annotated[int, Meta(ge=0, le=6)]], Meta(min_length=1, extra={"form": "days"})
    ] = frozenset(range(7))

    def __post_init__(self) -> None:
        zone_of(self.zone)


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

    resources: _Count = 1_000
    sizes: Sizes = msgspec.field(default_factory=Sizes)
    media_types: Annotated[tuple[_MediaType, ...], Meta(min_length=1)] = ("text/html",)
    per_second: Annotated[float, Meta(ge=0, le=10_000, extra={"form": "rate"})] = msgspec.field(
        default=0.0, name="changes"
    )
    bursts: tuple[Burst, ...] = ()
    create: _Weight = 0.2
    update: _Weight = 0.75
    delete: _Weight = 0.05

    def __post_init__(self) -> None:
        if not self.create + self.update + self.delete > 0:
            raise ValueError("create, update and delete cannot all be 0")


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
    every: _Interval = HOUR
    rotate: _Age = 0.0
    rebase: _Age = 0.0
    rebase_up_to: Annotated[int, Meta(ge=0, le=50_000)] = 0
    keep: _Age = 0.0
    push: bool = False
    dumps: bool = False
    dump_every: _Age = DAY
    max_package: Annotated[int, Meta(ge=1, le=_LARGEST, extra={"form": "size"})] = 256 * 2**20
    max_entries: Annotated[int, Meta(ge=1, le=50_000)] = 50_000


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

    name: Annotated[str, Meta(min_length=1, max_length=100)] = "mirror"
    every: _Interval = HOUR
    dumps: DumpPolicy = "auto"
    jobs: Annotated[int, Meta(ge=1, le=1_000)] = 8
    latency: Annotated[float, Meta(ge=0, le=DAY, extra={"form": "time"})] = 0.05
    bandwidth: Annotated[float, Meta(ge=1_000, le=1e15, extra={"form": "byte rate"})] = 10e6
    phase: _Share = 1.0
    offline: Spans = ()

    def __post_init__(self) -> None:
        if not self.name.isprintable():
            raise ValueError("name must be 1 to 100 visible characters")
        _check_spans("offline", self.offline)


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

    lost: _Share = 0.0
    refused: _Share = 0.0
    failed: _Share = 0.0
    late: _Share = 0.0
    cut: _Share = 0.0
    doubled: _Share = 0.0
    altered: _Share = 0.0
    stale: _Share = 0.0
    wrong_hash: _Share = 0.0
    wrong_length: _Share = 0.0
    undated: _Share = 0.0
    changed_while_listed: _Share = 0.0
    dropped: _Share = 0.0
    holes: _Share = 0.0
    outages: Spans = ()
    storms: Spans = ()
    clock_steps: _Steps = ()
    restarts: _Moments = ()
    rollbacks: _Ages = ()
    crash: _Share = 0.0
    crash_writing: _Share = 0.0
    power_cut: _Share = 0.0
    disk_full: Spans = ()
    source_crash: _Share = 0.0
    source_disk_full: Spans = ()
    push_lost: _Share = 0.0
    push_doubled: _Share = 0.0
    push_forged: _Share = 0.0

    def __post_init__(self) -> None:
        for name in ("outages", "storms", "disk_full", "source_disk_full"):
            _check_spans(name, getattr(self, name))
        ahead = accumulate(seconds for _, seconds in sorted(self.clock_steps))
        if any(abs(seconds) > LONGEST for seconds in ahead):
            raise ValueError("a clock cannot be wrong by more than 3,660 days")


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

    seed: Annotated[int, Meta(ge=0, le=1 << 53)] = 1
    start: _Start = datetime(2026, 1, 4, 12, tzinfo=UTC)
    duration: _Interval = 7 * DAY
    origin: OriginSettings = msgspec.field(default_factory=OriginSettings, name="source")
    publish: PublishSettings = msgspec.field(default_factory=PublishSettings)
    destinations: Annotated[tuple[DestinationSettings, ...], Meta(min_length=1)] = msgspec.field(
        default=(DestinationSettings(),), name="destination"
    )
    faults: Faults = msgspec.field(default_factory=Faults)

    def __post_init__(self) -> None:
        if not _FIRST <= self.start <= _LAST:
            raise ValueError("start must be from 1980 to 2999")
        _check_names(destination.name for destination in self.destinations)


def _check_names(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"two destinations have the name {name!r}")
        seen.add(name)
