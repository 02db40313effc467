"""A reading of Change Lists whose news were not written down to their end: was it taken back?

A pull that is killed while it writes news down leaves tasks behind, and made others go. They are
right only as long as the lists still tell what it read. So each list with news must still begin as
it was; it may have a new place, and more changes behind those.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from resourcesync.destination.cursor import Prefix
from resourcesync.model.resources import Change

CUT_OFF: Final = "cut-off-changes"
"""The note of the lists whose news are being written down; empty when all of them are."""
_MOST: Final = 10_000
_NOTED: Final = msgspec.json.Decoder(list[tuple[int, str]])
_UNPROVEN: Final = ((0, ""),)
"""What no list begins with."""

Read = tuple[int, str]
"""How many changes a list had, and their digest."""


class CutOff:
    """The lists of a reading that was cut off, until other lists prove to begin as they were.

    Args:
        read: What they were.
    """

    def __init__(self, read: Iterable[Read]) -> None:
        self._missing = set(read)
        self._lengths = {entries for entries, _ in self._missing}
        self._prefix = Prefix()

    @classmethod
    def of_note(cls, note: str | None) -> "CutOff":
        """Return what a note tells; nothing proves one that cannot be read."""
        try:
            return cls(_NOTED.decode(note or "[]"))
        except msgspec.MsgspecError:
            return cls(_UNPROVEN)

    def begin_list(self) -> None:
        """Begin with the first change of a list."""
        self._prefix = Prefix()

    def add(self, change: Change) -> None:
        """Take the next change of a list, new or not."""
        if not self._missing:
            return
        prefix = self._prefix
        prefix.add(change)
        if prefix.entries in self._lengths:
            self._missing.discard((prefix.entries, prefix.hexdigest()))

    @property
    def is_lost(self) -> bool:
        """Whether what was read is not all listed any more, as far as lists were read."""
        return bool(self._missing)


def note_of(read: Iterable[Read]) -> str:
    """Return what was read as a note; more than is worth to be noted is never proven."""
    kept = list(read)
    return msgspec.json.encode(kept if len(kept) <= _MOST else list(_UNPROVEN)).decode()
