"""Payloads of notifications: made, and classified (Notification §3)."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from resourcesync.documents import reader, writer
from resourcesync.errors import DocumentError
from resourcesync.model.entries import Change, DocumentChange, Header, Link
from resourcesync.model.vocabulary import Capability, Dialect, Relation

MOST_ENTRIES: Final = 1_000
"""Entries of one notification; the rest is in a Change List."""

KINDS: Final = frozenset({Capability.CHANGE_NOTIFICATION, Capability.FRAMEWORK_NOTIFICATION})


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
