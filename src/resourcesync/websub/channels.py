"""Channels of notifications that a Source offers (Notification §5, WebSub §4).

Sources declare them in several ways, and all are read: an entry of the Capability List or of the
Source Description whose capability is a notification, with its hubs beside it; ``self`` and ``hub``
at the root of a document; and the ``Link`` field of an answer.
"""

from collections.abc import Container, Iterable
from itertools import islice
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from resourcesync.discovery.addresses import join
from resourcesync.discovery.document_fetcher import DocumentProvider, fetch
from resourcesync.documents import reader
from resourcesync.errors import DocumentError, SourceError
from resourcesync.model.capabilities import CapabilityEntry, Entry, Header
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse, Purpose
from resourcesync.ports.subscriptions import Messenger
from resourcesync.websub.delivery import BodySink
from resourcesync.websub.messages import MOST_PAYLOAD, read_links

NOTIFICATIONS: Final = frozenset(
    {Capability.CHANGE_NOTIFICATION, Capability.FRAMEWORK_NOTIFICATION}
)
_MOST_HUBS: Final = 8


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """A channel of notifications.

    Attributes:
        topic: Its URI.
        hubs: Its hubs, the preferred one first; empty when none is known.
        capability: The kind of its notifications.
    """

    topic: str
    hubs: tuple[str, ...] = ()
    capability: Capability = Capability.CHANGE_NOTIFICATION


def channels_of(uri: str, header: Header, entries: Iterable[Entry]) -> list[Channel]:
    """Return the channels that a Capability List or a Source Description declares."""
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
    """Return the channel that the answer of a topic declares; the field precedes the body."""
    topics, hubs = read_links(link, uri)
    if header is not None:
        own = (header.itself,) if header.itself is not None else ()
        topics = topics or _absolute(uri, (link.href for link in own))
        hubs = hubs or _absolute(uri, (hub.href for hub in header.hubs))
    if not hubs:
        return None
    capability = Capability.CHANGE_NOTIFICATION
    if header is not None and header.capability is Capability.FRAMEWORK_NOTIFICATION:
        capability = header.capability
    return Channel(
        topic=topics[0] if topics else uri, hubs=hubs[:_MOST_HUBS], capability=capability
    )


def _absolute(base: str, targets: Iterable[str]) -> tuple[str, ...]:
    found = dict.fromkeys(name for name in (join(base, target) for target in targets) if name)
    return tuple(found)[:_MOST_HUBS]


_MOST_ENTRIES: Final = 1_000
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 3
_MOST_CHANNELS: Final = 4
_SUCCESS: Final = range(200, 300)
_LATER: Final = frozenset({408, 425, 429})
_FAULTS: Final = 500


class FoundChannels(NamedTuple):
    """Channels that were found.

    Attributes:
        channels: The channels, with their hubs.
        is_complete: True if every document that may declare one was read. Otherwise channels that
            are missing in this result stay subscribed.
    """

    channels: list[Channel]
    is_complete: bool


def find_channels(
    documents: DocumentProvider, messenger: Messenger, addresses: Iterable[str]
) -> FoundChannels:
    """Return the channels that some documents of a Source declare, with their hubs.

    Where a document names a channel and no hub, the topic is fetched: its ``Link`` fields count,
    and then the root of its body. A document that cannot be fetched, and a channel without a hub,
    are left out: a Source without channels is polled. A temporary failure makes the result
    incomplete.
    """
    found: dict[str, Channel] = {}
    is_all = True
    for address in addresses:
        try:
            channels = _channels_in(documents, address)[:_MOST_CHANNELS]
        except (SourceError, DocumentError) as error:
            is_all = is_all and not error.transient
            continue
        for channel in channels:
            known = channel
            if not channel.hubs:
                outcome, body = _fetch_topic(messenger, channel)
                is_all = is_all and not _is_transient(outcome)
                told = _with_topic_hubs(channel, outcome, body)
                if told is None:
                    continue
                known = told
            found.setdefault(known.topic, known)
    return FoundChannels(list(found.values()), is_all)


def _channels_in(documents: DocumentProvider, address: str) -> list[Channel]:
    with fetch(documents, address) as fetched:
        document = fetched.open()
        entries = list(islice(document.entries(), _MOST_ENTRIES))
        channels = channels_of(fetched.final_uri, document.header, entries)
        topics, hubs = read_links(fetched.links, fetched.final_uri)
    if not channels and hubs:
        return [Channel(topic=topics[0] if topics else address, hubs=hubs)]
    return channels


def _fetch_topic(
    messenger: Messenger, channel: Channel
) -> tuple[FetchResponse | FetchFailure, bytes]:
    """Fetch the topic of a channel for its hubs; redirects are followed a few times."""
    address, left = channel.topic, _MOST_REDIRECTS
    while True:
        sink = BodySink()
        request = FetchRequest(uri=address, sink=sink, purpose=Purpose.MESSAGE, limit=MOST_PAYLOAD)
        [outcome] = messenger.fetch([request])
        address, left = redirect_target(outcome, _REDIRECTS), left - 1
        if not address or left < 0:
            return outcome, bytes(sink.body)


def redirect_target(outcome: FetchResponse | FetchFailure, statuses: Container[int]) -> str:
    """Return the address that an answer of some status redirects to; empty without one.

    No redirect leads from https to http.
    """
    if not isinstance(outcome, FetchResponse) or outcome.status not in statuses:
        return ""
    target = join(outcome.request.uri, outcome.headers.get("location", "")) or ""
    here = outcome.request.uri[:6].lower()
    return "" if here == "https:" and not target.lower().startswith("https:") else target


def _is_transient(outcome: FetchResponse | FetchFailure) -> bool:
    """True if the same request may soon have another outcome."""
    if isinstance(outcome, FetchFailure):
        return outcome.error.transient
    return outcome.status in _LATER or outcome.status >= _FAULTS


def _with_topic_hubs(
    channel: Channel, outcome: FetchResponse | FetchFailure, body: bytes
) -> Channel | None:
    """Return a channel with the hubs that its topic declares."""
    if not isinstance(outcome, FetchResponse) or outcome.status not in _SUCCESS:
        return None
    header: Header | None = None
    if body:
        try:
            header = reader.read(body).header
        except DocumentError:
            header = None
    told = channel_of_response(outcome.request.uri, outcome.headers.get("link", ""), header)
    return None if told is None else replace(told, capability=channel.capability)
