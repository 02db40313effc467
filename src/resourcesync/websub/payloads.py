"""Payloads of notifications: made, classified, and merged (Notification §3)."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Final

from msgspec.structs import replace

from resourcesync.documents import reader, writer
from resourcesync.errors import DocumentError
from resourcesync.model.capabilities import DocumentChange, Entry, Header
from resourcesync.model.links import Link
from resourcesync.model.resources import Change
from resourcesync.model.vocabulary import Capability, Dialect, Relation
from resourcesync.websub.messages import MOST_PAYLOAD

MOST_ENTRIES: Final = 1_000
"""Entries of one notification; the rest is in a Change List."""

KINDS: Final = frozenset(
    {
        Capability.CHANGE_NOTIFICATION,
        Capability.FRAMEWORK_NOTIFICATION,
        Capability.CHANGE_LIST,  # LANL's prototype
    }
)


def change_notification(
    links: Iterable[Link],
    changes: Iterable[Change],
    *,
    since: datetime,
    until: datetime,
    dialect: Dialect = Dialect.V1_1,
) -> bytes:
    """Return the notification of changes of resources (Notification §3)."""
    header = Header(
        capability=Capability.CHANGE_NOTIFICATION, from_=since, until=until, links=tuple(links)
    )
    return b"".join(writer.write(header, changes, dialect))


def framework_notification(
    links: Iterable[Link], changes: Iterable[DocumentChange], *, dialect: Dialect = Dialect.V1_1
) -> bytes:
    """Return the notification of changes of the Source's documents."""
    header = Header(capability=Capability.FRAMEWORK_NOTIFICATION, links=tuple(links))
    return b"".join(writer.write(header, changes, dialect))


def channel_links(up: str, topic: str, hubs: Iterable[str]) -> tuple[Link, ...]:
    """Return the links of a notification's root."""
    return (
        Link(rel=Relation.UP.value, href=up),
        Link(rel=Relation.SELF.value, href=topic),
        *(Link(rel=Relation.HUB.value, href=hub) for hub in hubs),
    )


def kind_of(body: bytes) -> Capability | None:
    """Return the kind of notification of a body; ``None`` when it is none."""
    try:
        header = reader.read(body).header
    except DocumentError:
        return None
    return header.capability if header.capability in KINDS and not header.is_index else None


def merge(bodies: Sequence[bytes], *, most: int = MOST_PAYLOAD) -> bytes:
    """Merge payloads of a topic, oldest first, into one.

    It contains the newest change of each URI, from the start of the first payload to the end of the
    last. When that would be too large, or one cannot be read, it is the last payload alone, whose
    own ``from`` shows that earlier changes exist.
    """
    last = bodies[-1]
    if len(bodies) == 1 or sum(map(len, bodies)) > 4 * most:
        return last
    try:
        merged = _merged(bodies)
    except (DocumentError, ValueError):
        return last
    return last if merged is None or len(merged) > most else merged


def _merged(bodies: Sequence[bytes]) -> bytes | None:
    newest: dict[str, Entry] = {}
    headers: list[Header] = []
    for body in bodies:
        document = reader.read(body)
        headers.append(document.header)
        for entry in islice(document.entries(), MOST_ENTRIES + 1):
            newest.pop(entry.uri, None)  # so that its position is that of its newest change
            newest[entry.uri] = entry
    first, last = headers[0], headers[-1]
    if len(newest) > MOST_ENTRIES or {header.capability for header in headers} - {last.capability}:
        return None
    return b"".join(writer.write(replace(last, from_=first.from_), newest.values()))
