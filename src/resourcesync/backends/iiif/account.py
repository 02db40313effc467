"""The account of ``iiif:URL``: a stream of activities of IIIF Change Discovery 1.0 (ADR 0087).

The list of resources is what the whole stream says; the changes are the activities after the stored
position. A walk that does not reach that position is a gap, and everything is read again.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Final

import msgspec

from resourcesync.backends.iiif.states import ObjectStates
from resourcesync.backends.iiif.stream import (
    ActivityPosition,
    StreamHead,
    StreamPage,
    StreamReader,
    encode_position,
    end_of,
)
from resourcesync.discovery.addresses import origin_of
from resourcesync.errors import ChangesLostError, ConfigurationError, StateError
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports.accounts import AccountOptions, ChangeBatch

SCHEME: Final = "iiif:"
_ROUNDS: Final = 3
_KEYS: Final = ("origins", "types")

_log = logging.getLogger(__name__)


@contextmanager
def open_account(options: AccountOptions) -> Iterator["ChangeDiscoveryAccount"]:
    """Open the account of a stream, ``iiif:`` and the address of its collection.

    The option ``types=Manifest,Collection`` ignores objects of other types;
    ``origins=https://HOST`` allows pages on another origin.

    Raises:
        ConfigurationError: The address or a value is invalid.
    """
    address = options.address.removeprefix(SCHEME)
    if origin_of(address) is None or "@" in address.split("/")[2]:
        raise ConfigurationError(
            "iiif: needs the address of a collection, without a user",
            hint="iiif:https://HOST/activity/all-changes",
        )
    types, origins = _parse_values(options.values)
    with StreamReader(options.fetcher, address, origins) as reader:
        yield ChangeDiscoveryAccount(options, reader, types)


def _parse_values(values: Mapping[str, str]) -> tuple[frozenset[str], tuple[str, ...]]:
    for key in sorted(values.keys() - set(_KEYS)):
        raise ConfigurationError(
            f"iiif: has no option {key}",
            evidence=tuple(("known", name) for name in _KEYS),
            code="unknown-key",
        )
    lists = {key: [word.strip() for word in text.split(",")] for key, text in values.items()}
    if not all(all(words) for words in lists.values()):
        raise ConfigurationError("an option of iiif: is a list of words, separated by commas")
    origins = tuple(lists.get("origins", ()))
    for name in origins:
        if origin_of(name) is None:
            raise ConfigurationError(
                f"{name[:200]!r} is not an origin", hint="such as https://pages.example"
            )
    return frozenset(lists.get("types", ())), origins


class ChangeDiscoveryAccount:
    """An account of the objects in a stream of activities (``TolerantAccount``).

    Args:
        types: The types of objects that count; empty for all.
    """

    can_list_resources = True
    lists_all = True

    def __init__(
        self, options: AccountOptions, reader: StreamReader, types: frozenset[str]
    ) -> None:
        self._options = options
        self._reader = reader
        self._types = types

    def position(self) -> str:
        """Return the position after the last activity; empty if the stream has no usable order.

        Activities without ``endTime`` (level 0) have no order that a later run could rely on, nor
        has a stream that does not put the most recent last.

        Raises:
            SourceError: The stream cannot be read.
            DocumentError: A document of it is invalid.
        """
        head = self._reader.head()
        if head.last is None or not (head.last.activities or head.last.page.previous):
            return encode_position(ActivityPosition())
        if not (head.last.activities and head.last.is_in_order):
            return ""
        end = end_of(head.last)
        earlier = self._reader.first(head)
        if earlier is None:
            earlier = next(islice(self._reader.pages(head), 1, None), None)
        if earlier is not None:
            before = end_of(earlier).time
            is_reversed = before is not None and end.time is not None and end.time < before
            if is_reversed or not earlier.is_in_order:
                return ""
        return encode_position(end)

    def resources(self) -> Iterator[Resource]:
        """Yield the objects that exist according to the whole stream, each once.

        The newest activity of an object decides. Activities that were added meanwhile are read too:
        where pages move up, an object may otherwise be missed.

        Raises:
            SourceError: A page of the stream is missing, or cannot be read.
            DocumentError: A document of it is invalid.
            StorageError: No space is left for temporary files.
        """
        with ObjectStates(self._types, self._now()) as states:
            before = self._reader.head()
            for _ in range(_ROUNDS):
                self._read_all(before, states)
                after = self._reader.head()
                if after.is_same(before):
                    break
                before = after
            # An unusable activity may be the one that says that an object exists.
            self.lists_all = not states.omissions
            yield from states.resources()

    def leniencies(self) -> Sequence[Mapping[str, object]]:
        """Return nothing: unusable activities are told as omissions."""
        return ()

    def _read_all(self, head: StreamHead, states: ObjectStates) -> None:
        """Read the pages until one that was read before, or an old refresh."""
        states.start(head, self._options.address.removeprefix(SCHEME))
        count, is_ordered, earliest = 0, True, None
        for page in self._reader.pages(head):
            if states.knows(page):
                return
            is_ordered = is_ordered and _precedes(page, earliest)
            earliest = _earliest(page, earliest)
            count += len(page.activities)
            if states.add(page):
                return
        if not is_ordered:
            _log.warning("the activities are not in the order of their time: the latest counts")
        total = head.collection.total
        if total is not None and total != count and states.is_first_reading:
            _log.warning("the collection has %d activities, and says %d", count, total)

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:  # noqa: ARG002 - one look
        """Yield the state of each object that has an activity after a position, oldest first.

        Raises:
            ChangesLostError: The stream no longer continues from that position.
            SourceError: The stream cannot be read.
            DocumentError: A document of it is invalid.
            StorageError: No space is left for temporary files.
        """
        position = _decode(after)
        with ObjectStates(self._types, self._now()) as states:
            head = self._reader.head()
            states.start(head, self._options.address.removeprefix(SCHEME))
            self._read_new(head, position, states)
            reached = after
            for batch in states.changes():
                reached = batch.position
                yield batch
            end = reached
            if head.last is not None and head.last.activities:
                end = encode_position(end_of(head.last))
            if end != reached or states.omissions:
                yield ChangeBatch(end, (), states.omissions)

    def _read_new(self, head: StreamHead, position: ActivityPosition, states: ObjectStates) -> None:
        """Read the activities after a position.

        The position is recognized by the page and its activities; where pages move, by the time: an
        activity before that time was processed, if those after it are in order.
        """
        earliest, is_ordered, has_newer, count = None, True, False, 0
        for page in self._reader.pages(head):
            count += len(page.activities)
            processed = position.find_in(page)
            if processed is not None:
                states.add(page, start=processed)
                return
            is_ordered = is_ordered and _precedes(page, earliest)
            earliest = _earliest(page, earliest)
            start = 0
            if position.time is not None and is_ordered:
                start = _count_before(page, position.time)
            has_newer = has_newer or start < len(page.activities)
            states.add(page, start=start)
            if start and not has_newer:
                raise _gap("it was set back: all activities are older")
            if start:
                return
        if position != ActivityPosition() or count < (head.collection.total or 0):
            raise _gap("it no longer goes back that far")

    def _now(self) -> int:
        return to_microseconds(self._options.clock.now())


def _precedes(page: StreamPage, earliest: int | None) -> bool:
    """True if a page is in order, and nothing in it is later than the page after it."""
    if not page.is_in_order:
        return False
    latest = end_of(page).time
    return latest is None or earliest is None or latest <= earliest


def _earliest(page: StreamPage, later: int | None) -> int | None:
    times = [item.time for item in page.activities if item is not None and item.time is not None]
    return min(times, default=later)


def _count_before(page: StreamPage, time: int) -> int:
    """Return the number of activities of an ordered page up to the last one before a time."""
    found = 0
    for number, item in enumerate(page.activities, 1):
        if item is not None and item.time is not None and item.time < time:
            found = number
    return found


def _gap(reason: str) -> ChangesLostError:
    return ChangesLostError(
        f"the stream does not continue from the stored position: {reason}",
        evidence=(("kept", "what was recorded before"),),
        hint="the whole stream is read again",
    )


def _decode(text: str) -> ActivityPosition:
    try:
        return msgspec.json.decode(text, type=ActivityPosition)
    except msgspec.MsgspecError as error:
        raise StateError(
            "the stored position of the stream is invalid", evidence=(("got", text[:200]),)
        ) from error
