"""Code shared by all feeds: options, and changes in batches of bounded size."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from resourcesync.documents import ndjson
from resourcesync.errors import ConfigurationError, DiscontinuityError, DocumentError, Remedy
from resourcesync.model.resources import Change, Resource
from resourcesync.ports import Clock
from resourcesync.ports.accounts import ChangeBatch
from resourcesync.ports.catalogue import Omission

GAPS: Final = "gaps"
"""The key by which an operator accepts lost changes."""
_MOST_CHANGES: Final = 1_000
_MOST_BYTES: Final = 4 * 1024 * 1024
MAX_BATCH_SECONDS: Final = 1.0
"""Seconds that a change waits for others before it is reported."""
_ACCEPTED: Final = "accept"
_SHOWN: Final = 200
_MOST_SECONDS: Final = 86_400.0


class ChangeFeed:
    """The base of all feeds: they report changes, and cannot list all resources."""

    can_list_resources = False

    def resources(self) -> Iterator[Resource]:
        """Refuse: a feed cannot list resources.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError("a feed reports changes only, not all resources")


def check_keys(feed: str, values: Mapping[str, str], known: frozenset[str]) -> None:
    """Refuse unknown keys.

    Raises:
        ConfigurationError: A key, or the value of ``gaps``, is unknown.
    """
    for key in sorted(values.keys() - known):
        raise ConfigurationError(
            f"{feed} has no option {key}",
            evidence=tuple(("known", name) for name in sorted(known)),
            code="unknown-key",
        )
    if values.get(GAPS, _ACCEPTED) != _ACCEPTED:
        raise ConfigurationError(f"the option {GAPS} is {_ACCEPTED}, or is left out")


def parse_seconds(values: Mapping[str, str], key: str, usual: float) -> float:
    """Return a number of seconds.

    Raises:
        ConfigurationError: It is none, or out of range.
    """
    try:
        found = float(values.get(key, usual))
    except ValueError:
        found = 0.0
    if not 0 < found <= _MOST_SECONDS:
        raise ConfigurationError(f"the option {key} is a number of seconds, up to a day")
    return found


def accepts_gaps(values: Mapping[str, str]) -> bool:
    """True if the feed goes on after lost changes."""
    return GAPS in values


def gap_error(message: str, *evidence: tuple[str, str]) -> DiscontinuityError:
    """Return the error for lost changes, with its remedy."""
    return DiscontinuityError(
        message,
        evidence=(*evidence, ("kept", "what was recorded before")),
        hint=f"to continue without the lost changes, set the option {GAPS}",
        code="feed-gap",
        remedy=Remedy("set-option", value=f"{GAPS}={_ACCEPTED}"),
    )


def decode_entry(line: bytes, name: str) -> Change | Omission:
    """Return the change in one line of JSON, or why it is left out."""
    try:
        entry = ndjson.read_line(line, name=name)
    except DocumentError as error:
        return Omission(name=printable(line), reason=error.message.removeprefix(f"{name}: "))
    if isinstance(entry, Change):
        return entry
    return Omission(name=entry.uri[:_SHOWN], reason='no "change": created, updated or deleted')


def printable(line: bytes) -> str:
    """Return the beginning of a line, fit to be printed."""
    text = line[:_SHOWN].decode("utf-8", "replace").strip()
    return "".join(name if name.isprintable() else "\ufffd" for name in text) or "an empty line"


class DecodedEvent(NamedTuple):
    """The content of an event.

    Attributes:
        entries: Changes and invalid ones; empty if it is about something else.
        moment: Time of the event; ``None`` if unknown.
    """

    entries: Sequence[Change | Omission]
    moment: datetime | None


class PendingChanges:
    """A batch of changes, bounded in number, size and age."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changes: list[Change] = []
        self._omissions: list[Omission] = []
        self._size = 0
        self._since: float | None = None

    def add(self, entries: Sequence[Change | Omission], size: int) -> None:
        """Add the changes in ``size`` bytes of the feed; there may be none."""
        if self._since is None:
            self._since = self._clock.monotonic()
        self._size += size
        for entry in entries:
            if isinstance(entry, Change):
                self._changes.append(entry)
            else:
                self._omissions.append(entry)

    @property
    def is_due(self) -> bool:
        """True if the batch should be reported now."""
        if self._since is None:
            return False
        return self.is_full or self._clock.monotonic() - self._since >= MAX_BATCH_SECONDS

    @property
    def is_full(self) -> bool:
        """True if no more changes should be added."""
        entries = len(self._changes) + len(self._omissions)
        return entries >= _MOST_CHANGES or self._size >= _MOST_BYTES

    def __bool__(self) -> bool:
        return self._since is not None

    def take(self, position: str, *, is_last: bool = False) -> ChangeBatch:
        """Return the batch, with the feed's position after it, and start another one."""
        told = ChangeBatch(position, self._changes, self._omissions, is_last)
        self._changes, self._omissions = [], []
        self._size, self._since = 0, None
        return told
