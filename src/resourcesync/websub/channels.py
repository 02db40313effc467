"""Channels of notifications that a Source offers (Notification §5, WebSub §4).

Sources declare them in several ways, and all are read: an entry of the Capability List or of the
Source Description whose capability is a notification, with its hubs beside it; ``self`` and ``hub``
at the root of a document; and the ``Link`` field of an answer.
"""

from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from resourcesync.discovery.document_fetcher import DocumentProvider, fetch
from resourcesync.discovery.uris import join
from resourcesync.errors import DocumentError, SourceError
from resourcesync.model.entries import CapabilityEntry, Entry, Header
from resourcesync.model.vocabulary import NOTIFICATIONS, Capability
from resourcesync.websub.messages import read_links

_MOST_HUBS: Final = 8


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """A channel of notifications, with its hubs, the preferred one first, as far as known."""

    topic: str
    hubs: tuple[str, ...] = ()
    capability: Capability = Capability.CHANGE_NOTIFICATION


def _channels_of(uri: str, header: Header, entries: Iterable[Entry]) -> list[Channel]:
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


def _absolute(base: str, targets: Iterable[str]) -> tuple[str, ...]:
    found = dict.fromkeys(name for name in (join(base, target) for target in targets) if name)
    return tuple(found)[:_MOST_HUBS]


_MOST_ENTRIES: Final = 1_000
_MOST_CHANNELS: Final = 4


class FoundChannels(NamedTuple):
    """Channels that were found; complete if every document that may declare one was read.

    Otherwise channels that are missing in this result stay subscribed.
    """

    channels: list[Channel]
    is_complete: bool


def find_channels(documents: DocumentProvider, addresses: Iterable[str]) -> FoundChannels:
    """Return the channels that some documents of a Source declare, with their hubs.

    Where a document names a channel and no hub, the topic is fetched: its ``Link`` fields count,
    and then the root of its body. A document that cannot be fetched, and a channel without a hub,
    are left out: a Source without channels is polled. A temporary failure makes the result
    incomplete.
    """
    found: dict[str, Channel] = {}
    is_all = True
    waiting = [partial(_channels_in, documents, address) for address in addresses]
    while waiting:
        try:
            channels = waiting.pop(0)()
        except (SourceError, DocumentError) as error:
            is_all = is_all and not error.transient
            continue
        for channel in channels[:_MOST_CHANNELS]:
            if channel.hubs:
                found.setdefault(channel.topic, channel)
            else:
                waiting.append(partial(_hubs_of_topic, documents, channel))
    return FoundChannels(list(found.values()), is_all)


def _channels_in(documents: DocumentProvider, address: str) -> list[Channel]:
    with fetch(documents, address) as fetched:
        document = fetched.open()
        entries = list(islice(document.entries(), _MOST_ENTRIES))
        channels = _channels_of(fetched.final_uri, document.header, entries)
        topics, hubs = read_links(fetched.links, fetched.final_uri)
    if not channels and hubs:
        return [Channel(topic=topics[0] if topics else address, hubs=hubs)]
    return channels


def _hubs_of_topic(documents: DocumentProvider, channel: Channel) -> list[Channel]:
    with fetch(documents, channel.topic) as fetched:
        uri = fetched.final_uri
        topics, hubs = read_links(fetched.links, uri)
        if not hubs:
            header = fetched.open().header
            hubs = _absolute(uri, (link.href for link in header.hubs))
            own = [] if header.itself is None else [header.itself.href]
            topics = topics or _absolute(uri, own)
    topic = topics[0] if topics else uri
    return [replace(channel, topic=topic, hubs=hubs[:_MOST_HUBS])] if hubs else []
