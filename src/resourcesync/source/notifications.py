"""Change Notifications: their payloads, for hubs, after a publication; the catalogue is the outbox.

Nothing is queued. For each hub the catalogue stores the last change and the documents of which it
was notified; what is published after that is still pending, after any failure or crash.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from resourcesync.documents import writer
from resourcesync.errors import ResourceSyncError
from resourcesync.model.entries import Change, DocumentChange, Header, Link
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability, ChangeKind, Relation
from resourcesync.source import naming
from resourcesync.source.stored_plan import RECORD, CatalogueNote, PublicationRecord
from resourcesync.websub import messages
from resourcesync.websub.notices import Notice, NoticeOutcome

if TYPE_CHECKING:
    from resourcesync.source.publisher import OpenSource

NoticeSender = Callable[[Sequence[Notice]], Sequence[NoticeOutcome]]
"""Sends notices to their hubs; what did not reach its hub is in its outcome."""

MOST_ENTRIES: Final = 1_000
"""Entries of one notification; the rest is in a Change List."""
_MIN_CHANGES: Final = 2
_HEADS: Final = {
    naming.RESOURCE_LIST: Capability.RESOURCE_LIST,
    naming.RESOURCE_DUMP: Capability.RESOURCE_DUMP,
    naming.CHANGE_LIST: Capability.CHANGE_LIST,
    naming.CHANGE_DUMP: Capability.CHANGE_DUMP,
    **{name: capability for capability, name in naming.ARCHIVES.items()},
    naming.CAPABILITY_LIST: Capability.CAPABILITY_LIST,
    naming.DESCRIPTION: Capability.DESCRIPTION,
}
"""Documents in the channel of documents."""


class Notified(msgspec.Struct, frozen=True, kw_only=True):
    """The result of notifying the hubs: outcomes, and the changes and documents in the notices."""

    sent: tuple[NoticeOutcome, ...] = ()
    changes: int = 0
    documents: int = 0
    error: ResourceSyncError | None = None

    @property
    def problems(self) -> tuple[NoticeOutcome, ...]:
        """The notices that did not reach their hub; they are sent again the next time."""
        return tuple(outcome for outcome in self.sent if outcome.problem)


class _HubPosition(msgspec.Struct, frozen=True, kw_only=True):
    seq: int  # the number of the last change
    until: int  # it has all changes up to then, microseconds
    documents: dict[str, str]


_POSITIONS: Final = CatalogueNote("notifications", dict[str, _HubPosition])


def notify(source: "OpenSource", send: NoticeSender | None) -> Notified:
    """Notify the hubs of a Source of everything published since their last notice.

    A new hub gets no notice: it cannot have subscribers yet. What cannot be sent now is sent the
    next time, in one notice with later changes.
    """
    catalogue, hubs = source.catalogue, source.settings.hubs
    record = RECORD.read(catalogue)
    if record is None or not hubs:
        return Notified()
    marks = _POSITIONS.read(catalogue) or {}
    outbox = _Outbox(source, record)
    known = {hub: marks.get(hub) or outbox.present for hub in hubs}
    outbox.place_empty()
    if known != marks:
        _POSITIONS.write(catalogue, known)
    if send is None:
        return Notified()
    notices = list(outbox.notices(known))
    if not notices:
        return Notified()
    outcomes = send(notices)
    for hub in hubs:
        if not any(outcome.problem for outcome in outcomes if outcome.notice.hub == hub):
            known[hub] = outbox.present
    _POSITIONS.write(catalogue, known)
    return Notified(sent=tuple(outcomes), changes=outbox.changes, documents=outbox.documents)


def notify_after(source: "OpenSource", send: NoticeSender) -> Notified:
    """Notify the hubs after a publication, if that is enabled; it never fails for that."""
    try:
        return notify(source, send if source.settings.notify else None)
    except ResourceSyncError as error:
        return Notified(error=error)


class _Outbox:
    def __init__(self, source: "OpenSource", record: PublicationRecord) -> None:
        self._catalogue, self._store = source.catalogue, source.documents
        self._names = source.settings.names
        self._hubs = source.settings.hubs
        self._dialect = source.settings.dialect
        self._now = source.clock.now()
        self.changes = self.documents = 0
        with source.catalogue.snapshot() as snapshot:
            until = to_microseconds(snapshot.at)
        digests = {name: known.digest for name, known in record.documents.items() if name in _HEADS}
        self.present = _HubPosition(seq=record.listed, until=until, documents=digests)

    def place_empty(self) -> None:
        """Put an empty notification at each topic that has none yet: it names the hubs."""
        if self._store.signature(naming.CHANGE_NOTIFICATION) is None:
            self._store.write(naming.CHANGE_NOTIFICATION, [self._changes([], self._now, self._now)])
        if self._store.signature(naming.FRAMEWORK_NOTIFICATION) is None:
            self._store.write(naming.FRAMEWORK_NOTIFICATION, [self._framework([])])

    def notices(self, marks: Mapping[str, _HubPosition]) -> Iterator[Notice]:
        """Compose the pending notices, put them at the topics, and yield one for each hub."""
        behind = [hub for hub, mark in marks.items() if mark.seq < self.present.seq]
        if behind:
            body = self._compose_changes([marks[hub] for hub in behind])
            yield from self._publish_notice(naming.CHANGE_NOTIFICATION, body, behind)
        behind = [hub for hub, mark in marks.items() if mark.documents != self.present.documents]
        if behind:
            body = self._compose_documents([marks[hub] for hub in behind])
            yield from self._publish_notice(naming.FRAMEWORK_NOTIFICATION, body, behind)

    def _publish_notice(self, name: str, body: bytes, behind: list[str]) -> Iterator[Notice]:
        self._store.write(name, [body])
        topic = self._names.uri(name)
        for hub in behind:
            yield Notice(hub=hub, topic=topic, body=body)

    def _compose_changes(self, marks: list[_HubPosition]) -> bytes:
        after = min(mark.seq for mark in marks)
        newest: deque[Change] = deque(maxlen=MOST_ENTRIES)
        lacked = 0
        with self._catalogue.snapshot() as snapshot:
            for number, change in snapshot.changes(after):
                if number > self.present.seq:
                    break
                lacked += 1
                newest.append(change)
        since = from_microseconds(min(mark.until for mark in marks))
        changes = list(newest)
        while True:
            if lacked > len(changes) and changes[0].time is not None:
                since = changes[0].time  # the gap is visible: subscribers then read the Change List
            until = max(since, (changes[-1].time if changes else None) or self._now)
            body = self._changes(changes, since, until)
            if len(body) <= messages.MOST_PAYLOAD or len(changes) < _MIN_CHANGES:
                self.changes = len(changes)
                return body
            changes = changes[len(changes) // 2 :]

    def _compose_documents(self, marks: list[_HubPosition]) -> bytes:
        now = self.present.documents
        found: dict[str, ChangeKind] = {}
        for mark in marks:
            for name in {*mark.documents, *now}:
                if mark.documents.get(name) != now.get(name):
                    kind = ChangeKind.UPDATED if name in mark.documents else ChangeKind.CREATED
                    found[name] = kind if name in now else ChangeKind.DELETED
        self.documents = len(found)
        return self._framework(
            [
                DocumentChange(
                    uri=self._names.uri(name),
                    kind=found[name],
                    time=self._now,
                    capability=_HEADS[name],
                    label=_HEADS[name].value,
                )
                for name in sorted(found)
            ]
        )

    def _changes(self, changes: list[Change], since: datetime, until: datetime) -> bytes:
        header = Header(
            capability=Capability.CHANGE_NOTIFICATION,
            from_=min(since, until),
            until=until,
            links=self._links(naming.CAPABILITY_LIST, naming.CHANGE_NOTIFICATION),
        )
        return b"".join(writer.write(header, changes, self._dialect))

    def _framework(self, changes: list[DocumentChange]) -> bytes:
        links = self._links(naming.DESCRIPTION, naming.FRAMEWORK_NOTIFICATION)
        header = Header(capability=Capability.FRAMEWORK_NOTIFICATION, links=links)
        return b"".join(writer.write(header, changes, self._dialect))

    def _links(self, up: str, topic: str) -> tuple[Link, ...]:
        return (
            Link(rel=Relation.UP.value, href=self._names.uri(up)),
            Link(rel=Relation.SELF.value, href=self._names.uri(topic)),
            *(Link(rel=Relation.HUB.value, href=hub) for hub in self._hubs),
        )
