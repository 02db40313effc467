"""Payloads of notifications: made, and classified (Notification §3)."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from resourcesync.documents import reader
from resourcesync.errors import DocumentError
from resourcesync.model.entries import Header, Link
from resourcesync.model.vocabulary import NOTIFICATIONS, Capability, Relation

MOST_ENTRIES: Final = 1_000
"""Entries of one notification; the rest is in a Change List."""


def notification_header(
    kind: Capability,
    links: tuple[str, str],
    hubs: Iterable[str],
    since: datetime | None = None,
    until: datetime | None = None,
) -> Header:
    """Return the header of a notification, with the links up and to its topic (§3)."""
    up, topic = links
    return Header(
        capability=kind,
        from_=since,
        until=until,
        links=(
            Link(rel=Relation.UP.value, href=up),
            Link(rel=Relation.SELF.value, href=topic),
            *(Link(rel=Relation.HUB.value, href=hub) for hub in hubs),
        ),
    )


def kind_of(body: bytes) -> Capability | None:
    """Return the kind of notification of a body; ``None`` when it is none."""
    try:
        header = reader.read(body).header
    except DocumentError:
        return None
    return header.capability if header.capability in NOTIFICATIONS and not header.is_index else None
