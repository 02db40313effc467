"""Finds the channels that a Source offers (Notification §5, WebSub §4)."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Final

from resourcesync.discovery.documents import Documents, fetch
from resourcesync.documents import front
from resourcesync.errors import DocumentError, SourceError
from resourcesync.model.capabilities import Header
from resourcesync.ports import Purpose, Request, Response
from resourcesync.ports.subscriptions import Messenger
from resourcesync.websub.channels import Channel, channel_of_answer, channels_of
from resourcesync.websub.delivery import BodySink
from resourcesync.websub.messages import MOST_PAYLOAD, read_links

_MOST_ENTRIES: Final = 1_000
_MOST_CHANNELS: Final = 4
_SUCCESS: Final = range(200, 300)


def find_channels(
    documents: Documents, messenger: Messenger, addresses: Iterable[str]
) -> list[Channel]:
    """Return the channels that some documents of a Source tell of, with their hubs.

    Where a document names a channel and no hub, the topic is asked: its ``Link`` fields count, and
    then the root of what it answers. A document that cannot be had, and a channel without a hub,
    are left out: a Source without channels is polled.

    Args:
        documents: Gets the documents.
        messenger: Asks the topics.
        addresses: Of the Capability List, and of the Source Description.

    Raises:
        StorageError: A document could not be kept.
    """
    found: dict[str, Channel] = {}
    for address in addresses:
        for channel in _told(documents, address)[:_MOST_CHANNELS]:
            known = channel if channel.hubs else _asked(messenger, channel)
            if known is not None:
                found.setdefault(known.topic, known)
    return list(found.values())


def _told(documents: Documents, address: str) -> list[Channel]:
    try:
        with fetch(documents, address) as fetched:
            document = fetched.open()
            entries = list(islice(document.entries(), _MOST_ENTRIES))
            channels = channels_of(fetched.final_uri, document.header, entries)
            topics, hubs = read_links(fetched.links, fetched.final_uri)
    except (SourceError, DocumentError):
        return []
    if not channels and hubs:
        return [Channel(topic=topics[0] if topics else address, hubs=hubs)]
    return channels


def _asked(messenger: Messenger, channel: Channel) -> Channel | None:
    """Return a channel with the hubs that its topic tells of."""
    sink = BodySink()
    request = Request(uri=channel.topic, sink=sink, purpose=Purpose.MESSAGE, limit=MOST_PAYLOAD)
    [outcome] = messenger.fetch([request])
    if not isinstance(outcome, Response) or outcome.status not in _SUCCESS:
        return None
    header: Header | None = None
    if sink.kept:
        try:
            header = front.read(bytes(sink.kept)).header
        except DocumentError:
            header = None
    told = channel_of_answer(channel.topic, outcome.headers.get("link", ""), header)
    return None if told is None else replace(told, capability=channel.capability)
