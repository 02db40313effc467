"""Results of audits: findings, their counts, and the records of the last audits of a mirror."""

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from resourcesync.destination.sync_state import SyncState, encode_notes
from resourcesync.errors import StateError
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.model.timestamps import Microseconds

_AUDITS_NOTE: Final = "audits"
_MAX_AUDITS: Final = 20


class FindingKind(StrEnum):
    """Kind of an audit finding; the value is the symbol that is printed."""

    MISSING = "+"
    DIFFERENT = "*"
    EXTRA = "-"
    FAILED = "!"
    UNPROVEN = "?"


class AuditFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Finding of an audit about one resource."""

    kind: FindingKind
    uri: str
    path: str
    reason: str


class AuditCounts(msgspec.Struct, kw_only=True):
    """Counts of an audit, as `AuditReport` has them; till its end ``present`` has the unknown."""

    listed: int = 0
    absent: int = 0
    skipped: int = 0
    unknown: int = 0
    present: int = 0
    accurate: int = 0
    unproven: int = 0
    unchecked: int = 0
    unserved: int = 0
    originals: int = 0
    extra: int = 0
    held: int = 0
    edited: int = 0
    damaged: int = 0
    excluded: int = 0
    unlisted: int = 0
    foreign: int = 0
    read_bytes: int = 0


class AuditReport(AuditCounts, frozen=True, kw_only=True):  # type: ignore[misc]  # counted, then frozen
    """Outcome of one audit (§5.2). No copy was changed.

    Attributes:
        audit: The run's id.
        at: Moment of the Source's state that was compared with, UTC.
        listed: Selected resources that the Source lists, without the absent and the skipped.
        absent, skipped: Listed resources that the Source does not serve, where that is accepted:
            see `RunReport`. Whether a copy of one is right is unknown, so it counts nowhere else.
        unknown: Of the absent and skipped, those that have such a copy.
        present: Of the listed, those that are in the mirror.
        accurate: Of the present, those that are equal, as far as the lists show.
        unproven: Of the accurate, those that nothing proves: the Source lists no hash, and was not
            requested to serve them (method ``remote``).
        unchecked: Of the present, those that could not be checked: the Source did not serve them
            to this audit, or their files cannot be read.
        unserved: Of the unchecked, those that the Source lists and does not have (404 or 410).
        originals: Of the present, those whose original is another one, or gone: no fault here.
        extra: Copies that the Source does not list, and damaged ones that the filters exclude.
        held: Of the extra, those whose deletion the last pull held.
        edited: Of the extra, those that a pull could not delete, since they were changed locally.
        damaged: Of the extra, those whose files are missing or changed, without the edited.
        excluded: Of the damaged, those that the filters exclude.
        unlisted: Copies that the Source no longer lists and that a pull retained by policy: no
            fault.
        foreign: Files that no pull fetched.
        refused: Entries of the Source that cannot be used.
        unread: Of the refused, parts of a list that cannot be read: more may be listed.
        read_bytes: Bytes of copies that were read.
        doubted: Number of copies that are not as installed; the next pull fetches them again.
        seconds: Duration.
        findings: The first findings, at most 10,000; the counts are complete.
        proven: Number of copies that a remote or a rolling audit verified; else ``None``.
        proven_since: Time since when every copy was verified at least once, UTC; of the same.
        stopped: The audit ended before all chosen copies were verified.
        is_begun: The mirror's first pull never completed and the audit was offline: how much is
            missing is unknown, so the mirror is not in sync.
        is_looking: Files were checked, not the mirror's state only.
        has_gap: There may be changes that no list read reports: the Change Lists do not reach back,
            no run has completed since the filters changed, or this machine's clock is a day or more
            off. Then the mirror is not in sync, though all that is known agrees.
        lacks_pages: The Source serves none of what it lists, or too little for a mirror that never
            was in sync: see `RunReport.absent_below`.
        unproving: The lists cannot show what is gone, so that no repair deletes what they lack.
    """

    audit: str
    at: datetime | None
    refused: int = 0
    unread: int = 0
    doubted: int = 0
    seconds: float = 0.0
    findings: tuple[AuditFinding, ...] = ()
    proven: int | None = None
    proven_since: datetime | None = None
    stopped: bool = False
    is_begun: bool = False
    has_gap: bool = False
    is_looking: bool = True
    lacks_pages: bool = False
    unproving: bool = False

    @property
    def in_sync(self) -> bool:
        """True if everything listed is in the mirror and equal, and nothing else is."""
        if self.is_begun or self.has_gap or self.lacks_pages:
            return False
        return self.accurate == self.listed and not self.extra and not self.refused

    @property
    def checked(self) -> int:
        """Number of the present resources that could be checked."""
        return self.present - self.unchecked

    @property
    def coverage(self) -> float | None:
        """Share of the listed in the mirror, 0 to 1; ``None`` until a first pull has ended."""
        if self.is_begun:
            return None
        return self.present / self.listed if self.listed else 1.0

    @property
    def accuracy(self) -> float | None:
        """Share of the present resources that are equal to what is listed, 0 to 1.

        An upper limit if some are unproven; ``None`` if nothing else is wrong, and if none was
        checked. The unchecked do not count.
        """
        if not self.checked or (self.unproven and self.accurate == self.checked):
            return None
        return self.accurate / self.checked


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Record of an audit."""

    ended: Microseconds
    method: str
    report: AuditReport


def recorded_audits(state: SqliteMirrorState) -> tuple[AuditRecord, ...]:
    """Return the records of the last audits of a mirror, oldest first."""
    return SyncState(state).decode(_AUDITS_NOTE, tuple[AuditRecord, ...]) or ()


def notes_with_audit(state: SqliteMirrorState, audit: AuditRecord) -> dict[str, str]:
    """Return the notes of a mirror with one more audit; unreadable records are replaced.

    What originals of an aggregator are like says nothing of the mirror; of damage there are tasks.
    """
    try:
        known = recorded_audits(state)
    except StateError:
        known = ()
    kept = (*known, audit)[-_MAX_AUDITS:]
    refuted = None if audit.method == "origin" else not audit.report.in_sync
    return encode_notes(audited=audit.ended, audits=kept, refuted=refuted)
