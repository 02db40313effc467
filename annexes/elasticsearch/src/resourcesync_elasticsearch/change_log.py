"""The change log of an index: its new entries, and the resources that they are about.

Entries can become visible in another order than they were written; ``LogPosition`` allows for that.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from resourcesync.errors import BadResponseError, DiscontinuityError
from resourcesync.model import formatting
from resourcesync.model.entries import Change, Resource
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Clock
from resourcesync.ports.accounts import ChangeBatch
from resourcesync_elasticsearch.client import SearchServer, segment
from resourcesync_elasticsearch.documents import (
    TIMES,
    DocumentLocation,
    Locations,
    Query,
    parse_date,
)
from resourcesync_elasticsearch.point_in_time import Hit, PointInTimeView, check_complete

MAX_REMEMBERED: Final = 50_000
"""The most changes that are stored one by one."""
_VERSION: Final = 1


class LogPosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A position in the log: all changes before ``start`` are reported, and those in ``seen``.

    Attributes:
        log: An identity that differs after the log is recreated.
        start: A time, in milliseconds since 1970.
        seen: The ``_id`` of each reported change since then.
        undated: Number of changes without a date; their order is not known.
    """

    log: str
    start: int = 0
    seen: frozenset[str] = frozenset()
    undated: int = 0
    version: int = _VERSION

    def encode(self) -> str:
        """Return the position as text."""
        return msgspec.json.encode(self).decode()


class ReportedEntry(NamedTuple):
    """A reported change: its ``_id`` and its time in milliseconds."""

    name: str
    logged: int


def decode_position(text: str) -> LogPosition:
    """Return the position encoded in a text."""
    try:
        found = msgspec.json.decode(text, type=LogPosition)
    except msgspec.DecodeError as error:
        raise DiscontinuityError("the position is of another program", code="bad-position") from (
            error
        )
    if found.version != _VERSION:
        raise DiscontinuityError("the position is of another version", code="bad-position")
    return found


def advance_position(
    position: LogPosition, told: Iterable[ReportedEntry], *, boundary: int, held: int | None
) -> LogPosition:
    """Return the position after some changes."""
    known = list(told)
    start = max(position.start, boundary)
    start = narrow_start(known, start) if held is None else max(position.start, min(start, held))
    seen = frozenset(entry.name for entry in known if entry.logged >= start)
    return LogPosition(log=position.log, start=start, seen=seen, undated=position.undated)


def narrow_start(known: Sequence[ReportedEntry], start: int) -> int:
    """Return a time from which on no more changes are known than can be stored.

    If one second has more, late changes of that second are missed until the next full read.
    """
    newest = max((entry.logged for entry in known), default=start)
    for moment in (start, newest):
        if sum(entry.logged >= moment for entry in known) <= MAX_REMEMBERED:
            return moment
    return newest + 1


MOST_PENDING: Final = 100_000
"""Number of changes above which reading all resources is quicker."""
LOOKUP_BATCH: Final = 1_000
"""Resources in one lookup."""
_MILLI: Final = 1_000

ResourceLookup = Callable[[Sequence[str]], Mapping[str, Resource]]
"""Returns the current state of some resources by URI; those that are gone are left out."""


class LogEntry(NamedTuple):
    """An entry of the log.

    Attributes:
        name: The document's ``_id``.
        logged: The time that it is ordered by, in milliseconds: ``timestamp``, else ``datetime``.
        happened: ``datetime`` in milliseconds, else ``logged``.
        uri: The resource.
        kind: The kind of change.
        lastmod: The resource's last modification.
    """

    name: str
    logged: int
    happened: int
    uri: str
    kind: str
    lastmod: datetime | None


class DocumentLookup:
    """A lookup of the documents of resources by their URIs."""

    def __init__(
        self, place: DocumentLocation, view: PointInTimeView, locations: Locations
    ) -> None:
        self._place = place
        self._view = view
        self._locations = locations

    def hits(self, uris: Sequence[str]) -> Iterator[tuple[str, Hit]]:
        """Yield the documents of some resources, each with the resource's URI."""
        wanted = frozenset(uris)
        values = {value: None for uri in uris for value in self._locations.spellings(uri)}
        query = self._place.query(self._place.location_condition(list(values)))
        with closing(self._view.hits(query)) as hits:
            for hit in hits:
                uri = self._locations.uri(hit["_source"].get("location"))
                if uri in wanted:
                    yield uri, hit


class IndexChangeLog:
    """The change log of one index, read as far as it is visible."""

    def __init__(
        self,
        server: SearchServer,
        place: DocumentLocation,
        view: PointInTimeView,
        *,
        locations: Locations,
        window: int,
        clock: Clock,
    ) -> None:
        self._server = server
        self._place = place
        self._view = view
        self._locations = locations
        self._window = window
        self._clock = clock

    def position(self, look_up: ResourceLookup) -> LogPosition:
        """Return the position after all changes that are visible and effective."""
        newest, undated = self._survey()
        empty = LogPosition(log=self._place.identity, undated=undated)
        if newest is None:
            return empty
        entries = self._entries(LogPosition(log="", start=self._boundary(newest)))
        if entries is None:
            entries = self._entries(LogPosition(log="", start=newest))
        if entries is None:
            return LogPosition(log=empty.log, start=newest + 1, undated=undated)
        known = [ReportedEntry(entry.name, entry.logged) for entry in entries]
        start = narrow_start(known, max(0, self._boundary(newest)))
        recent = [entry for entry in entries if entry.logged >= start]
        waiting = set()
        for some in _batches(_newest_by_resource(recent)):
            states = look_up([entry.uri for entry in some])
            waiting |= {
                log_entry.uri
                for log_entry in some
                if self._is_early(log_entry, states.get(log_entry.uri))
            }
        seen = frozenset(log_entry.name for log_entry in recent if log_entry.uri not in waiting)
        return LogPosition(log=empty.log, start=start, seen=seen, undated=undated)

    def new_changes(self, position: LogPosition, look_up: ResourceLookup) -> Iterator[ChangeBatch]:
        """Yield the visible changes not yet reported, and the position after them."""
        entries = self._pending(position)
        told = [
            ReportedEntry(entry.name, entry.logged)
            for entry in entries
            if entry.name in position.seen
        ]
        fresh = [entry for entry in entries if entry.name not in position.seen]
        newest = max((entry.logged for entry in entries), default=position.start)
        boundary = self._boundary(newest)
        names: dict[str, list[ReportedEntry]] = {}
        for entry in fresh:
            names.setdefault(entry.uri, []).append(ReportedEntry(entry.name, entry.logged))
        held: list[int] = []
        some: Sequence[Change] = ()
        for lot in _batches(_newest_by_resource(fresh)):
            if some:  # later changes are pending: only the reported names are added
                seen = frozenset(entry.name for entry in told)
                yield ChangeBatch(msgspec.structs.replace(position, seen=seen).encode(), some)
            states = look_up([entry.uri for entry in lot])
            some = []
            for entry in lot:
                state = states.get(entry.uri)
                if self._is_early(entry, state):
                    held += [name.logged for name in names[entry.uri]]
                    continue
                told += names[entry.uri]
                some.append(_change(entry, state))
        after = advance_position(position, told, boundary=boundary, held=min(held, default=None))
        if some or held or after != position:
            yield ChangeBatch(after.encode(), some, warnings=self._warnings(len(held)))

    def _warnings(self, held: int) -> Sequence[tuple[str, str]]:
        """Return warnings of the changes that are held back: number, time, reason."""
        if not held:
            return ()
        seconds = formatting.duration(self._window / _MILLI)
        changes = formatting.counted(held, "change")
        why = "what they did cannot be seen there yet"
        return (("held-back", f"{changes} held back for up to {seconds}: {why}"),)

    def _pending(self, position: LogPosition) -> list[LogEntry]:
        if position.log != self._place.identity:
            raise _discontinuity("the change log was recreated, or is read with other options")
        _, undated = self._survey()
        if undated != position.undated:
            raise _discontinuity(f"{undated} changes in the log have no date")
        entries = self._entries(position)
        if entries is None:
            raise _discontinuity(f"more than {MOST_PENDING:,} changes were logged")
        if not position.seen <= {entry.name for entry in entries}:
            raise _discontinuity("changes were erased from the log")
        return entries

    def _boundary(self, newest: int) -> int:
        """Return the time from which on more changes may become visible.

        It is relative to the newest change, not to the local clock: the writer's clock matters,
        unless that is ahead.
        """
        now = to_microseconds(self._clock.now()) // _MILLI
        return min(newest, now) - self._window

    def _is_early(self, entry: LogEntry, state: Resource | None) -> bool:
        """True if a change is visible, and its effect on the resource is not yet."""
        if entry.kind == ChangeKind.DELETED:
            agrees = state is None
        elif state is None:
            agrees = False
        else:
            times = entry.lastmod, state.lastmod
            agrees = times[0] is None or times[1] is None or times[1] >= times[0]
        age = to_microseconds(self._clock.now()) // _MILLI - entry.logged
        return not agrees and abs(age) < self._window

    def _survey(self) -> tuple[int | None, int]:
        """Return the newest time in the log, and the number of changes without one."""
        undated: Query = {"bool": {"must_not": [_exists(name) for name in self._place.times]}}
        groups = {
            str(number): {"filter": condition, "aggs": {"newest": {"max": {"field": name}}}}
            for number, (name, condition) in enumerate(self._dated_by())
        }
        body = {
            "size": 0,
            "query": self._place.query(),
            "aggs": {**groups, "undated": {"filter": undated}},
        }
        answer = self._server.request(
            "POST",
            f"/{segment(self._place.index)}/_search",
            body,
            query={"allow_partial_search_results": "false"},
        )
        check_complete(self._server, answer)
        try:
            found = answer["aggregations"]
            newest = [found[name]["newest"]["value"] for name in groups]
            times = [int(item) for item in newest if item is not None]
            return max(times, default=None), int(found["undated"]["doc_count"])
        except (KeyError, TypeError, ValueError) as error:
            raise self._malformed(error) from error

    def _dated_by(self) -> Iterator[tuple[str, Query]]:
        """Yield each field that orders changes, with the condition for which it does."""
        earlier: list[Query] = []
        for name in self._place.times:
            yield name, {"bool": {"filter": [_exists(name)], "must_not": list(earlier)}}
            earlier.append(_exists(name))

    def _entries(self, position: LogPosition) -> list[LogEntry] | None:
        """Return all changes since the position; ``None`` if there are too many."""
        since = [
            {"bool": {"filter": [condition, _since(name, position.start)]}}
            for name, condition in self._dated_by()
        ]
        logged = self._view.hits(
            self._place.query({"bool": {"should": since, "minimum_should_match": 1}}),
            _source=["location", "change", "lastmod"],
            docvalue_fields=[
                {"field": time, "format": "epoch_millis"} for time in self._place.times
            ],
        )
        found = []
        with closing(logged) as hits:
            for hit in hits:
                if self._view.total > MOST_PENDING:
                    return None
                found.append(self._entry(hit))
        return found

    def _entry(self, hit: Hit) -> LogEntry:
        try:
            source, fields = hit["_source"], hit["fields"]
            times = {name: int(fields[name][0]) for name in TIMES if name in fields}
            at = times["timestamp"] if "timestamp" in times else times["datetime"]
            uri = self._locations.uri(source.get("location"))
            return LogEntry(
                name=hit["_id"],
                logged=at,
                happened=times.get("datetime", at),
                uri=uri or f"{hit['_id']} (a document without a location)",
                kind=str(source.get("change", "")).strip().lower(),
                lastmod=parse_date(source.get("lastmod")),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._malformed(error) from error

    def _malformed(self, error: Exception) -> BadResponseError:
        return BadResponseError(
            f"{self._place.index} returns changes in an unknown format",
            uri=self._server.address,
            evidence=(("got", f"{type(error).__name__}: {error}"[:300]),),
        )


def _newest_by_resource(entries: Iterable[LogEntry]) -> list[LogEntry]:
    """Return the last change of each resource, the oldest of them first."""
    last: dict[str, LogEntry] = {}
    for entry in sorted(entries, key=lambda log_entry: (log_entry.happened, log_entry.logged)):
        last.pop(entry.uri, None)
        last[entry.uri] = entry
    return list(last.values())


def _batches(entries: Iterable[LogEntry]) -> Iterator[list[LogEntry]]:
    rest = iter(entries)
    while some := list(islice(rest, LOOKUP_BATCH)):
        yield some


def _change(entry: LogEntry, state: Resource | None) -> Change:
    time = from_microseconds(entry.happened * _MILLI)
    if state is None:
        return Change(kind=ChangeKind.DELETED, time=time, resource=Resource(uri=entry.uri))
    is_new = entry.kind == ChangeKind.CREATED
    kind = ChangeKind.CREATED if is_new else ChangeKind.UPDATED
    return Change(kind=kind, time=time, resource=state)


def _exists(name: str) -> Query:
    return {"exists": {"field": name}}


def _since(name: str, start: int) -> Query:
    return {"range": {name: {"gte": start, "format": "epoch_millis"}}}


def _discontinuity(why: str) -> DiscontinuityError:
    return DiscontinuityError(why, evidence=(("kept", "what was recorded before"),))
