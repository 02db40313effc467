"""Which files that look unchanged are read again all the same: nothing tells of every write.

A program that has a file mapped into memory writes without moving its time at once, and a disk may
change what nobody wrote. So two kinds of files are read again, a bounded part of a tree each time:

- what was written within a minute before the last scan, once that minute is over: until then a
  write to mapped memory may leave the times as they are;
- all others in turn, within thirty days or thirty scans, whichever takes longer.
"""

from typing import Final, NamedTuple, Self

import msgspec

_SECOND: Final = 1_000_000
_DAY: Final = 24 * 3_600 * _SECOND
_ROUND_TIME: Final = 30 * _DAY
_MOST: Final = _DAY
"""However long no scan was: one reads no more than is due in a day."""
_UNSETTLED: Final = 60 * _SECOND
"""Systems write mapped memory to the disk within half a minute, and see later writes to it."""
_ROUND: Final = 2**32
_MIXER: Final = 2_654_435_761
"""Spreads numbers that lie beside each other over the whole round."""


class _RereadState(msgspec.Struct, frozen=True):
    """What is remembered from one scan to the next.

    Attributes:
        at: When the last scan was, microseconds.
        place: How far the round has come.
    """

    at: int
    place: int


class RereadSchedule(NamedTuple):
    """What one scan reads again; the default is nothing.

    Attributes:
        now: When the scan is, microseconds.
        place: Where in the round it begins.
        width: How much of the round is due.
        written_after: Of files modified after this, nanoseconds,
        written_until: and up to this, all are due.
    """

    now: int = 0
    place: int = 0
    width: int = 0
    written_after: int = 0
    written_until: int = 0

    @classmethod
    def since(cls, note: str | None, now: int) -> Self:
        """Return what is due now.

        Args:
            note: What `note` returned at the last scan; ``None`` when all is new.
            now: Microseconds.
        """
        try:
            kept = msgspec.json.decode(note or "null", type=_RereadState | None)
        except msgspec.MsgspecError:
            kept = None
        if kept is None:
            return cls(now)
        width = _ROUND * min(max(now - kept.at, 0), _MOST) // _ROUND_TIME
        after, until = kept.at - _UNSETTLED, now - _UNSETTLED
        return cls(now, kept.place % _ROUND, width, after * 1_000, until * 1_000)

    def note(self) -> str:
        """Return what to remember once the scan is recorded."""
        place = (self.place + self.width) % _ROUND
        return msgspec.json.encode(_RereadState(at=self.now, place=place)).decode()

    def is_due(self, inode: int, modified: int) -> bool:
        """Whether a file is due.

        Args:
            inode: Its number, which says where in the round its turn is.
            modified: When it was written, nanoseconds.
        """
        if (inode * _MIXER - self.place) % _ROUND < self.width:
            return True
        return self.written_after < modified <= self.written_until
