"""Finds the channels that a Source offers (Notification §5, WebSub §4)."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

from resourcesync.discovery.document_fetcher import DocumentProvider, fetch
from resourcesync.documents import reader
from resourcesync.errors import DocumentError, SourceError
from resourcesync.model.capabilities import Header
from resourcesync.ports import FetchFailure, FetchRequest, FetchResponse, Purpose
from resourcesync.ports.subscriptions import Messenger
from resourcesync.websub.channels import Channel, channel_of_response, channels_of
from resourcesync.websub.delivery import BodySink
from resourcesync.websub.messages import MOST_PAYLOAD, read_links

_MOST_ENTRIES: Final = 1_000
_MOST_CHANNELS: Final = 4
_SUCCESS: Final = range(200, 300)
_LATER: Final = frozenset({408, 425, 429})
_FAULTS: Final = 500


class FoundChannels(NamedTuple):
    """What was found.

    Attributes:
        channels: The channels, with their hubs.
        is_all: Whether everything was had that may tell of one. Where it was not, a channel that
            is missing here is not given up.
    """

    channels: list[Channel]
    is_complete: bool


def find_channels(
    documents: DocumentProvider, messenger: Messenger, addresses: Iterable[str]
) -> FoundChannels:
    """Return the channels that some documents of a Source tell of, with their hubs.

    Where a document names a channel and no hub, the topic is asked: its ``Link`` fields count, and
    then the root of what it answers. A document that cannot be had, and a channel without a hub,
    are left out: a Source without channels is polled. What only cannot be had now is asked again.

    Args:
        documents: Gets the documents.
        messenger: Asks the topics.
        addresses: Of the Capability List, and of the Source Description.

    Raises:
        StorageError: A document could not be kept.
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
    """Ask the topic of a channel for its hubs."""
    sink = BodySink()
    request = FetchRequest(
        uri=channel.topic, sink=sink, purpose=Purpose.MESSAGE, limit=MOST_PAYLOAD
    )
    [outcome] = messenger.fetch([request])
    return outcome, bytes(sink.body)


def _is_transient(outcome: FetchResponse | FetchFailure) -> bool:
    """Whether the same question may have another answer soon."""
    if isinstance(outcome, FetchFailure):
        return outcome.error.transient
    return outcome.status in _LATER or outcome.status >= _FAULTS


def _with_topic_hubs(
    channel: Channel, outcome: FetchResponse | FetchFailure, body: bytes
) -> Channel | None:
    """Return a channel with the hubs that its topic tells of."""
    if not isinstance(outcome, FetchResponse) or outcome.status not in _SUCCESS:
        return None
    header: Header | None = None
    if body:
        try:
            header = reader.read(body).header
        except DocumentError:
            header = None
    told = channel_of_response(channel.topic, outcome.headers.get("link", ""), header)
    return None if told is None else replace(told, capability=channel.capability)
