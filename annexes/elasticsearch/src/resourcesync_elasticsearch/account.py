"""The ``Account`` port on an index of Elasticsearch or OpenSearch that logs changes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final

from resourcesync.errors import (
    BadResponseError,
    ConfigurationError,
    DiscontinuityError,
    SourceUnavailableError,
)
from resourcesync.model.entries import Resource
from resourcesync.ports import Clock
from resourcesync.ports.accounts import ChangeBatch, ResourceAccount
from resourcesync_elasticsearch.change_log import DocumentLookup, IndexChangeLog, decode_position
from resourcesync_elasticsearch.client import SearchServer, segment
from resourcesync_elasticsearch.documents import (
    DocumentLocation,
    IndexLayout,
    Locations,
    ResourceDecoder,
    find_layout,
)
from resourcesync_elasticsearch.point_in_time import PAGE, PointInTimeView
from resourcesync_elasticsearch.settings import IndexSettings

POLL: Final = 5.0
"""Seconds between two reads of the log."""
_FEW: Final = 100
_SETS: Final = 20
"""The most sets that a message names."""
_FIELDS: Final = ("location", "length", "md5", "mime", "lastmod", "ln")


class IndexAccount(ResourceAccount):
    """An index that another program fills, laid out as the DIT harvester lays it out (DIT-ES)."""

    can_list_resources = True

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
        body = {"size": 0, "aggs": {"sets": sets}}
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
