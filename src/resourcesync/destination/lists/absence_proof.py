"""Proof by absence: what one reading of a list says of resources that it does not name. Pure.

A copy is absent only if the last evidence of its resource's existence is older than the list, both
by the Source's clocks; and only if the list was read as it was at one moment, or two readings in a
row lack the resource. Lists, dumps, their parts, pulls, repairs and audits all use this judgement.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from resourcesync.errors import RollbackError
from resourcesync.model import timestamps
from resourcesync.model.entries import Package, Part

if TYPE_CHECKING:
    from resourcesync.destination.planner import Absence

RESTORED: Final = (
    "if the Source was restored from a backup (its operator should publish with --rebase),"
    " read its whole list: resourcesync pull MIRROR --mode baseline"
)
_ALWAYS: Final = (1 << 63) - 1
_NEVER: Final = -1


class ReadPart(NamedTuple):
    """A part of an index, or a package of a dump, as it was read.

    ``served`` is the time when the server sent it, by its own clock. ``has_listed_hash``: the bytes
    have the hash that the index gives.
    """

    version: "ListVersion"
    announced: Part | Package
    served: int | None = None
    has_listed_hash: bool = False

    @property
    def over(self) -> int | None:
        """End of the interval in which the index dates it; ``None`` if the part contradicts it."""
        dates = map(timestamps.lastmod_microseconds, (self.announced.at, self.announced.lastmod))
        end = max(
            (timestamps.end_of_lastmod(date) for date in dates if date is not None), default=None
        )
        at, stated = self.version.at, timestamps.known_microseconds(self.announced.at)
        if end is None or at is None:
            return end
        return end if (at < end if stated is None else at == stated) else None

    @property
    def is_outdated(self) -> bool:
        """True if it is older than the index says: a stale copy, or not written yet.

        A moment in whole seconds may be any within its second.
        """
        at, stated = self.version.at, timestamps.known_microseconds(self.announced.at)
        if at is None or stated is None:
            return False
        return at + (0 if at % timestamps.SECOND else timestamps.SECOND - 1) < stated


def is_of_one_moment(parts: Iterable[ReadPart]) -> bool:
    """True if all parts state the same moment, or there is but one."""
    kept = [part.version.at for part in parts]
    return len(kept) <= 1 or (None not in kept and len(set(kept)) == 1)


def is_pinned(part: ReadPart, began: int) -> bool:
    """True if an index that is still the same proves that a part was not rewritten meanwhile.

    It does by a hash, or by a time that was over when the reading began and that the part does not
    contradict.
    """
    return part.has_listed_hash or (part.over is not None and part.over <= began)


class ListMoments(msgspec.Struct, frozen=True, kw_only=True):
    """Moments that one reading of a list states, microseconds: of its head, of parts by address."""

    head: timestamps.Microseconds | None = None
    parts: Mapping[str, timestamps.Microseconds] = msgspec.field(default_factory=dict)

    @property
    def at(self) -> int | None:
        """The earliest one: every change up to it is included. ``None`` if none is stated."""
        stated = self.parts.values() if self.head is None else (self.head, *self.parts.values())
        return min(stated, default=None)

    @property
    def latest(self) -> int:
        """The latest one: what the reading names may have existed then."""
        return max((self.head or 0, *self.parts.values()))

    @property
    def is_one(self) -> bool:
        """True if no part states another one: what a part has may be later than the others."""
        return len(set(self.parts.values())) <= 1

    def earliest_change(self, known: "ListMoments", served: int) -> int | None:
        """Return the earliest moment of the parts that differ from those before.

        What the others lack they lacked before, when another part named it. A part that left
        counts as changed with the index. So does one that joined beside all that there were: it
        took nothing over from these. A list without parts is its own only one.
        """
        common, head = self.parts.keys() & known.parts.keys(), self.head
        left, joined = known.parts.keys() - common, self.parts.keys() - common
        changed = [self.parts[uri] for uri in common if self.parts[uri] != known.parts[uri]]
        if left or not common:
            changed += [self.parts[uri] for uri in joined]
        if left or (joined and common) or not (self.parts or head == known.head):
            changed.append(served if head is None else head)
        return min(changed, default=None)

    def check_no_older(self, known: "ListMoments") -> None:
        """Check that neither the list nor a part is of an earlier moment than it was before."""
        if self.head is not None and known.head is not None and self.head < known.head:
            raise _rollback("the Source's Resource List is", known.head, self.head)
        for uri, before in known.parts.items():
            now = self.parts.get(uri, before)
            if now < before:
                raise _rollback(f"a part of the Source's Resource List, {uri}, is", before, now)


class CompleteReading(msgspec.Struct, frozen=True, kw_only=True):
    """The last reading that proved absence and left nothing open.

    What existed after ``absent_at`` was not absent in it.
    """

    moments: ListMoments = ListMoments()
    absent_at: int = 0
    entries: int = 0


def is_cut(moments: ListMoments, entries: int, before: CompleteReading) -> bool:
    """True if a list was cut, or is being written: of the same moment, with fewer entries."""
    return moments.at is not None and moments == before.moments and entries < before.entries


def _rollback(subject: str, known: int, at: int) -> RollbackError:
    return RollbackError(
        f"{subject} older than the one already processed",
        evidence=(
            (
                "here",
                f"Resource List at {timestamps.format_w3c(timestamps.from_microseconds(known))}",
            ),
            ("got", f"Resource List at {timestamps.format_w3c(timestamps.from_microseconds(at))}"),
            ("kept", "nothing was changed"),
        ),
        hint=RESTORED,
    )


class ListReading(msgspec.Struct, frozen=True, kw_only=True):
    """A reading of a list and of the changes since, as far as absence depends on it.

    ``is_complete``: every part was read, fits its index, and is of the requested host, and each
    entry could be used: one that cannot may be what seems to be gone. ``served`` is the time of the
    oldest answer, by the Source's clock. Up to ``through`` the changes since report, by the clock
    of the lists; ``None`` if there is a gap. The operator may vouch for a list that states no
    moment, or for a Source that was restored from an older state, or say that it moved: then older
    lists of its address are no question, and prove nothing.
    """

    is_complete: bool
    is_one_moment: bool
    moments: ListMoments
    served: int
    through: int | None
    accepts_undated: bool = False
    accepts_older: bool = False
    has_moved: bool = False


def proven_absence(
    reading: ListReading, before: CompleteReading, checkpoint: int
) -> tuple["Absence", int]:
    """Return what it means that a reading does not name a resource, and as of which moment.

    A resource that existed later is not absent.
    """
    from resourcesync.destination.planner import Absence  # noqa: PLC0415 - a status needs no plan

    at, known = reading.moments.at, before.moments
    proof = Absence.DELETED if reading.is_one_moment else Absence.TWICE
    if not reading.is_complete or reading.through is None:
        return Absence.UNPROVEN, 0
    if at is None:  # requested after all copies were delivered, if it is no old copy itself
        undated = proof if reading.accepts_undated else Absence.UNPROVEN
        return undated, reading.served + timestamps.SECOND
    limit = reading.moments.earliest_change(known, reading.served)
    if limit is None:  # the same as before
        absent_at = max(reading.through, before.absent_at if known.parts else 0)
    else:
        absent_at = max(reading.through, limit)
    if reading.accepts_older:
        return proof, _ALWAYS if at < (known.at or 0) else absent_at
    if reading.through < checkpoint and reading.has_moved:
        return Absence.UNPROVEN, 0
    if reading.through < checkpoint or (limit is not None and limit < known.latest):
        return proof, _NEVER  # what it lacks may have come later: that stays open
    return proof, absent_at


class ListVersion(msgspec.Struct, frozen=True, kw_only=True):
    """Version of a Resource List, of its index, or of a part of it.

    ``at`` is the latest moment that it states. ``over`` is the end of the interval in which the
    index dates a part. ``parts`` are those that the index does not prove to be unchanged; ``None``:
    unknown.
    """

    uri: str = ""
    digest: str = ""
    etag: str = ""
    last_modified: str = ""
    at: timestamps.Microseconds | None = None
    over: timestamps.Microseconds | None = None
    parts: tuple["ListVersion", ...] | None = None

    def without_old_dates(self, read_at: int | None, now: int) -> "ListVersion":
        """Return the version without the validators that are no longer trusted (`is_trusted`)."""
        parts = self.parts and tuple(part.without_old_dates(read_at, now) for part in self.parts)
        version = replace(self, parts=parts)
        return (
            version if is_trusted(self.etag, read_at, now) else replace(version, last_modified="")
        )


def is_trusted(etag: str, read_at: int | None, now: int) -> bool:
    """True if "not modified" is trusted of a list.

    A ``Last-Modified`` may be that of a part of what the list is made of, so without an ``ETag`` a
    list is read without a condition once a day.
    """
    return etag != "" or (read_at is not None and 0 <= now - read_at < timestamps.DAY)
