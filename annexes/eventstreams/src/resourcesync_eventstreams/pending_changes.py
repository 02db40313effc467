"""Changes of a stream in batches of bounded size."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from resourcesync.model.entries import Change
from resourcesync.ports import Clock
from resourcesync.ports.accounts import ChangeBatch
from resourcesync.ports.originals import Omission

_MOST_CHANGES: Final = 1_000
_MOST_BYTES: Final = 4 * 1024 * 1024
MAX_BATCH_SECONDS: Final = 1.0
"""Seconds that a change waits for others before it is reported."""
_SHOWN: Final = 200


def printable(line: bytes) -> str:
    """Return the beginning of a line, fit to be printed."""
    text = line[:_SHOWN].decode("utf-8", "replace").strip()
    return "".join(name if name.isprintable() else "\ufffd" for name in text) or "an empty line"


class DecodedEvent(NamedTuple):
    """The content of an event."""

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
        """Add the changes in ``size`` bytes of the stream; there may be none."""
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

    def take(self, position: str) -> ChangeBatch:
        """Return the batch, with the position after it, and start another one."""
        told = ChangeBatch(position, self._changes, self._omissions)
        self._changes, self._omissions = [], []
        self._size, self._since = 0, None
        return told
