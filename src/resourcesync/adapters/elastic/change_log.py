"""The change log of an index: its new entries, and the resources that they are about.

Entries can become visible in another order than they were written; ``LogPosition`` allows for that.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from resourcesync.adapters.elastic.client import SearchServer, segment
from resourcesync.adapters.elastic.documents import (
    TIMES,
    DocumentLocation,
    Locations,
    Query,
    parse_date,
)
from resourcesync.adapters.elastic.point_in_time import Hit, PointInTimeView, check_complete
from resourcesync.errors import BadResponseError, DiscontinuityError
from resourcesync.model import formatting
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Clock
from resourcesync.ports.accounts import ChangeBatch

MAX_REMEMBERED: Final = 50_000
"""The most changes that are remembered one by one."""
_VERSION: Final = 1


class LogPosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every change before a moment was told, and of those from it on the ones that are named.

    Attributes:
        log: What is another when the log is made anew.
        start: The moment, in milliseconds since 1970.
        seen: The ``_id`` of each change from then on that was told.
        undated: How many changes have no date; their place is not known.
    """

    log: str
    start: int = 0
    seen: frozenset[str] = frozenset()
    undated: int = 0
    version: int = _VERSION

    def encode(self) -> str:
        """Return it as a text."""
        return msgspec.json.encode(self).decode()


class ReportedEntry(NamedTuple):
    """A change that was told: its ``_id`` and its time in milliseconds."""

    name: str
    logged: int


def decode_position(text: str) -> LogPosition:
    """Return the position that a text is.

    Raises:
        DiscontinuityError: It is none of ours.
    """
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
    """Return the position after some changes.

    Args:
        position: The one before.
        told: All changes from its moment on that were told, now or before.
        boundary: The moment from which on others may still become visible.
        held: The time of the oldest change that is not told yet; ``None`` for none.
    """
    known = list(told)
    start = max(position.start, boundary)
    start = narrow_start(known, start) if held is None else max(position.start, min(start, held))
    seen = frozenset(entry.name for entry in known if entry.logged >= start)
    return LogPosition(log=position.log, start=start, seen=seen, undated=position.undated)


def narrow_start(known: Sequence[ReportedEntry], start: int) -> int:
    """Return a moment from which on no more changes are known than can be remembered.

    When one second has more, a latecomer of that second is given up: all is read again anyhow,
    now and then.
    """
    newest = max((entry.logged for entry in known), default=start)
    for moment in (start, newest):
        if sum(entry.logged >= moment for entry in known) <= MAX_REMEMBERED:
            return moment
    return newest + 1


MOST_PENDING: Final = 100_000
"""More changes than these are not followed one by one: to read all resources is quicker."""
LOOKUP_BATCH: Final = 1_000
"""Resources that are looked up at once."""
_MILLI: Final = 1_000

ResourceLookup = Callable[[Sequence[str]], Mapping[str, Resource]]
"""Tells how some resources are now, by their URIs; those that are gone are left out."""


class LogEntry(NamedTuple):
    """A document of the log.

    Attributes:
        name: Its ``_id``.
        at: What it is ordered by, in milliseconds: ``timestamp``, else ``datetime``.
        happened: ``datetime`` in milliseconds, else ``at``.
        uri: The resource.
        kind: What is said to have happened.
        lastmod: The resource's time then.
    """

    name: str
    logged: int
    happened: int
    uri: str
    kind: str
    lastmod: datetime | None


class DocumentLookup:
    """Finds the documents of resources by their URIs.

    Args:
        place: Where they are.
        view: What is read there.
        locations: What their locations are as URIs.
    """

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
    """The log of changes of one index, read up to what is visible.

    Args:
        server: The server.
        place: Where the log is.
        view: What is read there.
        locations: What locations are as URIs.
        window: Milliseconds in which a change may become visible after a later one.
        clock: Time.
    """

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
        """Return the position after all that is visible, and true already.

        Args:
            look_up: Tells how resources are now.
        """
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
        """Yield what is visible and was not told, and the position after it.

        Args:
            position: What was told.
            look_up: Tells how resources are now.

        Raises:
            DiscontinuityError: Some of the log was erased, or there is too much of it.
            SourceError: The server does not answer, or refuses.
        """
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
            if some:  # what comes after it is not told yet: only the names of the told are added
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
        """Say how many changes are held back, for how long and why."""
        if not held:
            return ()
        seconds = formatting.duration(self._window / _MILLI)
        changes = formatting.counted(held, "change")
        why = "what they did cannot be seen there yet"
        return (("held-back", f"{changes} held back for up to {seconds}: {why}"),)

    def _pending(self, position: LogPosition) -> list[LogEntry]:
        if position.log != self._place.identity:
            raise _discontinuity("the log of changes was made anew, or is read in another way")
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
        """Return the moment from which on more may become visible.

        Counted from the newest change and not from our clock: it is the writer's clock that
        matters, unless that is ahead.
        """
        now = to_microseconds(self._clock.now()) // _MILLI
        return min(newest, now) - self._window

    def _is_early(self, entry: LogEntry, state: Resource | None) -> bool:
        """Whether a change is visible, and what it did to the resource is not yet."""
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
        """Return the newest time in the log, and how many changes have none."""
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
        """Yield each time that orders changes, with the condition for which it does."""
        earlier: list[Query] = []
        for name in self._place.times:
            yield name, {"bool": {"filter": [_exists(name)], "must_not": list(earlier)}}
            earlier.append(_exists(name))

    def _entries(self, position: LogPosition) -> list[LogEntry] | None:
        """Return all changes from a moment on; ``None`` when there are too many."""
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
            f"{self._place.index} gives changes in a way that is not known",
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
