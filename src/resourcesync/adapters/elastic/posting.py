"""What became of resources, written into an index as the seed says: a document and a log entry."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

import msgspec

from resourcesync.adapters.elastic.changes import DocumentLookup
from resourcesync.adapters.elastic.client import SearchServer, segment
from resourcesync.adapters.elastic.documents import change_document, resource_document
from resourcesync.adapters.elastic.layout import DOC_TYPE, DocumentLocation, IndexLayout
from resourcesync.errors import BadResponseError, ConfigurationError, SourceUnavailableError
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports import Clock
from resourcesync.ports.catalogue import Posted

_AT_ONCE: Final = 500
_BUSY: Final = 429
_GONE: Final = 404
_BAD: Final = 400
_MILLISECOND: Final = timedelta(milliseconds=1)


class ChangePoster:
    """Writes into one index.

    Args:
        server: The server.
        layout: Where documents go.
        lookup: Finds those that are there.
        resource_set: The set that they are of; empty for none.
        clock: Time.

    Raises:
        ConfigurationError: There is no log of changes in the index.
    """

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
                hint="make one: resourcesync config elasticsearch prints how",
            )
        self._server = server
        self._resources = layout.resources
        self._changes = layout.changes
        self._lookup = lookup
        self._set = resource_set
        self._clock = clock

    def post(self, changes: Iterable[Change]) -> Posted:
        """Write changes in order, and let them be seen.

        Raises:
            SourceError: The server does not answer, or refuses some. To post all again is right.
        """
        counts: Counter[str] = Counter()
        names: dict[str, str | None] = {}
        times: Counter[str] = Counter()
        rest = iter(changes)
        while some := list(islice(rest, _AT_ONCE)):
            self._find_ids(names, [it.uri for it in some])
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
        """Learn by which ``_id`` some resources are known, ``None`` for those that are not."""
        unknown = [uri for uri in dict.fromkeys(uris) if uri not in names]
        if not unknown:
            return
        names.update(dict.fromkeys(unknown))
        for uri, hit in self._lookup.hits(unknown):
            names[uri] = hit["_id"]

    def _encode_change(
        self, change: Change, names: dict[str, str | None], moment: datetime, now: datetime
    ) -> tuple[str, list[bytes]]:
        """Return what happened, empty for nothing, and the lines that say so."""
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
        """Return an ``_id`` that is the same whenever the same is written."""
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
                hint="to post all again is right",
            )


def _action(kind: str, place: DocumentLocation, name: str) -> bytes:
    return msgspec.json.encode({kind: {"_index": place.index, "_id": name}})
