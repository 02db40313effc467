"""The state of each object in a stream, by its newest activity."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple, Self

import msgspec

from resourcesync.backends.iiif.stream import (
    ActivityPosition,
    StreamHead,
    StreamPage,
    encode_position,
)
from resourcesync.documents.iiif.change_discovery import Activity, ActivityKind, ActivityObject
from resourcesync.model.links import Link
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import ChangeKind, Relation
from resourcesync.ports.accounts import ChangeBatch
from resourcesync.ports.catalogue import Omission
from resourcesync.sqlite_file import TEMPORARY_ERRORS, connect_temporary

REFRESH_AGE: Final = 7 * 86_400_000_000
"""Microseconds after which a refresh of all objects counts as finished."""
_DAY: Final = 86_400_000_000
_BATCH: Final = 5_000
_MOST_OMISSIONS: Final = 1_000
_MAX_HREF: Final = 2_000
_MEDIA_TYPE: Final = re.compile(r"[!-~]+/[ -~]{1,190}")


class _ObjectChange(NamedTuple):
    """The effect of an activity on one object."""

    uri: str
    exists: bool
    details: ActivityObject


_TABLES: Final = """
CREATE TABLE page (number INTEGER PRIMARY KEY, uri TEXT NOT NULL, digest BLOB NOT NULL);
CREATE INDEX page_by_uri ON page (uri);
CREATE TABLE state (
    uri TEXT PRIMARY KEY, time INTEGER, page INTEGER NOT NULL, item INTEGER NOT NULL,
    step INTEGER NOT NULL, is_there INTEGER NOT NULL, digest BLOB NOT NULL, details TEXT NOT NULL
) WITHOUT ROWID;
"""
# The later time wins; without two different times, the later place in the stream.
_PUT: Final = """
INSERT INTO state VALUES (?,?,?,?,?,?,?,?) ON CONFLICT (uri) DO UPDATE SET
    time = excluded.time, page = excluded.page, item = excluded.item, step = excluded.step,
    is_there = excluded.is_there, digest = excluded.digest, details = excluded.details
WHERE excluded.time > state.time OR (
    coalesce(excluded.time >= state.time, 1)
    AND (excluded.page, excluded.item, excluded.step) > (state.page, state.item, state.step)
)
"""
_KNOWN: Final = "SELECT digest FROM page WHERE uri = ? ORDER BY number DESC LIMIT 1"
_EXISTING: Final = """
SELECT uri, time, details FROM state WHERE is_there AND uri > ? ORDER BY uri LIMIT ?
"""
_IN_ORDER: Final = """
SELECT state.uri, time, is_there, details, page.uri, item, state.digest, page, step
FROM state JOIN page ON page.number = state.page
WHERE (page, item, step) > (?, ?, ?) ORDER BY page, item, step LIMIT ?
"""
_ROUND: Final = 1 << 32
_decode_details: Final = msgspec.json.Decoder(ActivityObject).decode


class ObjectStates:
    """The state of each object by its newest activity, in a temporary file.

    Args:
        types: The types of objects that count; empty for all.
        now: The present moment, in microseconds.

    Attributes:
        omissions: The first activities that are unusable.
    """

    def __init__(self, types: frozenset[str], now: int) -> None:
        self._types = types
        self._now = now
        self._db = connect_temporary(_TABLES)
        self._streams: frozenset[str] = frozenset()
        self._number = 0
        self._round = 0
        self._is_refreshed = False
        self.omissions: list[Omission] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._db.close()

    @property
    def is_first_reading(self) -> bool:
        """True if the stream was not read before."""
        return self._round == 1

    def start(self, head: StreamHead, address: str) -> None:
        """Start to read the stream, from its end; what was read before is older."""
        self._streams = frozenset({address, head.uri, head.collection.id})
        self._round += 1
        self._number = self._round * _ROUND
        self._is_refreshed = False

    def knows(self, page: StreamPage) -> bool:
        """True if a page was read before, as it is."""
        with TEMPORARY_ERRORS:
            row = self._db.execute(_KNOWN, (page.uri,)).fetchone()
        return row is not None and row[0] == page.digest

    def add(self, page: StreamPage, start: int = 0) -> bool:
        """Add the activities of a page after a number of them.

        Returns:
            True if a refresh of all objects was found that is old enough to be finished: what comes
            before it says only what is deleted.
        """
        self._number -= 1
        rows = []
        for item in range(len(page.activities) - 1, start - 1, -1):
            activity = page.activities[item]
            if activity is None:
                self._omit(page, item)
                continue
            for step, effect in enumerate(self._effects(activity)):
                details = msgspec.json.encode(effect.details).decode()
                place = (self._number, item, step)
                time = self._credible(activity.time)
                rows.append((effect.uri, time, *place, effect.exists, page.digests[item], details))
        with TEMPORARY_ERRORS:
            self._db.execute("BEGIN")
            self._db.execute(
                "INSERT INTO page VALUES (?,?,?)", (self._number, page.uri, page.digest)
            )
            self._db.executemany(_PUT, rows)
            self._db.execute("COMMIT")
        return self._is_refreshed

    def _credible(self, time: int | None) -> int | None:
        """Return a time; ``None`` if it is in the future, where it would hide all that follow."""
        return None if time is None or time > self._now + _DAY else time

    def _omit(self, page: StreamPage, item: int) -> None:
        if len(self.omissions) < _MOST_OMISSIONS:
            name = f"activity {item + 1} of {page.uri}"
            self.omissions.append(Omission(name=name, reason="it has no type or no object"))

    def _effects(self, activity: Activity) -> Iterator[_ObjectChange]:
        match activity.kind:
            case ActivityKind.REFRESH:
                age = 0 if activity.time is None else self._now - activity.time
                self._is_refreshed = self._is_refreshed or age >= REFRESH_AGE
            case ActivityKind.CREATE | ActivityKind.UPDATE:
                yield from self._added(activity.object)
            case ActivityKind.ADD if self._is_ours(activity.target.id):
                yield from self._added(activity.object)
            case ActivityKind.DELETE:
                yield from self._removed(activity.object)
            case ActivityKind.REMOVE if self._is_ours(activity.origin):
                yield from self._removed(activity.object)
            case ActivityKind.MOVE:
                yield from self._removed(activity.object)
                yield from self._added(activity.target)
            case _:
                return

    def _is_ours(self, stream: str) -> bool:
        return not stream or stream in self._streams

    def _added(self, found: ActivityObject) -> Iterator[_ObjectChange]:
        if self._counts(found) and not self._is_refreshed:
            yield _ObjectChange(found.id, exists=True, details=found)

    def _removed(self, found: ActivityObject) -> Iterator[_ObjectChange]:
        if self._counts(found):
            yield _ObjectChange(found.id, exists=False, details=ActivityObject(found.id))

    def _counts(self, found: ActivityObject) -> bool:
        return not self._types or not found.type or found.type in self._types

    def resources(self) -> Iterator[Resource]:
        """Yield the objects that exist.

        An unusable activity is yielded under a name that is no URI, so that it is counted.
        """
        for omission in self.omissions:
            yield Resource(uri=f"{omission.name}, {omission.reason}")
        last = ""
        while True:
            with TEMPORARY_ERRORS:
                rows = self._db.execute(_EXISTING, (last, _BATCH)).fetchall()
            if not rows:
                return
            for _, time, details in rows:
                yield _resource(_decode_details(details), _moment(time))
            last = rows[-1][0]

    def changes(self) -> Iterator[ChangeBatch]:
        """Yield the states as changes, in the order of the stream, each with its position."""
        with TEMPORARY_ERRORS:
            self._db.execute("CREATE INDEX state_by_place ON state (page, item, step)")
        last, latest = (0, 0, -1), 0
        while True:
            with TEMPORARY_ERRORS:
                rows = self._db.execute(_IN_ORDER, (*last, _BATCH + 1)).fetchall()
            if not rows:
                return
            if len(rows) > _BATCH and _place(rows[-1]) != _place(rows[-2]):
                rows.pop()  # but both halves of a move are in one batch
            changes = []
            for uri, time, is_there, details, *_ in rows:
                latest = max(latest, time or 0)  # changes are reported oldest first
                moment = None if time is None else from_microseconds(latest)
                changes.append(_change(uri, time, details if is_there else "", moment))
            page, item, digest, number, step = rows[-1][4:]
            last = (number, item, step)
            position = ActivityPosition(
                page=page, items=item + 1, digest=digest.hex(), time=rows[-1][1]
            )
            yield ChangeBatch(encode_position(position), changes)


def _place(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the page and the number of the activity that a row comes from."""
    return row[7], row[5]


def _change(uri: str, time: int | None, details: str, moment: datetime | None) -> Change:
    """Return the change of an object; without details it is gone."""
    if not details:
        return Change(kind=ChangeKind.DELETED, resource=Resource(uri=uri), time=moment)
    resource = _resource(_decode_details(details), _moment(time))
    return Change(kind=ChangeKind.UPDATED, resource=resource, time=moment)


def _moment(time: int | None) -> datetime | None:
    return None if time is None else from_microseconds(time)


def _resource(found: ActivityObject, modified: datetime | None) -> Resource:
    """Return an object as a resource; its descriptions and canonical URI are links."""
    links = [
        Link(rel=Relation.DESCRIBED_BY, href=item.uri, media_type=_media_type(item.media_type))
        for item in found.descriptions
    ]
    canonical = found.canonical
    if canonical.startswith(("http://", "https://")) and len(canonical) <= _MAX_HREF:
        links.append(Link(rel=Relation.CANONICAL, href=canonical))
    return Resource(
        uri=found.id,
        lastmod=modified,
        media_type=_media_type(found.format),
        links=tuple(links),
    )


def _media_type(text: str) -> str:
    return text if _MEDIA_TYPE.fullmatch(text) else ""
