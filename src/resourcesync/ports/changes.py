"""Changes of a mirror, for the next program (``MirrorChangeLog``).

Times are whole microseconds since 1970-01-01T00:00:00Z, as they are stored.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Final, NamedTuple, Protocol

import msgspec

Microseconds = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000_000, le=253_402_300_799_999_999)]
"""A stored moment: microseconds since 1970-01-01T00:00:00Z, of the years 1 to 9999."""
ClockMicroseconds = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999_999)]
"""The same, by the clock of this machine: not before 1970."""

PROVEN_ALL: Final = "proven-all"
"""Name of the note with the time of the last audit that proved all copies, microseconds."""


class MirrorChangeKind(StrEnum):
    """The kind of change of a copy."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"
    TOUCHED = "touched"
    """Fetched or confirmed again, or its entry has other links; the bytes are the same."""


class LoggedChange(NamedTuple):
    """One change of the mirror's content.

    Attributes:
        seq: Its number; a later change has a greater one. Numbers may be left out.
        time: Time of the change in the mirror.
        kind: A ``MirrorChangeKind``.
        uri: The resource's URI, normalised.
        path: Its place in the mirror.
        length: Bytes; of the deleted copy, for a deletion.
        digests: Digests of the bytes now; empty when they were deleted.
        previous: Digests of the bytes before; empty when there were none, or they are unknown.
    """

    seq: int
    time: ClockMicroseconds
    kind: str
    uri: str
    path: str
    length: int
    digests: str
    previous: str


class ChangeLogPosition(NamedTuple):
    """How far a program has read the changes of a mirror: its place in the log, and what proves it.

    As text it is ``NUMBER.TIME``, or ``NUMBER.TIME.URI`` during the first reading.

    Attributes:
        number: Number of the last change that was read.
        time: Time of that change, microseconds: a log that was restored from a backup, or begun
            again, has another change with this number. 0 if there is none, or it is not known.
        uri: During the first reading, which yields the copies in order, the last one that was read;
            else empty.
    """

    number: int
    time: int = 0
    uri: str = ""

    def __str__(self) -> str:
        return f"{self.number}.{self.time}" + (f".{self.uri}" if self.uri else "")


_POSITION: Final = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,18})(?:\.(.+))?)?", re.DOTALL)


def parse_position(text: str) -> ChangeLogPosition | None:
    """Return the position that a text is, or whose number it is; ``None`` if it is neither."""
    found = _POSITION.fullmatch(text)
    if found is None:
        return None
    return ChangeLogPosition(int(found[1]), int(found[2] or 0), found[3] or "")


class Arrival(NamedTuple):
    """The arrival of a change in the mirror, with the Source's date of it.

    Attributes:
        time: Time of the change in the mirror.
        kind: A ``MirrorChangeKind``.
        uri: The resource's URI, normalised.
        length: Bytes; of the deleted copy, for a deletion.
        dated: The ``lastmod`` that the Source listed; ``None`` when it listed none, for deletions,
            and for arrivals before this was recorded.
    """

    time: ClockMicroseconds
    kind: str
    uri: str
    length: int
    dated: Microseconds | None


class MirrorChangeLog(Protocol):
    """The changes of a mirror, oldest first; each was stored together with its copies.

    The log is bounded: old changes are removed, oldest first.
    """

    def changes(self, after: int) -> Iterator[LoggedChange]:
        """Yield the changes with a number greater than ``after``, in order."""

    def changes_of(self, uri: str) -> Iterator[LoggedChange]:
        """Yield the changes of one resource, the newest first."""

    def change_bounds(self) -> tuple[int, int]:
        """Return the numbers of the last change that was forgotten and of the newest one."""

    def sequence_before(self, moment: int) -> int:
        """Return the number of the last change before ``moment``."""

    def content_before(self, uri: str) -> tuple[int, str] | None:
        """Return length and digests of a copy whose file is changing now, before it changes.

        ``None``: there was none.
        """


class ProofLog(Protocol):
    """The log of the last audit that proved each copy."""

    def oldest_proofs(self) -> Iterator[tuple[str, int]]:
        """Yield URIs with the time of the last proof, else of the installation; oldest first."""

    def add_proofs(self, uris: Sequence[str], moment: int) -> None:
        """Remember that copies were proven."""
