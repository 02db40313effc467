"""Cost calculator: what mirrors cost a Source, by each way to follow it, and advice; pure.

The numbers of requests are those of our own Destination, the bytes those of our own writer. Tests
compare both with the simulator and with real publications. All figures are of one mirror that
follows for long; nobody else changes what the Source serves.
"""

from math import ceil, exp
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

FollowMode = Literal["change-lists", "dumps", "resource-lists", "push", "sitemap"]
"""Ways to follow a Source."""

MINUTE: Final = 60.0
HOUR: Final = 3_600.0
DAY: Final = 86_400.0
MAX_ENTRIES: Final = 50_000
"""Entries of one list."""
MAX_PACKED: Final = 10_000
"""Entries of one package of a dump."""
_MAX_PACKAGE: Final = 256 * 2**20
_CLIENT_RATE: Final = 4_500.0
"""Resources a second that a Destination stores durably on a local disk."""
_SAFETY_POLL: Final = HOUR
_RECHECK: Final = 7 * DAY
"""Seconds between two polls of a subscriber, in case that a notification is lost."""
_MOST_CLOSED: Final = 50
"""Closed lists that a Destination checks each day."""

# Bytes, as our writer and common servers write them.
_RESOURCE_ENTRY: Final = 183
_CHANGE_ENTRY: Final = 239
_MANIFEST_ENTRY: Final = 223
_SITEMAP_ENTRY: Final = 63
_PACKED_ENTRY: Final = 110
"""Besides the manifest, twice the path, and the bytes of a resource that is not compressed."""
_LISTED_PART: Final = 150
_LISTED_PACKAGE: Final = 400
_SMALL_DOCUMENT: Final = 750
_HEAD: Final = 250
_NOT_MODIFIED: Final = 180
_NOTIFICATION: Final = 1_500


class CostInputs(msgspec.Struct, frozen=True, kw_only=True):
    """A Source and its mirrors.

    Attributes:
        resources: Number of resources.
        mean_size: Their mean length in bytes.
        changes_per_day: Changes a day.
        poll: Seconds from one poll of a mirror to the next.
        publish: Seconds from one publication to the next; ``None`` if as often as ``poll``.
        dumps: True if the Source has dumps.
        mirrors: Number of mirrors.
        uri_length: Mean length of a URI in bytes.
        rotate: Seconds after which a Change List is closed; ``None`` for the recommended time.
        keep: Seconds for which closed lists stay; ``None`` for the recommended time.
        rebase: Seconds from one Resource List to the next; 0 for never; ``None`` for the
            recommended time.
        max_entries: Most entries of one list.
        connections: Requests at a time.
        latency: Seconds until an answer starts.
        bandwidth: Bytes a second of one connection.

    Raises:
        ValueError: A value has no meaning.
    """

    resources: int
    mean_size: float = 10_000.0
    changes_per_day: float = 0.0
    poll: float = HOUR
    publish: float | None = None
    dumps: bool = False
    mirrors: int = 1
    uri_length: float = 50.0
    rotate: float | None = None
    keep: float | None = None
    rebase: float | None = None
    max_entries: int = MAX_ENTRIES
    connections: int = 100
    latency: float = 0.05
    bandwidth: float = 10e6

    def __post_init__(self) -> None:
        """Refuse values without meaning."""
        if min(self.resources, self.mean_size, self.changes_per_day, self.uri_length) < 0:
            raise ValueError("a Source has no negative number of resources, bytes or changes")
        counts = (self.connections, self.mirrors, self.max_entries)
        if min(self.poll, self.latency, self.bandwidth, *counts) <= 0:
            raise ValueError("times, numbers of mirrors and so on are more than 0")
        if min(self.publish or 1.0, self.rotate or 1.0, self.keep or 1.0, self.rebase or 1.0) <= 0:
            raise ValueError("no time is negative")

    @property
    def published_every(self) -> float:
        """Seconds from one publication to the next."""
        return self.publish or self.poll

    @property
    def change_entry(self) -> float:
        """Bytes of an entry of a Change List."""
        return self.uri_length + _CHANGE_ENTRY

    @property
    def resource_list(self) -> float:
        """Bytes of the Resource List, without its index."""
        return self.resources * (self.uri_length + _RESOURCE_ENTRY)

    @property
    def parts(self) -> int:
        """Number of documents of the Resource List, without its index."""
        return self.documents_of(self.resources)

    def documents_of(self, entries: float) -> int:
        """Return the number of lists with so many entries."""
        return max(1, ceil(entries / self.max_entries))


class ModeCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one mirror that follows in one way.

    Attributes:
        mode: The way.
        first_requests, first_bytes: Requests and received bytes of the first copy.
        first_seconds: Its duration in seconds, at least.
        daily_requests, daily_bytes: Requests and received bytes of each day after it.
        peak: The most requests within one second.
        staleness: Seconds from a change until its copy, the median.
    """

    mode: FollowMode
    first_requests: int
    first_bytes: int
    first_seconds: float
    daily_requests: int
    daily_bytes: int
    peak: int
    staleness: float


class CostAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """Recommended settings. Each follows from the inputs by the rule in its description.

    Attributes:
        change_lists: True if the changes of one poll need fewer bytes than the Resource List.
        dump: True if there are 1,000 resources or more, of 256 KiB or less in the mean: then most
            of the time of a first copy is that of the requests.
        change_dump: True if a poll finds 100 changes or more of such resources, and their
            requests cost more than twice the dump's own list of packages.
        push: True if changes are so frequent that the recommended poll is 15 minutes or less.
        gzip: True if the Resource List has 100 kB or more.
        publish: Seconds from one publication to the next: as given, or the shortest step with ten
            changes, so that most requests are for resources.
        rotate: Seconds after which a Change List is closed: of the steps with at most 50,000
            entries, the longest of those with which a mirror reads the fewest bytes of lists.
        keep: Seconds for which closed lists stay, and from one Resource List to the next
            (``rebase-every``): the longest step whose changes take no more bytes than the
            Resource List.
        max_entries: Most entries of one list.
        poll: Seconds from one poll to the next: the shortest step with ten changes, with which all
            mirrors together send at most one request a second while nothing changes; not shorter
            than a given ``publish``.
        connections: Requests at a time: the fewest with which a first copy takes six hours at
            most, and a poll a quarter of its interval.
    """

    change_lists: bool
    dump: bool
    change_dump: bool
    push: bool
    gzip: bool
    publish: float
    rotate: float
    keep: float
    max_entries: int
    poll: float
    connections: int


class CostEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the calculator.

    Attributes:
        inputs: The inputs, with the recommended times in place of ``None``.
        modes: The cost of each way, for one mirror.
        advice: The recommended settings.
    """

    inputs: CostInputs
    modes: tuple[ModeCost, ...]
    advice: CostAdvice


def estimate_cost(inputs: CostInputs) -> CostEstimate:
    """Return what each way to follow a Source costs it, and how to publish and to follow."""
    advice = advise(inputs)
    asked = replace(
        inputs,
        publish=inputs.published_every,
        rotate=advice.rotate if inputs.rotate is None else inputs.rotate,
        keep=advice.keep if inputs.keep is None else inputs.keep,
        rebase=advice.keep if inputs.rebase is None else inputs.rebase,
    )
    follow = _Follower(asked)
    modes = (
        *(follow.change_lists(), follow.dumps(), follow.resource_lists()),
        *(follow.push(), follow.sitemap()),
    )
    return CostEstimate(inputs=asked, modes=modes, advice=advice)


def advise(inputs: CostInputs) -> CostAdvice:
    """Return the recommended settings for a Source and its mirrors."""
    of, keep = inputs, _keep(inputs)
    publish = of.publish or _shortest(of)
    poll = _shortest(of, requests=3.0 * of.mirrors, least=of.publish or 0.0)
    polled = replace(of, publish=publish, poll=min(of.poll, poll))
    changes = of.changes_per_day * of.poll / DAY
    is_small = of.mean_size <= _SMALL_RESOURCE
    has_dump = is_small and of.resources >= _LEAST_DUMPED
    packages = keep / of.published_every * _LISTED_PACKAGE
    return CostAdvice(
        change_lists=changes * of.change_entry < of.resource_list,
        dump=has_dump,
        change_dump=is_small
        and changes >= _LEAST_CHANGES
        and changes * _REQUEST_COST >= 2 * packages,
        push=poll <= _PUSH_POLL,
        gzip=of.resource_list >= _LEAST_COMPRESSED,
        publish=publish,
        rotate=_rotate(replace(polled, keep=keep, rebase=0.0)),
        keep=keep,
        max_entries=MAX_ENTRIES,
        poll=poll,
        connections=_connections(of, 0 if has_dump else of.resources, changes),
    )


_SMALL_RESOURCE: Final = 256 * 1024
_REQUEST_COST: Final = 32 * 1024
"""Bytes that could be received in the time of one request."""
_LEAST_DUMPED: Final = 1_000
_LEAST_CHANGES: Final = 100
_LEAST_COMPRESSED: Final = 100_000
_PUSH_POLL: Final = 15 * MINUTE
_LEAST_NEWS: Final = 10
_LONGEST_COPY: Final = 6 * HOUR
_POLL_STEPS: Final = (5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, DAY)
_ROTATE_STEPS: Final = (30 * DAY, 7 * DAY, DAY, 6 * HOUR, HOUR)
_KEEP_STEPS: Final = (365 * DAY, 90 * DAY, 30 * DAY, 7 * DAY)
_CONNECTION_STEPS: Final = (4, 10, 25, 50, 100)


def _shortest(of: CostInputs, *, requests: float = 0.0, least: float = 0.0) -> float:
    """Return the shortest step with ten changes, and with at most one request a second."""
    for step in _POLL_STEPS:
        if of.changes_per_day * step >= DAY * _LEAST_NEWS and max(requests, least) <= step:
            return step
    return _POLL_STEPS[-1]


def _rotate(of: CostInputs) -> float:
    """Return the longest of the steps with which a mirror reads the fewest bytes of lists."""
    fitting = [step for step in _ROTATE_STEPS if of.changes_per_day * step <= MAX_ENTRIES * DAY]
    return min(
        fitting or _ROTATE_STEPS[-1:],
        key=lambda step: _Follower(replace(of, rotate=step)).read_lists(),
    )


def _keep(of: CostInputs) -> float:
    for step in _KEEP_STEPS:
        if of.changes_per_day * step / DAY * of.change_entry <= of.resource_list:
            return step
    return _KEEP_STEPS[-1]


def _connections(of: CostInputs, copied: int, changes: float) -> int:
    each = of.latency + of.mean_size / of.bandwidth
    for step in _CONNECTION_STEPS:
        if copied * each <= _LONGEST_COPY * step and changes * each <= of.poll / 4 * step:
            return step
    return _CONNECTION_STEPS[-1]


class _Transfer(msgspec.Struct, frozen=True):
    """Requests and bytes."""

    requests: float = 0.0
    received: float = 0.0

    def __add__(self, other: "_Transfer") -> "_Transfer":
        return _Transfer(self.requests + other.requests, self.received + other.received)

    def __mul__(self, times: float) -> "_Transfer":
        return _Transfer(self.requests * times, self.received * times)


_UNCHANGED: Final = _Transfer(1, _NOT_MODIFIED)
_SMALL: Final = _Transfer(1, _SMALL_DOCUMENT)
_POLL: Final = _UNCHANGED * 3
"""A poll without news: Change List, Capability List, Resource List."""
_DAILY: Final = _SMALL * 3
"""Once a day: ``robots.txt``, description, Capability List."""


class _Follower:
    """One mirror, all times of whose Source are known."""

    def __init__(self, inputs: CostInputs) -> None:
        self._in = inputs

    def read_lists(self) -> float:
        """Return the bytes of lists that a mirror reads in a day."""
        return self._lists(self._in.poll).received

    def change_lists(self) -> ModeCost:
        """Poll, and read the Change Lists that are new; fetch each resource."""
        of = self._in
        daily = self._lists(of.poll) + self._fetched(of.poll)
        first = self._packages_first() if of.dumps else self._plain_first()
        return self._mode("change-lists", first, daily, fetched=self._batch(of.poll))

    def dumps(self) -> ModeCost:
        """Copy from the Resource Dump, then read packages of the Change Dump."""
        of = self._in
        kept = (of.keep or 0.0) / of.published_every
        published = max(1.0, of.poll / of.published_every)
        packages = max(published, ceil(self._changes(of.poll) / MAX_PACKED))
        news = self._news(of.poll)
        daily = self._lists(of.poll)
        daily += _Transfer(1, _SMALL_DOCUMENT + kept * _LISTED_PACKAGE) * news
        daily += _Transfer(2 * packages, 2 * packages * _HEAD) * news
        daily += self._packed(of.changes_per_day if news else 0.0, _CHANGE_ENTRY)
        return self._mode("dumps", self._packages_first(), daily, fetched=0.0)

    def resource_lists(self) -> ModeCost:
        """Read the whole Resource List at each poll; fetch what differs."""
        of = self._in
        poll = _SMALL * 2 + self._resource_list() + self._open_list(of.poll) + _SMALL
        daily = poll * (DAY / of.poll) + self._fetched(of.poll) + _SMALL
        return self._mode(
            "resource-lists", self._plain_first(), daily, fetched=self._batch(of.poll)
        )

    def push(self) -> ModeCost:
        """Pull by the Change Lists at each notification, and poll in case that one is lost."""
        of = self._in
        interval = of.published_every
        daily = self._lists(interval, polls=self._news(interval)) + self._fetched(interval)
        daily += _Transfer(1, _NOTIFICATION) * self._news(interval) + _POLL * (DAY / _SAFETY_POLL)
        first = self._packages_first() if of.dumps else self._plain_first()
        cost = self._mode("push", first, daily, fetched=self._batch(interval))
        return replace(cost, staleness=interval / 2)

    def sitemap(self) -> ModeCost:
        """Read a plain sitemap at each poll; fetch what has another time."""
        of = self._in
        entry, parts = of.uri_length + _SITEMAP_ENTRY, of.parts
        head = _SMALL if parts > 1 else _Transfer(1, of.resources * entry)
        body = _Transfer(parts, of.resources * entry) if parts > 1 else _Transfer()
        first = _SMALL + head * 2 + body + self._resources(of.resources)
        daily = (head + body) * (DAY / of.poll) + self._fetched(of.poll) + _SMALL + head
        daily += _UNCHANGED * (of.resources * DAY / _RECHECK)
        return self._mode("sitemap", first, daily, fetched=self._batch(of.poll))

    def _mode(
        self, mode: FollowMode, first: _Transfer, daily: _Transfer, *, fetched: float
    ) -> ModeCost:
        of = self._in
        is_packed = mode == "dumps" or (of.dumps and mode in {"change-lists", "push"})
        at_once = fetched if is_packed else max(fetched, of.resources)
        alone = of.latency * first.requests + first.received / of.bandwidth
        each = of.latency + of.mean_size / of.bandwidth
        seconds = alone if is_packed else each * first.requests / of.connections
        possible = of.connections / of.latency
        return ModeCost(
            mode=mode,
            first_requests=round(first.requests),
            first_bytes=round(first.received),
            first_seconds=max(seconds, of.resources / _CLIENT_RATE),
            daily_requests=round(daily.requests),
            daily_bytes=round(daily.received),
            peak=ceil(
                max(min(at_once, possible, _CLIENT_RATE), min(first.requests, 1 / of.latency))
            ),
            staleness=(of.published_every + of.poll) / 2,
        )

    def _plain_first(self) -> _Transfer:
        return self._first_lists() + self._resources(self._in.resources)

    def _packages_first(self) -> _Transfer:
        of = self._in
        packages = max(
            ceil(of.resources / MAX_PACKED), ceil(of.resources * of.mean_size / _MAX_PACKAGE)
        )
        documents = _Transfer(1, _SMALL_DOCUMENT + packages * _LISTED_PACKAGE)
        documents += _Transfer(2 * packages, 2 * packages * _HEAD)
        return self._first_lists() + documents + self._packed(of.resources, _MANIFEST_ENTRY)

    def _first_lists(self) -> _Transfer:
        return _DAILY + self._resource_list() + _SMALL

    def _resource_list(self) -> _Transfer:
        parts = self._in.parts
        index = _Transfer(1, _SMALL_DOCUMENT + parts * _LISTED_PART) if parts > 1 else _Transfer()
        return index + _Transfer(parts, self._in.resource_list + parts * _SMALL_DOCUMENT)

    def _resources(self, count: float) -> _Transfer:
        return _Transfer(count, count * (self._in.mean_size + _HEAD))

    def _packed(self, count: float, entry: float) -> _Transfer:
        """Return packages and the copies of their manifests, without their header fields."""
        of = self._in
        manifest = of.uri_length + entry
        packed = of.mean_size + 2 * of.uri_length + _PACKED_ENTRY
        return _Transfer(0, count * (manifest + packed))

    def _changes(self, interval: float) -> float:
        """Return the changes that a pull finds, which comes after ``interval`` at most."""
        return self._in.changes_per_day * max(interval, self._in.published_every) / DAY

    def _batch(self, interval: float) -> float:
        """Return the resources that these are: some change twice."""
        of, changes = self._in, self._changes(interval)
        return of.resources * (1 - exp(-changes / of.resources)) if of.resources else changes

    def _news(self, interval: float) -> float:
        """Return the pulls of a day that find a change."""
        longer = max(interval, self._in.published_every)
        return DAY / longer * (1 - exp(-self._changes(interval)))

    def _fetched(self, interval: float) -> _Transfer:
        longer = max(interval, self._in.published_every)
        return self._resources(self._batch(interval) * DAY / longer)

    def _open_list(self, interval: float) -> _Transfer:
        """Return the open Change List in the mean of all moments when it was read."""
        of, batch = self._in, self._changes(interval)
        entries = max(batch, (self._closed_entries() + batch) / 2)
        return _Transfer(of.documents_of(batch), _SMALL_DOCUMENT + entries * of.change_entry)

    def _closed_entries(self) -> float:
        of = self._in
        age = max(of.rotate or of.keep or DAY, of.published_every)
        return max(1.0, min(float(of.max_entries), of.changes_per_day * age / DAY))

    def _lists(self, interval: float, *, polls: float | None = None) -> _Transfer:
        """Return what a mirror reads in a day besides resources and packages."""
        of, news = self._in, self._news(interval)
        polls = DAY / interval if polls is None else polls
        rest = _POLL * max(0.0, polls - news) + _DAILY
        rest += (_UNCHANGED * 3 + self._open_list(interval)) * news
        closed = self._closed_entries()
        if of.changes_per_day:
            rotations = min(news, of.changes_per_day / closed)
            kept = of.changes_per_day * (of.keep or 0.0) / DAY / closed
            rest += _Transfer(1, closed * of.change_entry + kept * _LISTED_PART) * rotations
            rest += _UNCHANGED * min(_MOST_CLOSED, kept)
        if of.rebase:
            rest += self._resource_list() * (DAY / of.rebase)
        return rest
