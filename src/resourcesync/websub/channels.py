"""Which channels a Source offers: what its documents and its answers say (Notification §5).

Sources say it in several ways, and all are read: an entry of the Capability List or of the Source
Description whose capability is a notification, with its hubs beside it; ``self`` and ``hub`` at
the root of a document; and the ``Link`` field of an answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from resourcesync.discovery.addresses import join
from resourcesync.model.capabilities import CapabilityEntry, Entry, Header
from resourcesync.model.vocabulary import Capability
from resourcesync.websub.messages import read_links

NOTIFICATIONS: Final = frozenset(
    {Capability.CHANGE_NOTIFICATION, Capability.FRAMEWORK_NOTIFICATION}
)
_MOST_HUBS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A channel of notifications.

    Attributes:
        topic: Its URI.
        hubs: Where it can be subscribed to, the first one first; empty when that is not known.
        capability: What it tells of.
    """

    topic: str
    hubs: tuple[str, ...] = ()
    capability: Capability = Capability.CHANGE_NOTIFICATION


def channels_of(uri: str, header: Header, entries: Iterable[Entry]) -> list[Channel]:
    """Return the channels that a Capability List or a Source Description tells of.

    Args:
        uri: Where the document came from.
        header: What its root says.
        entries: Its entries.
    """
    roots = _absolute(uri, (link.href for link in header.hubs))
    found = []
    for entry in entries:
        if isinstance(entry, CapabilityEntry) and entry.capability in NOTIFICATIONS:
            topic = entry.itself.href if entry.itself is not None else entry.uri
            hubs = _absolute(uri, (link.href for link in entry.hubs)) or roots
            found.append(Channel(topic=topic, hubs=hubs, capability=entry.capability))
    itself = header.itself
    if roots and itself is not None and not found:
        topic = join(uri, itself.href) or itself.href
        found.append(Channel(topic=topic, hubs=roots))
    return found


def channel_of_response(uri: str, link: str, header: Header | None) -> Channel | None:
    """Return the channel that the answer of a topic tells of; the field counts before the body.

    Args:
        uri: Where the answer came from.
        link: Its ``Link`` fields.
        header: What the root of its body says; ``None`` when that is no such document.
    """
    topics, hubs = read_links(link, uri)
    if header is not None:
        own = (header.itself,) if header.itself is not None else ()
        topics = topics or _absolute(uri, (it.href for it in own))
        hubs = hubs or _absolute(uri, (it.href for it in header.hubs))
    if not hubs:
        return None
    capability = Capability.CHANGE_NOTIFICATION
    if header is not None and header.capability is Capability.FRAMEWORK_NOTIFICATION:
        capability = header.capability
    return Channel(
        topic=topics[0] if topics else uri, hubs=hubs[:_MOST_HUBS], capability=capability
    )


def _absolute(base: str, targets: Iterable[str]) -> tuple[str, ...]:
    found = dict.fromkeys(it for it in (join(base, target) for target in targets) if it)
    return tuple(found)[:_MOST_HUBS]
