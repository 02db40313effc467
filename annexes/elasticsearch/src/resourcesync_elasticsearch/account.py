"""The ``Account`` port on an index of Elasticsearch or OpenSearch that logs changes.

``ChangePoster`` writes changes into such an index in the seed's form: a document and a log entry.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

import msgspec

from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    DiscontinuityError,
    SourceNotFoundError,
    SourceUnavailableError,
)
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Clock
from resourcesync.ports.accounts import ChangeBatch, Posted, ResourceAccount
from resourcesync_elasticsearch.change_log import (
    DocumentLookup,
    IndexChangeLog,
    decode_position,
)
from resourcesync_elasticsearch.client import SearchServer, segment
from resourcesync_elasticsearch.documents import (
    DOC_TYPE,
    DocumentLocation,
    IndexLayout,
    Locations,
    ResourceDecoder,
    change_document,
    find_layout,
    make_indices,
    resource_document,
)
from resourcesync_elasticsearch.point_in_time import PAGE, PointInTimeView
from resourcesync_elasticsearch.settings import IndexSettings

_AT_ONCE: Final = 500
_BUSY: Final = 429
_GONE: Final = 404
_BAD: Final = 400
_MILLISECOND: Final = timedelta(milliseconds=1)


class ChangePoster:
    """A writer of changes into one index."""

    def __init__(
        self,
        server: SearchServer,
        layout: IndexLayout,
        lookup: DocumentLookup,
        *,
        resource_set: str,
        clock: Clock,
    ) -> None:
        if layout.changes is None:
            raise ConfigurationError(
                f"{layout.resources.index} has no index of changes beside it",
                hint="make one, by the mapping that fits: "
                "resourcesync config elasticsearch (prints it)",
            )
        self._server = server
        self._resources = layout.resources
        self._changes = layout.changes
        self._lookup = lookup
        self._set = resource_set
        self._clock = clock

    def post(self, changes: Iterable[Change]) -> Posted:
        """Write changes in order, and make them visible."""
        counts: Counter[str] = Counter()
        names: dict[str, str | None] = {}
        times: Counter[str] = Counter()
        rest = iter(changes)
        while some := list(islice(rest, _AT_ONCE)):
            self._find_ids(names, [change.uri for change in some])
            now = self._clock.now()
            lines: list[bytes] = []
            for change in some:
                moment = now + times[change.uri] * _MILLISECOND
                times[change.uri] += 1
                kind, said = self._encode_change(change, names, moment, now)
                counts[kind] += 1
                lines += said
            del counts[""]
            if lines:
                self._send(lines)
        for place in dict.fromkeys((self._resources.index, self._changes.index)):
            self._server.request("POST", f"/{segment(place)}/_refresh")
        return Posted(**counts)

    def _find_ids(self, names: dict[str, str | None], uris: Sequence[str]) -> None:
        """Look up the ``_id`` of some resources, ``None`` for those without one."""
        unknown = [uri for uri in dict.fromkeys(uris) if uri not in names]
        if not unknown:
            return
        names.update(dict.fromkeys(unknown))
        for uri, hit in self._lookup.hits(unknown):
            names[uri] = hit["_id"]

    def _encode_change(
        self, change: Change, names: dict[str, str | None], moment: datetime, now: datetime
    ) -> tuple[str, list[bytes]]:
        """Return the kind of change, empty for none, and its lines for the index."""
        uri, known = change.uri, names[change.uri]
        if change.kind is ChangeKind.DELETED:
            if known is None:
                return "", []
            names[uri] = None
            written = [_action("delete", self._resources, known)]
            return "deleted", [
                *written,
                *self._encode_log_entry(change.resource, "deleted", moment, now),
            ]
        name = known or self._make_id(uri)
        names[uri] = name
        kind = "created" if known is None else "updated"
        told = resource_document(change.resource, self._resources.format_date)
        written = [
            _action("index", self._resources, name),
            self._document(self._resources, told, now, resync_id=name),
        ]
        return kind, [*written, *self._encode_log_entry(change.resource, kind, moment, now)]

    def _encode_log_entry(
        self, resource: Resource, kind: str, moment: datetime, now: datetime
    ) -> Iterator[bytes]:
        told = change_document(resource, kind, moment, self._changes.format_date)
        name = self._make_id(resource.uri, kind, str(moment))
        yield _action("index", self._changes, name)
        yield self._document(self._changes, told, now, resync_id=name)

    def _document(
        self, place: DocumentLocation, told: Mapping[str, Any], now: datetime, *, resync_id: str
    ) -> bytes:
        common = {"timestamp": place.format_date(now), "resync_id": resync_id}
        if self._set:
            common["resource_set"] = self._set
        if place.doc_type:
            common[DOC_TYPE] = place.doc_type
        return msgspec.json.encode({**common, **told})

    def _make_id(self, *parts: str) -> str:
        """Return an ``_id`` that is the same for the same parts."""
        return hashlib.sha256("\n".join((self._set, *parts)).encode()).hexdigest()[:40]

    def _send(self, lines: Sequence[bytes]) -> None:
        answer = self._server.request("POST", "/_bulk", b"\n".join(lines) + b"\n")
        items = answer.get("items") if isinstance(answer, dict) else None
        if not isinstance(items, list):
            raise BadResponseError("a bulk request is not answered", uri=self._server.address)
        for item in items:
            ((action, result),) = item.items()
            status = result.get("status", 0)
            if status < _BAD or (action == "delete" and status == _GONE):
                continue
            error = result.get("error") or {}
            raised = SourceUnavailableError if status == _BUSY else BadResponseError
            raise raised(
                f"{self._server.address} did not take a document",
                uri=self._server.address,
                status=status,
                evidence=(
                    ("got", f"{error.get('type')}: {error.get('reason')}"[:300]),
                    ("kept", "what was posted before it, and some of what came with it"),
                ),
                hint="post all of them again",
            )


def _action(kind: str, place: DocumentLocation, name: str) -> bytes:
    return msgspec.json.encode({kind: {"_index": place.index, "_id": name}})


POLL: Final = 5.0
"""Seconds between two reads of the log."""
_FEW: Final = 100
_SETS: Final = 20
"""The most sets that a message names."""
_FIELDS: Final = ("location", "length", "md5", "mime", "lastmod", "ln")


class IndexAccount(ResourceAccount):
    """An index that another program fills, laid out as the DIT harvester lays it out (DIT-ES)."""

    def __init__(
        self,
        server: SearchServer,
        settings: IndexSettings,
        clock: Clock,
        *,
        is_opensearch: bool,
        page: int = PAGE,
        allow_empty: bool = False,
    ) -> None:
        self._allow_empty = allow_empty
        self._server = server
        self._settings = settings
        self._clock = clock
        self._is_opensearch = is_opensearch
        self._page = page
        self._locations = Locations(settings)

    @property
    def can_list_resources(self) -> bool:
        """The index has a snapshot of all resources."""
        return True

    def position(self) -> str:
        """Return the position of the change log; empty if there is no log."""
        layout = self._layout()
        if layout.changes is None:
            return ""
        return self._log(layout.changes).position(self._current_resources(layout)).encode()

    def resources(self) -> Iterator[Resource]:
        """Yield every resource of one snapshot."""
        place = self._layout().resources
        reading, view = ResourceDecoder(self._locations), self._view(place)
        with closing(view.hits(place.query(), _source=list(_FIELDS))) as hits:
            for hit in hits:
                yield reading.resource(hit["_id"], hit["_source"])
        reading.finish()
        if not view.total:
            self._check_set(place)
        after = self._layout().resources
        if after.identity != place.identity:
            raise BadResponseError(
                f"{place.index} was recreated while it was read",
                uri=self._server.address,
                hint="run again when it is filled",
                code="index-changed",
            )
        self._check_steady(place, view.total)

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        """Yield the new changes in the log, each resource as it is now."""
        position = decode_position(after)
        until = self._clock.monotonic() + wait
        while True:
            layout = self._layout()
            if layout.changes is None:
                raise DiscontinuityError("there is no change log any more")
            log, look_up = self._log(layout.changes), self._current_resources(layout)
            for told in log.new_changes(position, look_up):
                position = decode_position(told.position)
                yield told
            rest = until - self._clock.monotonic()
            if rest <= 0:
                return
            self._clock.sleep(min(POLL, rest))

    def post(self, changes: Sequence[Change]) -> Posted:
        """Write changes into the index; the two indices are created if missing."""
        try:
            layout = self._layout()
        except SourceNotFoundError:
            make_indices(self._server, self._settings)
            layout = self._layout()
        poster = ChangePoster(
            self._server,
            layout,
            self._lookup(layout.resources),
            resource_set=self._settings.resource_set,
            clock=self._clock,
        )
        return poster.post(changes)

    def _layout(self) -> IndexLayout:
        return find_layout(self._server, self._settings)

    def _view(self, place: DocumentLocation) -> PointInTimeView:
        return PointInTimeView(
            self._server, place.index, is_opensearch=self._is_opensearch, page=self._page
        )

    def _log(self, place: DocumentLocation) -> IndexChangeLog:
        return IndexChangeLog(
            self._server,
            place,
            self._view(place),
            locations=self._locations,
            window=round(self._settings.window * 1000),
            clock=self._clock,
        )

    def _lookup(self, place: DocumentLocation) -> DocumentLookup:
        return DocumentLookup(place, self._view(place), self._locations)

    def _current_resources(self, layout: IndexLayout) -> "_CurrentResources":
        return _CurrentResources(self._lookup(layout.resources), self._locations)

    def _check_set(self, place: DocumentLocation) -> None:
        """Refuse a set without resources where others have some: its name is mistyped."""
        name = self._settings.resource_set
        if not name or self._allow_empty:
            return
        sets = {"terms": {"field": "resource_set", "size": _SETS}}
        body = {"size": 0, "query": place.query_all_sets(), "aggs": {"sets": sets}}
        answer = self._server.request("POST", f"/{segment(place.index)}/_search", body)
        names = [str(item["key"]) for item in answer["aggregations"]["sets"]["buckets"]]
        if names:
            raise ConfigurationError(
                f"{place.index} has no resource of the set {name}",
                evidence=(("has", ", ".join(names)), ("kept", "what was recorded before")),
                hint="write one of these as resource_set; if it is really empty, allow that: "
                "--with resource_set=NAME, or --allow-empty",
                code="empty-account",
            )

    def _check_steady(self, place: DocumentLocation, total: int) -> None:
        """Refuse an index that changed while it was read: it is being filled."""
        answer = self._server.request(
            "POST", f"/{segment(place.index)}/_count", {"query": place.query()}
        )
        now = answer.get("count") if isinstance(answer, dict) else None
        if type(now) is not int or abs(now - total) > max(_FEW, min(now, total)):
            raise SourceUnavailableError(
                f"{place.index} is being filled or emptied",
                uri=self._server.address,
                evidence=(
                    ("got", f"{total:,} documents at the beginning, {now} at the end"),
                    ("kept", "what was recorded before"),
                ),
                hint="run again when it is done",
                code="unsteady-index",
            )


class _CurrentResources:
    """A lookup of the current state of resources."""

    def __init__(self, lookup: DocumentLookup, locations: Locations) -> None:
        self._lookup = lookup
        self._reading = ResourceDecoder(locations)

    def __call__(self, uris: Sequence[str]) -> Mapping[str, Resource]:
        return {
            uri: self._reading.resource(hit["_id"], hit["_source"])
            for uri, hit in self._lookup.hits(uris)
        }
