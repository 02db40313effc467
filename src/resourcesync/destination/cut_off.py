"""A reading of Change Lists whose news were not written down to their end: was it taken back?

A pull that is killed while it writes news down leaves tasks behind, and made others go. They are
right only as long as the lists still tell what it read. So each list with news must still begin as
it was; it may have a new place, and more changes behind those.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from resourcesync.destination.cursor import ListPrefix
from resourcesync.model.resources import Change
from resourcesync.ports.mirror import MirrorStateStore

INTERRUPTED_CHANGES: Final = "cut-off-changes"
"""The note of the lists whose news are being written down; empty when all of them are."""
REPAIR_CHANGES: Final = "changes-beyond"
"""The note of lists with news of which some were acted on, by a repair, before T moves."""
_MAX_PREFIXES: Final = 10_000
PrefixRecord = tuple[int, int, str]
"""When a list begins, or 0, how many changes it had, and their digest."""
_UNPROVEN: Final[tuple[PrefixRecord, ...]] = ((-1, 0, ""),)
"""What no list begins with."""
_PREFIXES_DECODER: Final = msgspec.json.Decoder(tuple[PrefixRecord, ...])


class InterruptedReading:
    """The lists of a reading that was cut off, until other lists prove to begin as they were.

    Args:
        read: What they were.
    """

    def __init__(self, read: Iterable[PrefixRecord]) -> None:
        self.missing = set(read)
        self._lengths = {entries for _, entries, _ in self.missing}
        self._matched = set[PrefixRecord]()
        self._list_begin = 0
        self._prefix = ListPrefix()

    @classmethod
    def from_notes(cls, *notes: str | None) -> "InterruptedReading":
        """Return what notes tell; nothing proves one that cannot be read."""
        try:
            return cls(read for note in notes for read in _PREFIXES_DECODER.decode(note or "[]"))
        except msgspec.MsgspecError:
            return cls(_UNPROVEN)

    @classmethod
    def from_state(cls, state: MirrorStateStore | None) -> "InterruptedReading":
        """Return what a mirror's memory tells of lists whose news were acted on before T moved."""
        return (
            cls(())
            if state is None
            else cls.from_notes(state.note(INTERRUPTED_CHANGES), state.note(REPAIR_CHANGES))
        )

    def begin_list(self, from_: int | None) -> None:
        """Begin with the first change of a list.

        Args:
            from_: When it begins, microseconds; ``None`` where it does not tell.
        """
        self._matched, self._list_begin, self._prefix = set(), from_ or 0, ListPrefix()

    def add(self, change: Change) -> None:
        """Take the next change of the list, new or not."""
        if not self.missing:
            return
        prefix = self._prefix
        prefix.add(change)
        if prefix.entries in self._lengths:
            self._matched.add((self._list_begin, prefix.entries, prefix.hexdigest()))

    def end_list(self, *, is_news: bool) -> None:
        """Take note of the list: what was news in it then must be so now.

        Args:
            is_news: Whether it told of something new.
        """
        if is_news:
            self.missing -= self._matched

    @property
    def is_lost(self) -> bool:
        """Whether what was read is not all listed any more, as far as lists were read."""
        return bool(self.missing)


def encode_prefixes(read: Iterable[PrefixRecord]) -> str:
    """Return what was read as a note; more than is worth to be noted is never proven."""
    kept = sorted(set(read))
    return msgspec.json.encode(kept if len(kept) <= _MAX_PREFIXES else list(_UNPROVEN)).decode()
