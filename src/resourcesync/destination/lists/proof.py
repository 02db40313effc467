"""Proof by absence: what one reading of a list says of resources that it does not name. Pure.

A copy is absent only if the last evidence of its resource's existence is older than the list, both
by the Source's clocks; and only if the list was read as it was at one moment, or two readings in a
row lack the resource. Lists, dumps, their parts, pulls, repairs and audits all use this judgement.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from resourcesync.errors import Remedy, RollbackError
from resourcesync.model.timestamps import (
    end_of_lastmod,
    format_w3c,
    from_microseconds,
    known_microseconds,
    lastmod_microseconds,
)

if TYPE_CHECKING:
    from resourcesync.destination.planner import Absence

SECOND: Final = 1_000_000
_ALWAYS: Final = (1 << 63) - 1
_NEVER: Final = -1


class Announcement(Protocol):
    """What an index says of a part, or a dump of a package."""

    @property
    def at(self) -> datetime | None:
        """Its moment."""

    @property
    def lastmod(self) -> datetime | None:
        """Time of its last modification."""


class ReadPart(NamedTuple):
    """A part of an index, or a package of a dump, as it was read.

    Attributes:
        uri: Its address.
        announced: What its index says of it.
        at: The moment that it states itself, microseconds; ``None`` if it states none.
        has_listed_hash: The index gives a hash, and the bytes that were read have it.
    """

    uri: str
    announced: Announcement
    at: int | None
    has_listed_hash: bool = False


def is_of_one_moment(parts: Iterable[ReadPart]) -> bool:
    """True if all parts state the same moment, or there is but one."""
    kept = [part.at for part in parts]
    return len(kept) <= 1 or (None not in kept and len(set(kept)) == 1)


def is_pinned(part: ReadPart, began: int) -> bool:
    """True if an index that is still the same proves that a part was not rewritten meanwhile.

    It does by a hash, or by a time that was over when the reading began and that the part does not
    contradict.

    Args:
        part: The part as read.
        began: The Source's time when the index was sent, microseconds.
    """
    if part.has_listed_hash:
        return True
    end = interval_end(part.announced)
    return end is not None and end <= began and _is_as_announced(part, end)


def interval_end(announced: Announcement) -> int | None:
    """Return the end of the interval in which an index dates a part, microseconds."""
    dates = map(lastmod_microseconds, (announced.at, announced.lastmod))
    return max((end_of_lastmod(date) for date in dates if date is not None), default=None)


def _is_as_announced(part: ReadPart, end: int) -> bool:
    at = known_microseconds(part.announced.at)
    if part.at is None:
        return True
    return part.at < end if at is None else part.at == at


class ListMoments(msgspec.Struct, frozen=True, kw_only=True):
    """The moments that one reading of a list states, microseconds.

    Attributes:
        at: The earliest one, of the list, its index or its parts: every change up to it is
            included. ``None`` if none is stated.
        parts: Those of parts, by address.
    """

    at: int | None = None
    parts: Mapping[str, int] = msgspec.field(default_factory=dict)

    @property
    def latest(self) -> int:
        """The latest one: what the reading names may have existed then."""
        return max((self.at or 0, *self.parts.values()))

    def to_store(self) -> "ListMoments":
        """Return the moments without the parts that have the earliest one."""
        later = {uri: at for uri, at in self.parts.items() if at != self.at}
        return ListMoments(at=self.at, parts=later)

    def earliest_change(self, known: "ListMoments") -> int | None:
        """Return the earliest moment of the parts that differ from those before.

        What the others lack they lacked before, when another part named it.

        Args:
            known: What was stored of the last reading.
        """
        parts = self.parts.items()
        return min((at for uri, at in parts if at != known.parts.get(uri, known.at)), default=None)

    def check_no_older(self, known: "ListMoments") -> None:
        """Check that neither the list nor a part is of an earlier moment than the one before.

        Args:
            known: What was stored of the last reading.

        Raises:
            RollbackError: One is: a stale copy of a cache, or the Source was restored from an
                older state.
        """
        if self.at is None or known.at is None:
            return
        if self.at < known.at:
            raise _rollback("the Source's Resource List is", known.at, self.at)
        for uri, before in known.parts.items():
            now = self.parts.get(uri, before)
            if now < before:
                raise _rollback(f"a part of the Source's Resource List, {uri}, is", before, now)


def _rollback(subject: str, known: int, at: int) -> RollbackError:
    return RollbackError(
        f"{subject} older than the one already processed",
        evidence=(
            ("here", f"Resource List at {format_w3c(from_microseconds(known))}"),
            ("got", f"Resource List at {format_w3c(from_microseconds(at))}"),
            ("kept", "nothing was changed"),
        ),
        hint="if the Source was restored from an older state, read its whole list",
        remedy=Remedy("baseline"),
    )


class ListReading(msgspec.Struct, frozen=True, kw_only=True):
    """A reading of a list and of the changes since, as far as absence depends on it.

    Attributes:
        is_complete: Every part was read, fits its index, and is of the requested host; each entry
            could be used.
        is_one_moment: The list was read as it was at one moment.
        moments: What the list states.
        served: Time of the oldest answer that it was read from, by the Source's clock; the present
            moment if unknown.
        through: Moment up to which the changes since report, by the clock of the lists; that of the
            list itself without changes. ``None`` if there is a gap.
        accepts_undated: The operator vouches for a list that states no moment.
        accepts_older: The operator vouches for a Source that was restored from an older state.
    """

    is_complete: bool
    is_one_moment: bool
    moments: ListMoments
    served: int
    through: int | None
    accepts_undated: bool = False
    accepts_older: bool = False


def proven_absence(
    reading: ListReading, before: ListMoments, checkpoint: int
) -> tuple["Absence", int]:
    """Return what it means that a reading does not name a resource, and as of which moment.

    A resource that existed later is not absent.

    Args:
        reading: The reading.
        before: Moments of the last reading.
        checkpoint: Moment up to which the mirror knows all changes, microseconds.
    """
    from resourcesync.destination.planner import Absence  # noqa: PLC0415 - a status needs no plan

    at = reading.moments.at
    proof = Absence.DELETED if reading.is_one_moment else Absence.TWICE
    if not reading.is_complete or reading.through is None:
        return Absence.UNPROVEN, 0
    if at is None:  # it was requested after all copies were delivered, if it is no old copy itself
        return (
            (proof, reading.served + SECOND) if reading.accepts_undated else (Absence.UNPROVEN, 0)
        )
    if reading.accepts_older:
        return proof, _ALWAYS if at < (before.at or 0) else reading.through
    limit = reading.moments.earliest_change(before)
    if reading.through < checkpoint or (limit is not None and limit < before.latest):
        return proof, _NEVER  # what it lacks may have come later: that stays open
    return proof, max(reading.through, limit or 0)
