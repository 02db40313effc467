"""Simulated Sources in real time, for clients over HTTP.

``LiveSource`` behaves like the resync-simulator, as its configuration says, and serves the same at
the same paths: numbered resources, a Resource List of the present state, and a Change List of the
last changes. ``ScenarioSource`` is the Source of ``simulate``, with the faults of its network: its
events and their times follow from the seed alone, only the requests do not. Nothing waits: due
events happen at the next request.
"""

import hashlib
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from html import escape
from math import inf
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync.documents import writer
from resourcesync.model import formatting
from resourcesync.model.capabilities import CapabilityEntry, Entry, Header
from resourcesync.model.digests import Digest
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import floor_to_second
from resourcesync.model.vocabulary import Capability, ChangeKind, Dialect, Relation
from resourcesync.simulator.clock import SimulatedClock
from resourcesync.simulator.network import STORM
from resourcesync.simulator.scenario import Scenario, Spans, is_within
from resourcesync.simulator.source import SimulatedAnswer, SimulatedSource
from resourcesync.source.plan import PublicationStep

PLAIN: Final = "text/plain; charset=utf-8"
PAGE: Final = "text/html; charset=utf-8"
MOMENT: Final = 1.0
"""Delay in seconds of a late answer, and duration of a lost one."""
_MICROSECOND: Final = 1e-6
"""Smallest interval that counts: the resolution of the clock."""
NOT_PLAYED: Final = (
    *("crash", "crash_writing", "power_cut", "disk_full"),
    *("push_lost", "push_doubled", "push_forged"),
)
"""Faults of a Destination, or of notifications, which are not sent over HTTP."""
_EVERY_SECOND: Final = 0.5


class LiveAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer.

    Attributes:
        status: The HTTP status; 0 for none: the connection is closed.
        media_type: The media type of the body.
        body: The bytes.
        etag: The entity tag of the body; empty for none.
        lastmod: The time when the resource changed; ``None`` for documents.
        wait: Seconds until it is sent.
    """

    status: int = 200
    media_type: str = PLAIN
    body: bytes = b""
    etag: str = ""
    lastmod: datetime | None = None
    wait: float = 0.0


class ScenarioSource:
    """Answers for the Source of a scenario, whose time passes as its owner says.

    Thread-safe.

    Args:
        scenario: The scenario; after its duration nothing changes or fails any more.
        base: The URI of the resources' root.
        clock: The clock of the Source.
        source: The Source.
        elapsed: Returns the number of seconds since the start that should have passed.
        stretch: Seconds, by ``elapsed``, that due events may take; the rest waits for the next
            request, so that a slow machine still answers.
    """

    def __init__(
        self,
        scenario: Scenario,
        base: str,
        clock: SimulatedClock,
        source: SimulatedSource,
        elapsed: Callable[[], float],
        stretch: float = inf,
    ) -> None:
        self._scenario = scenario
        self._base = base
        self._clock = clock
        self._source = source
        self._elapsed = elapsed
        self._stretch = stretch
        self._random = random.Random(f"live network {scenario.seed}")  # noqa: S311 - a simulation
        self._lock = threading.Lock()
        self._is_stopped = False
        self._has_ended = False

    def advance(self) -> None:
        """Let due events happen, each at its own time."""
        with self._lock:
            self._advance()

    def stop(self) -> None:
        """Stop: due events do not happen any more."""
        self._is_stopped = True

    def answer(self, path: str, *, uncached: bool = False) -> LiveAnswer:
        """Return the answer for a path now, with the faults of the network.

        Args:
            path: Below the root, without a slash at its start; empty for a page about this Source,
                which has no faults.
            uncached: True to bypass caches, which may have an older version.
        """
        with self._lock:
            self._advance()
            if not path:
                return LiveAnswer(media_type=PAGE, body=self._page().encode())
            return self._answer(path, uncached=uncached)

    def _advance(self) -> None:
        duration = self._scenario.duration
        now = self._elapsed()
        until = min(now, duration)
        while until - self._clock.elapsed > _MICROSECOND and not self._is_stopped:
            self._clock.pass_to_next(until)
            if self._elapsed() - now > self._stretch:
                return
        if duration - self._clock.elapsed <= _MICROSECOND and not self._has_ended:
            self._has_ended = True
            self._clock.cancel_all()
            self._source.stop_faults()
            self._source.publish(PublicationStep.REBASE)

    def _answer(self, path: str, *, uncached: bool) -> LiveAnswer:
        faults = self._scenario.faults
        if self._is_within(faults.outages) or self._happens(faults.lost):
            return LiveAnswer(status=0, wait=MOMENT)
        if self._is_within(faults.storms) and self._happens(_EVERY_SECOND):
            return LiveAnswer(status=self._random.choice(tuple(STORM)), body=b"There is a storm.\n")
        if self._happens(faults.failed):
            return LiveAnswer(status=503, body=b"The service is not available.\n")
        if self._happens(faults.refused):
            return _missing()
        wait = MOMENT if self._happens(faults.late) else 0.0
        is_stale = not uncached and self._happens(faults.stale)
        answer = self._source.answer(path, stale=is_stale)
        if answer is None:
            return _missing(wait)
        return LiveAnswer(
            media_type=answer.media_type,
            body=self._harmed(answer),
            etag=answer.etag,
            lastmod=answer.lastmod,
            wait=wait,
        )

    def _harmed(self, answer: SimulatedAnswer) -> bytes:
        """Return a body with the faults of its transfer; its length header fits it."""
        body, faults = answer.body, self._scenario.faults
        if body and self._happens(faults.cut):
            return body[: self._random.randrange(len(body))]
        if body and answer.lastmod is not None and self._happens(faults.altered):
            place = self._random.randrange(len(body))
            return body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        return body * 2 if self._happens(faults.doubled) else body

    def _is_within(self, spans: Spans) -> bool:
        elapsed = self._clock.elapsed
        return not self._has_ended and is_within(elapsed, spans)

    def _happens(self, rate: float) -> bool:
        return rate > 0 and not self._has_ended and self._random.random() < rate

    def _page(self) -> str:
        scenario, clock = self._scenario, self._clock
        life = f"{formatting.span(clock.elapsed)} of {formatting.span(scenario.duration)}"
        over = " The scenario has ended: no more changes or faults." if self._has_ended else ""
        faults = scenario.faults
        named = [name for name in faults.__struct_fields__ if getattr(faults, name)]
        played, left = [name for name in named if name not in NOT_PLAYED], _not_played(scenario)
        base = escape(self._base)
        return (
            "<!doctype html><title>A simulated Source</title><h1>A simulated Source</h1>"
            f"<p>Simulated time: {clock.now():%Y-%m-%d %H:%M:%S} UTC, seed {scenario.seed}: {life}."
            f" {len(self._source.origin.versions):,} resources;"
            f" published {self._source.published:,} times.{over}</p>"
            f'<p><a href="{base}.well-known/resourcesync">Source Description</a></p>'
            f"<pre>resourcesync pull {base} ./copy</pre>"
            f"<p>Faults: {', '.join(played) or 'none'}.</p>"
            + (f"<p>Not simulated over HTTP: {', '.join(left)}.</p>" if left else "")
        )


def _missing(wait: float = 0.0) -> LiveAnswer:
    return LiveAnswer(status=404, body=b"Not found.\n", wait=wait)


def _not_played(scenario: Scenario) -> list[str]:
    """Return the faults of a scenario that are not visible over HTTP."""
    faults = [f"faults.{name}" for name in NOT_PLAYED if getattr(scenario.faults, name)]
    return [*(["publish.push"] if scenario.publish.push else []), *faults]


WELL_KNOWN: Final = ".well-known/resourcesync"
CAPABILITIES: Final = "capabilitylist.xml"
_RESOURCES: Final = "resources"
_SAMPLE: Final = 100
_XML: Final = "application/xml"
_MOST_AT_ONCE: Final = 100_000


class LiveSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a live Source; the names are those of the resync-simulator where it has them.

    Attributes:
        name: The name of the Source.
        number_of_resources: Number of resources at first.
        change_delay: Seconds from one change to the next.
        event_types: The kinds of changes, each as likely as the others.
        average_payload: Lengths are from 0 to this, in bytes.
        max_events: Most changes; -1 for any number.
        max_changes: Number of changes that are listed.
        resource_list, change_list: The paths of the lists, below the root.
        dialect: The version that is written.
        tells_lastmod: True if changes have a ``lastmod``.
    """

    name: str = "ResourceSync simulator"
    number_of_resources: int = 1_000
    change_delay: float = 2.0
    event_types: tuple[ChangeKind, ...] = tuple(ChangeKind)
    average_payload: int = 1_000
    max_events: int = -1
    max_changes: int = 1_000
    resource_list: str = "resourcelist.xml"
    change_list: str = "changelist.xml"
    dialect: Dialect = Dialect.V1_1
    tells_lastmod: bool = True


class _LiveResource(msgspec.Struct, frozen=True):
    length: int
    lastmod: datetime


class LiveSource:
    """A Source that changes as time passes. Thread-safe.

    Args:
        settings: Its settings.
        base_uri: Its root, with a slash at its end.
        seed: The seed of all random choices.
        now: Its start, UTC.
    """

    def __init__(self, settings: LiveSettings, base_uri: str, seed: int, now: datetime) -> None:
        self._settings = settings
        self._base = base_uri
        self._random = random.Random(f"live {seed}")  # noqa: S311 - a simulation
        self._resources: dict[int, _LiveResource] = {}
        self._numbers: list[int] = []
        self._next = 1
        self._due = now + timedelta(seconds=settings.change_delay)
        self._began = now
        self._changes: deque[Change] = deque(maxlen=settings.max_changes)
        self._lock = threading.Lock()
        self.events = 0
        for _ in range(settings.number_of_resources):
            self._create(now)

    def advance_to(self, now: datetime) -> None:
        """Let due changes happen, each at its own time."""
        settings = self._settings
        for _ in range(_MOST_AT_ONCE):
            if self._due > now or self.events == settings.max_events:
                return
            self._change(self._due)
            self.events += 1
            self._due += timedelta(seconds=settings.change_delay)

    def answer(self, path: str, now: datetime) -> LiveAnswer:
        """Return the answer for a path now.

        Args:
            path: Below the root, without a slash at its start.
            now: The present moment, UTC.
        """
        with self._lock:
            self.advance_to(now)
            return self._answer(path, now)

    def _answer(self, path: str, now: datetime) -> LiveAnswer:
        settings = self._settings
        documents: Mapping[str, Callable[[], tuple[Header, Iterable[Entry]]]] = {
            WELL_KNOWN: self._description,
            CAPABILITIES: self._capabilities,
            settings.resource_list: lambda: self._resource_list(now),
            settings.change_list: self._change_list,
        }
        if path in documents:
            header, entries = documents[path]()
            chunks = writer.write(header, entries, settings.dialect)
            body = b"".join(chunks)
            return LiveAnswer(media_type=_XML, body=body, etag=_tag(body))
        if path in ("", _RESOURCES):
            return LiveAnswer(media_type=PAGE, body=self._page(path).encode())
        place, _, name = path.partition("/")
        number = int(name) if name.isascii() and name.isdigit() and len(name) < 16 else 0  # noqa: PLR2004
        resource = self._resources.get(number) if place == _RESOURCES else None
        if resource is None:
            return LiveAnswer(status=404, media_type=PLAIN, body=b"Not found.\n")
        body = _payload(number, resource.length)
        return LiveAnswer(
            media_type="text/plain", body=body, etag=_tag(body), lastmod=resource.lastmod
        )

    def _create(self, now: datetime) -> int:
        number, self._next = self._next, self._next + 1
        self._numbers.append(number)
        self._put(number, now)
        return number

    def _put(self, number: int, now: datetime) -> None:
        length = self._random.randint(0, self._settings.average_payload)
        self._resources[number] = _LiveResource(length, floor_to_second(now))

    def _change(self, now: datetime) -> None:
        kind = self._random.choice(self._settings.event_types)
        if kind is ChangeKind.CREATED or not self._numbers:
            self._log(ChangeKind.CREATED, self._create(now), now)
            return
        place = self._random.randrange(len(self._numbers))
        number = self._numbers[place]
        if kind is ChangeKind.DELETED:
            self._numbers[place] = self._numbers[-1]
            self._numbers.pop()
            del self._resources[number]
        else:
            self._put(number, now)
        self._log(kind, number, now)

    def _log(self, kind: ChangeKind, number: int, now: datetime) -> None:
        resource = Resource(uri=self._uri(f"{_RESOURCES}/{number}"))
        if kind is not ChangeKind.DELETED:
            resource = self._resource(number)
            if not self._settings.tells_lastmod:
                resource = replace(resource, lastmod=None)
        self._changes.append(Change(kind=kind, time=now, resource=resource))

    def _resource(self, number: int) -> Resource:
        resource = self._resources[number]
        return Resource(
            uri=self._uri(f"{_RESOURCES}/{number}"),
            lastmod=resource.lastmod,
            length=resource.length,
            digests=(Digest("md5", _md5(_payload(number, resource.length))),),
            media_type="text/plain",
        )

    def _uri(self, path: str) -> str:
        return self._base + path

    def _up(self, path: str) -> tuple[Link, ...]:
        return (Link(rel=Relation.UP.value, href=self._uri(path)),)

    def _description(self) -> tuple[Header, Sequence[CapabilityEntry]]:
        entry = CapabilityEntry(uri=self._uri(CAPABILITIES), capability=Capability.CAPABILITY_LIST)
        return Header(capability=Capability.DESCRIPTION), [entry]

    def _capabilities(self) -> tuple[Header, Sequence[CapabilityEntry]]:
        settings = self._settings
        entries = [
            CapabilityEntry(
                uri=self._uri(settings.resource_list), capability=Capability.RESOURCE_LIST
            ),
            CapabilityEntry(uri=self._uri(settings.change_list), capability=Capability.CHANGE_LIST),
        ]
        up = self._up(WELL_KNOWN)
        return Header(capability=Capability.CAPABILITY_LIST, links=up), entries

    def _resource_list(self, now: datetime) -> tuple[Header, Sequence[Resource]]:
        header = Header(capability=Capability.RESOURCE_LIST, at=now, links=self._up(CAPABILITIES))
        return header, [self._resource(number) for number in sorted(self._resources)]

    def _change_list(self) -> tuple[Header, Sequence[Change]]:
        first = self._changes[0].time if self.events > len(self._changes) else self._began
        header = Header(
            capability=Capability.CHANGE_LIST, from_=first, links=self._up(CAPABILITIES)
        )
        return header, list(self._changes)

    def _page(self, path: str) -> str:
        sample = sorted(self._resources)
        # Evenly, and not at random: a request changes none of the later random choices.
        sample = sample[:: -(-len(sample) // _SAMPLE) or 1]
        links = [
            f'<li><a href="{self._uri(f"{_RESOURCES}/{number}")}">{number}</a></li>'
            for number in sample
        ]
        lists = [WELL_KNOWN, CAPABILITIES, self._settings.resource_list, self._settings.change_list]
        named = [f'<li><a href="{self._uri(name)}">{escape(name)}</a></li>' for name in lists]
        name = escape(self._settings.name)
        shown = links if path else named
        return f"<!doctype html><title>{name}</title><h1>{name}</h1><ul>{''.join(shown)}</ul>"


def _payload(number: int, length: int) -> bytes:
    """Return the bytes of a resource: its name again and again, filled up with ``x``."""
    name = str(number).encode()
    return (name * (length // len(name))).ljust(length, b"x")


def _tag(content: bytes) -> str:
    return f'"{_md5(content)}"'


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()
