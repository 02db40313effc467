"""``eventstreams:URL``: changes that a wiki of Wikimedia reports by Server-Sent Events.

The position is the last ``id`` received; it is sent as ``Last-Event-ID``, and the server resumes
after it. A connection that breaks, ends or falls silent is reopened; the pauses grow with each
failure.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    SourceError,
    SourceUnavailableError,
    StateError,
)
from resourcesync.model.entries import Resource
from resourcesync.model.timestamps import format_w3c
from resourcesync.ports import Clock, FetchResponse
from resourcesync.ports.accounts import AccountOptions, ChangeBatch, ResourceAccount
from resourcesync.ports.originals import Omission
from resourcesync_eventstreams import recent_changes
from resourcesync_eventstreams.event_stream import MAX_EVENT, EventReader, ServerSentEvent, Streamer
from resourcesync_eventstreams.pending_changes import DecodedEvent, PendingChanges, printable

_KEYS: Final = frozenset({recent_changes.GAPS, "quiet", "silence"}) | recent_changes.KEYS
FIRST_PAUSE: Final = 1.0
"""Seconds before the first reconnection; each further pause is twice as long."""
_LONGEST_PAUSE: Final = 60.0
_MOST_SECONDS: Final = 86_400.0
_MOST_ID: Final = 8 * 1024
_TYPE: Final = "text/event-stream"
_TOO_LARGE: Final = f"an event of more than {MAX_EVENT:,} bytes"


class EventPosition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A position in the stream.

    Attributes:
        id: The last ``id`` received.
        moment: Time of the last event; before the first one, the requested start.
    """

    id: str = ""
    moment: datetime | None = None


class StreamOptions(NamedTuple):
    """Options of reading a stream.

    Attributes:
        quiet: Seconds without an event until a caller that does not wait gets the result.
        silence: Seconds without any byte until a connection counts as dead.
        since: The time to begin at the first time; ``None`` for the present.
        accept_gaps: Go on after lost changes.
    """

    quiet: float = 2.0
    silence: float = 90.0
    since: datetime | None = None
    accept_gaps: bool = False


@contextmanager
def open_account(options: AccountOptions) -> Iterator[ResourceAccount]:
    """Open the account of a stream ``recentchange`` of Wikimedia EventStreams."""
    values = options.values
    _check_values(values)
    chosen = recent_changes.RecentChangeFilter.parse(values)
    manner = _parse_options(values)
    uri = options.address.partition(":")[2]
    if not uri.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"{options.address} is not the address of a stream",
            hint="write it as eventstreams:https://HOST/PATH",
        )
    if "@" in urlsplit(uri).netloc:
        raise ConfigurationError(
            "the address of the stream has a user or a password in it",
            hint="give them as a named secret: --auth NAME",
        )
    with options.fetcher(uri) as fetcher:
        if not isinstance(fetcher, Streamer):
            raise ConfigurationError(f"what fetches {uri} cannot read streams")
        yield EventStream(uri, fetcher, chosen, options.clock, manner)


def _check_values(values: Mapping[str, str]) -> None:
    """Refuse unknown options."""
    for key in sorted(values.keys() - _KEYS):
        raise ConfigurationError(
            f"eventstreams: has no option {key}",
            evidence=tuple(("known", name) for name in sorted(_KEYS)),
            code="unknown-key",
        )
    accepted = recent_changes.ACCEPTED
    if values.get(recent_changes.GAPS, accepted) != accepted:
        raise ConfigurationError(f"the option {recent_changes.GAPS} is {accepted}, or is left out")


def _parse_options(values: Mapping[str, str]) -> StreamOptions:
    usual = StreamOptions()
    return StreamOptions(
        quiet=_parse_seconds(values, "quiet", usual.quiet),
        silence=_parse_seconds(values, "silence", usual.silence),
        since=recent_changes.parse_since(values),
        accept_gaps=recent_changes.GAPS in values,
    )


def _parse_seconds(values: Mapping[str, str], key: str, usual: float) -> float:
    """Return a number of seconds."""
    try:
        found = float(values.get(key, usual))
    except ValueError:
        found = 0.0
    if not 0 < found <= _MOST_SECONDS:
        raise ConfigurationError(f"the option {key} is a number of seconds, up to a day")
    return found


class EventStream(ResourceAccount):
    """An account of a stream of events."""

    can_list_resources = False

    def __init__(
        self,
        uri: str,
        streamer: Streamer,
        chosen: recent_changes.RecentChangeFilter,
        clock: Clock,
        manner: StreamOptions,
    ) -> None:
        self._uri = uri
        self._streamer = streamer
        self._chosen = chosen
        self._clock = clock
        self._manner = manner

    def resources(self) -> Iterator[Resource]:
        """Refuse: an event stream reports changes only."""
        raise ConfigurationError("an event stream reports changes only, not all resources")

    def position(self) -> str:
        """Return the present, or the configured start."""
        return _encode_position(EventPosition(moment=self._manner.since or self._clock.now()))

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        """Yield the changes in the stream after a position."""
        listening = StreamSession(self._clock, _decode_position(after), wait)
        while not listening.is_over:
            trouble: SourceError | None = None
            try:
                yield from self._read_connection(listening)
            except SourceError as error:
                trouble = error
            if listening.lot:
                yield listening.take_batch()
            listening.record_end(trouble)
            if trouble is not None and listening.must_raise(trouble):
                raise trouble
            self._clock.sleep(listening.pause())

    def _read_connection(self, listening: "StreamSession") -> Iterator[ChangeBatch]:
        """Yield the changes from one connection."""
        reader = listening.connect()
        uri, fields = self._request(listening.position)
        with closing(_to_end(self._streamer.stream(uri, fields))) as chunks:
            for chunk in chunks:
                listening.record_arrival(chunk)
                for event in reader.read(chunk):
                    self._handle_event(event, listening)
                    if listening.lot.is_full:
                        yield listening.take_batch()
                        listening.record_resumption()
                if listening.lot.is_due:
                    yield listening.take_batch()
                    listening.record_resumption()
                if listening.check_limits(self._manner):
                    return

    def _request(self, place: "EventPosition") -> tuple[str, tuple[tuple[str, str], ...]]:
        """Return the URI to request, and the header fields."""
        fields = (("Accept", _TYPE), ("Cache-Control", "no-store"))
        if place.id:
            return self._uri, (*fields, ("Last-Event-ID", place.id))
        if place.moment is None:
            return self._uri, fields
        mark = "&" if "?" in self._uri else "?"
        return f"{self._uri}{mark}since={format_w3c(place.moment)}", fields

    def _handle_event(self, event: ServerSentEvent, listening: "StreamSession") -> None:
        found = event.last_id
        if len(found) > _MOST_ID or not (found.isascii() and found.isprintable()):
            raise BadResponseError(
                "the stream has an id that is invalid in a header field", uri=self._uri
            )
        if not found and event.has_data and not self._manner.accept_gaps:
            raise BadResponseError(
                "the events of the stream have no id: events between two connections would be lost",
                uri=self._uri,
                hint="to accept that, set the option gaps: --with gaps=accept",
            )
        heard = DecodedEvent((), None)
        if event.has_data and event.is_whole:
            heard = recent_changes.decode_recent_change(
                event,
                listening.resume_moment(),
                chosen=self._chosen,
                accept_gaps=self._manner.accept_gaps,
            )
        elif event.has_data:
            heard = DecodedEvent((Omission(name=printable(event.data), reason=_TOO_LARGE),), None)
        listening.add(heard, event)


class StreamSession:
    """The state of one call of ``changes``.

    Attributes:
        position: The position in the stream.
        lot: Changes not yet yielded.
        is_over: This call reads no more.
    """

    def __init__(self, clock: Clock, position: EventPosition, wait: float) -> None:
        self.position = position
        self.lot = PendingChanges(clock)
        self.is_over = False
        self._clock = clock
        self._started = clock.now()
        self._waits = wait > 0
        self._until = clock.monotonic() + wait
        self._reader = EventReader()
        self._pause = 0.0
        self._is_resumed = bool(position.id)
        self._has_heard = self._is_caught_up = False
        self._arrived_at = self._heard_at = 0.0

    def connect(self) -> EventReader:
        """Begin a connection; return its decoder."""
        self._reader = EventReader(self.position.id)
        self._arrived_at = self._heard_at = 0.0
        return self._reader

    def record_arrival(self, chunk: bytes) -> None:
        """Record that a response arrives, and whether it has new bytes."""
        if chunk or not self._arrived_at:
            self._arrived_at = self._clock.monotonic()
        self._heard_at = self._heard_at or self._arrived_at

    def record_resumption(self) -> None:
        """Record that the caller continues: its time does not count for the server."""
        self._arrived_at = self._heard_at = self._clock.monotonic()

    def resume_moment(self) -> datetime | None:
        """Return the time of the position that this call was given, until an event has its own."""
        return self.position.moment if self._is_resumed else None

    def add(self, heard: DecodedEvent, event: ServerSentEvent) -> None:
        """Add the content of an event."""
        self.lot.add(heard.entries, event.size)
        self.position = EventPosition(id=event.last_id, moment=heard.moment or self.position.moment)
        self._heard_at, self._has_heard, self._pause = self._arrived_at, True, 0.0
        if heard.moment is not None:
            self._is_resumed = False
        if heard.moment is not None and heard.moment >= self._started:
            self._is_caught_up = True

    def take_batch(self) -> ChangeBatch:
        """Return the changes received since the last batch."""
        return self.lot.take(_encode_position(self.position))

    def check_limits(self, manner: StreamOptions) -> bool:
        """True if the connection should be closed.

        Time is up, or the caller waits for nothing more; or the connection seems to be dead.
        """
        now = self._clock.monotonic()
        if self._waits:
            self.is_over = now >= self._until
        else:
            is_quiet = not self._reader.is_incomplete and now - self._heard_at >= manner.quiet
            self.is_over = self._is_caught_up or is_quiet
        return self.is_over or now - self._arrived_at >= manner.silence

    def record_end(self, trouble: SourceError | None) -> None:
        """Record the end of a connection, and its cause."""
        self._pause = min(max(FIRST_PAUSE, self._pause * 2), _LONGEST_PAUSE)
        asked = self._reader.retry or 0.0
        if isinstance(trouble, SourceUnavailableError):
            asked = trouble.retry_after or 0.0
        self._pause = max(self._pause, min(asked, _LONGEST_PAUSE))
        if self._clock.monotonic() + self._pause >= self._until:
            self.is_over = True

    def must_raise(self, trouble: SourceError) -> bool:
        """True if the error must be raised: it is permanent, or there is no other result."""
        return not trouble.transient or (self.is_over and not self._has_heard)

    def pause(self) -> float:
        """Return the seconds until the next connection; the time left, if there is to be none."""
        left = max(0.0, self._until - self._clock.monotonic())
        return min(self._pause, left)


def _to_end(stream: Generator[bytes, None, FetchResponse]) -> Generator[bytes, None, None]:
    """Yield the bytes of a stream, and check at its end that it was one of events."""
    response = yield from stream
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _TYPE:
        raise BadResponseError(
            "it is not an event stream", uri=response.uri, evidence=(("got", kind[:100]),)
        )


def _encode_position(position: EventPosition) -> str:
    return msgspec.json.encode(position).decode()


def _decode_position(text: str) -> EventPosition:
    try:
        return msgspec.json.decode(text, type=EventPosition)
    except msgspec.MsgspecError as error:
        raise StateError(
            "the stored position of the stream is invalid", evidence=(("got", text[:200]),)
        ) from error
