"""How far the log of changes was followed, when changes become visible in another order."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from resourcesync.errors import DiscontinuityError

MAX_REMEMBERED: Final = 50_000
"""The most changes that are remembered one by one."""
_VERSION: Final = 1


class LogPosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every change before a moment was told, and of those from it on the ones that are named.

    Attributes:
        log: What is another when the log is made anew.
        start: The moment, in milliseconds since 1970.
        seen: The ``_id`` of each change from then on that was told.
        undated: How many changes have no date; their place is not known.
    """

    log: str
    start: int = 0
    seen: frozenset[str] = frozenset()
    undated: int = 0
    version: int = _VERSION

    def encode(self) -> str:
        """Return it as a text."""
        return msgspec.json.encode(self).decode()


class ReportedEntry(NamedTuple):
    """A change that was told: its ``_id`` and its time in milliseconds."""

    name: str
    logged: int


def decode_position(text: str) -> LogPosition:
    """Return the position that a text is.

    Raises:
        DiscontinuityError: It is none of ours.
    """
    try:
        found = msgspec.json.decode(text, type=LogPosition)
    except msgspec.DecodeError as error:
        raise DiscontinuityError("the position is of another program", code="bad-position") from (
            error
        )
    if found.version != _VERSION:
        raise DiscontinuityError("the position is of another version", code="bad-position")
    return found


def advance_position(
    position: LogPosition, told: Iterable[ReportedEntry], *, boundary: int, held: int | None
) -> LogPosition:
    """Return the position after some changes.

    Args:
        position: The one before.
        told: All changes from its moment on that were told, now or before.
        boundary: The moment from which on others may still become visible.
        held: The time of the oldest change that is not told yet; ``None`` for none.
    """
    known = list(told)
    start = max(position.start, boundary)
    start = narrow_start(known, start) if held is None else max(position.start, min(start, held))
    seen = frozenset(it.name for it in known if it.logged >= start)
    return LogPosition(log=position.log, start=start, seen=seen, undated=position.undated)


def narrow_start(known: Sequence[ReportedEntry], start: int) -> int:
    """Return a moment from which on no more changes are known than can be remembered.

    When one second has more, a latecomer of that second is given up: all is read again anyhow,
    now and then.
    """
    newest = max((it.logged for it in known), default=start)
    for moment in (start, newest):
        if sum(it.logged >= moment for it in known) <= MAX_REMEMBERED:
            return moment
    return newest + 1
