"""Publisher of a stream of activities: pages that only grow at the end (Change Discovery §3).

The first page begins with all resources, later ones continue with the changes of the log. A full
page gets the link to the next one when that exists, and never changes again. If a page was altered
or lost, or the lists start over, a new stream begins under new names, with a refresh.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from fnmatch import translate
from itertools import chain
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync.documents.iiif.change_discovery import (
    ActivityKind,
    ActivityObject,
    PageAddresses,
    write_activity,
    write_collection,
    write_page,
    written_activities,
)
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import ChangeKind
from resourcesync.ports.catalogue import CatalogueSnapshot, CatalogueStore, DocumentStore
from resourcesync.source import naming
from resourcesync.source.document_writer import DocumentWriter, WrittenDocument
from resourcesync.source.paging import PageLimits
from resourcesync.source.plan import encode, read_note

MAX_ACTIVITIES: Final = 1_000
"""The most activities of one page."""
_NOTE: Final = "activity-stream"
_NONE: Final = "null"
_KINDS: Final = {
    ChangeKind.CREATED: ActivityKind.CREATE,
    ChangeKind.UPDATED: ActivityKind.UPDATE,
    ChangeKind.DELETED: ActivityKind.DELETE,
}


class ActivityStreamRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Record of the published stream.

    Attributes:
        addresses: The addresses of the publication.
        types: The types of the objects, as the operator gave them.
        first, last: The numbers of the first and the last page.
        start: The number of activities before the last page.
        items: The number of activities in the last page.
        digest: A digest of these.
        change: The number of the newest change in the stream.
    """

    addresses: tuple[str, str]
    types: tuple[str, ...]
    first: int
    last: int
    start: int
    items: int
    digest: str
    change: int

    @property
    def names(self) -> Iterator[str]:
        """Yield the names of its documents."""
        yield naming.ACTIVITIES
        for number in range(self.first, self.last + 1):
            yield naming.activity_page(number)


def _record(fields: dict[str, object]) -> ActivityStreamRecord:
    return msgspec.convert(fields, ActivityStreamRecord)


class ObjectTypes:
    """The rules for the types of objects.

    Args:
        rules: ``TYPE``, or ``TYPE=GLOB`` for the URIs that match; the first that matches counts.
    """

    def __init__(self, rules: Sequence[str]) -> None:
        parts = [rule.partition("=") for rule in rules]
        self._rules = [
            (kind, re.compile(translate(glob)) if glob else None) for kind, _, glob in parts
        ]

    def of(self, uri: str) -> str:
        """Return the type of a resource; empty if it is not in the stream."""
        for kind, pattern in self._rules:
            if pattern is None or pattern.match(uri):
                return kind
        return ""


class ActivityPublisher:
    """A publisher of the stream of a Source.

    Args:
        catalogue: The catalogue, for the record of the stream.
        types: The rules for the types of objects; empty for no stream.
    """

    def __init__(
        self,
        catalogue: CatalogueStore,
        documents: DocumentStore,
        types: Sequence[str],
        limits: PageLimits,
    ) -> None:
        self._catalogue = catalogue
        self._documents = documents
        self._types = tuple(types)
        self._object_types = ObjectTypes(types)
        self._most = min(MAX_ACTIVITIES, limits.max_entries)
        self._most_bytes = limits.max_bytes

    def publish(
        self, snapshot: CatalogueSnapshot, writer: DocumentWriter, *, is_new: bool
    ) -> ActivityStreamRecord | None:
        """Write what is missing in the stream; return its record, ``None`` without a stream.

        Pages come before those that lead to them, and the collection comes last.

        Args:
            snapshot: The catalogue.
            writer: The document writer.
            is_new: True if the lists start over.

        Raises:
            StateError: The record is damaged.
            StorageError: A document could not be written; the stream before is still there.
        """
        if not self._types:
            return None
        record = read_note(self._catalogue, _NOTE, _record)
        lines = None
        if record is not None and not is_new:
            lines = self._last_lines(record, writer)
        if record is None or lines is None:
            record = self._start(record, writer)
            more, lines = self._baseline(snapshot), []
        else:
            more = self._changes(snapshot, record.change)
        record = replace(record, change=snapshot.last_change())
        record = self._write_pages(record, lines, more, writer)
        page = self._addresses(record, record.last, writer)
        first = writer.naming.uri(naming.activity_page(record.first))
        total = record.start + record.items
        text = write_collection(page.collection, first, page.page, total)
        if writer.put_text(naming.ACTIVITIES, text):
            written = WrittenDocument(
                name=naming.ACTIVITIES,
                uri=page.collection,
                capability=None,
                entries=total,
                bytes=len(text),
            )
            writer.written.append(written)
        return record

    def store(self, record: ActivityStreamRecord | None) -> None:
        """Store the record of the published stream durably."""
        text = _NONE if record is None else encode(record)
        if (self._catalogue.note(_NOTE) or _NONE) != text:
            self._catalogue.write_notes({_NOTE: text})

    def _start(
        self, before: ActivityStreamRecord | None, writer: DocumentWriter
    ) -> ActivityStreamRecord:
        """Return the record of a new stream without activities; its pages have unused names."""
        numbers = map(naming.activity_page_number, self._documents.names())
        number = max(0 if before is None else before.last, *numbers, 0) + 1
        return ActivityStreamRecord(
            addresses=(writer.naming.base_uri, writer.naming.documents_uri),
            types=self._types,
            first=number,
            last=number,
            start=0,
            items=0,
            digest="",
            change=0,
        )

    def _last_lines(
        self, record: ActivityStreamRecord, writer: DocumentWriter
    ) -> list[bytes] | None:
        """Return the activities of the last page; ``None`` if the stream must start over.

        A run that was killed may have added more to that page; they are written again.
        """
        here = (writer.naming.base_uri, writer.naming.documents_uri)
        if (record.addresses, record.types) != (here, self._types):
            return None
        for number in range(record.first, record.last):
            if not writer.confirm_unharmed(naming.activity_page(number)):
                return None
        stream = self._documents.open(naming.activity_page(record.last))
        if stream is None:
            return None
        with closing(stream):
            lines = written_activities(stream.read())[: record.items]
        return lines if _digest(lines) == record.digest else None

    def _baseline(self, snapshot: CatalogueSnapshot) -> Iterator[bytes]:
        """Yield the first activities of a stream: of each resource, dated with the snapshot.

        A stream that follows another one begins with a refresh, and so does one that would
        otherwise have no activity.
        """
        kind, at = ActivityKind.CREATE, snapshot.at
        resources = ((self._object_types.of(item.uri), item) for item in snapshot.resources())
        found = ((name, item) for name, item in resources if name)
        first = next(found, None)
        if first is None or self._documents.signature(naming.ACTIVITIES) is not None:
            kind = ActivityKind.UPDATE
            yield write_activity(ActivityKind.REFRESH, at)
        for name, item in () if first is None else chain((first,), found):
            yield _line(kind, name, Change(kind=ChangeKind.UPDATED, resource=item, time=at))

    def _changes(self, snapshot: CatalogueSnapshot, after: int) -> Iterator[bytes]:
        """Yield the activities for the changes after a number."""
        for _, change in snapshot.changes(after=after):
            name = self._object_types.of(change.uri)
            if name:
                yield _line(_KINDS[change.kind], name, change)

    def _write_pages(
        self,
        record: ActivityStreamRecord,
        lines: list[bytes],
        more: Iterable[bytes],
        writer: DocumentWriter,
    ) -> ActivityStreamRecord:
        """Write the last page with further activities, and new pages when it is full.

        New pages are written first: the present one leads to them.
        """
        present: tuple[ActivityStreamRecord, list[bytes]] | None = None
        size = sum(map(len, lines))
        for line in more:
            if lines and (len(lines) >= self._most or size + len(line) > self._most_bytes):
                if present is None:
                    present = record, lines
                else:
                    self._put(record, lines, writer, is_last=False)
                number, start = record.last + 1, record.start + len(lines)
                record, lines, size = replace(record, last=number, start=start), [], 0
            lines.append(line)
            size += len(line)
        self._put(record, lines, writer, is_last=True)
        if present is not None:
            self._put(*present, writer, is_last=False)
        return replace(record, items=len(lines), digest=_digest(lines))

    def _put(
        self,
        record: ActivityStreamRecord,
        lines: Sequence[bytes],
        writer: DocumentWriter,
        *,
        is_last: bool,
    ) -> None:
        addresses = self._addresses(record, record.last, writer)
        if not is_last:
            after = writer.naming.uri(naming.activity_page(record.last + 1))
            addresses = addresses._replace(next=after)
        text = write_page(addresses, record.start, lines)
        writer.put_text(naming.activity_page(record.last), text)

    def _addresses(
        self, record: ActivityStreamRecord, number: int, writer: DocumentWriter
    ) -> PageAddresses:
        uri = writer.naming.uri
        before = uri(naming.activity_page(number - 1)) if number > record.first else ""
        return PageAddresses(uri(naming.activity_page(number)), uri(naming.ACTIVITIES), before)


def _line(kind: ActivityKind, name: str, change: Change) -> bytes:
    resource: Resource = change.resource
    assert change.time is not None, "a catalogue gives each change its time"
    thing = ActivityObject(id=resource.uri, type=name, format=resource.media_type)
    began = resource.lastmod
    is_known = began is not None and not began.fold and began <= change.time
    return write_activity(kind, change.time, thing, began if is_known else None)


def _digest(lines: Sequence[bytes]) -> str:
    return hashlib.sha256(b"\n".join(lines)).hexdigest()
