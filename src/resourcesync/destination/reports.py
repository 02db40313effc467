"""What a run did and what it found: the values that the command line prints."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class MirrorState(StrEnum):
    """The six words for the state of a mirror, the same everywhere."""

    NEW = "new"
    IN_SYNC = "in sync"
    BEHIND = "behind"
    SYNCING = "syncing"
    FAILING = "failing"
    STOPPED = "stopped"


class Mode(StrEnum):
    """How a pull brought the mirror in step."""

    BASELINE = "baseline"
    INCREMENTAL = "incremental"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSummary:
    """What a pull is going to do, or would do.

    Attributes:
        mode: Baseline or incremental.
        same, create, update, delete: Resources; ``delete`` counts what the Source took away.
        untold: Of those to delete, those that no Change List calls deleted: a list lacks them.
        size: Bytes to fetch as far as the lists tell.
        unsized: Resources to fetch whose length the lists do not tell.
    """

    mode: Mode
    same: int = 0
    create: int = 0
    update: int = 0
    delete: int = 0
    unsignalled: int = 0
    size: int = 0
    unsized: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """One listed resource that is not here as listed, and why.

    Attributes:
        uri: Its URI.
        code: A stable word for why.
        reason: The same in a sentence.
        tries: How often it was tried, over all runs.
        due: Before this moment no run tries it again, UTC, as long as the Source lists nothing new
            of it; ``None`` where that is not known.
    """

    uri: str
    code: str
    reason: str
    tries: int = 1
    due: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """The outcome of one pull.

    Attributes:
        run: The run's id.
        mode: How it was done.
        state: The mirror's state now. ``IN_SYNC`` means: every selected resource that the Source
            lists is here, equal, and verified as the policy asks.
        dry_run: Whether nothing was changed on purpose.
        lists_only: Whether nothing was fetched on purpose: what is listed is remembered.
        spent: ``time`` or ``bytes``: what the run ran out of before it came to its end; the next
            one goes on. Empty when it came to its end.
        resources: Resources in the mirror now.
        listed: Resources that the Source is known to list and that are selected, and entries that
            cannot be used: ``unchanged + applied + pending + absent + skipped + refused``, always.
        unchanged: Of them, those that were here as listed already.
        applied: Of them, those that this run brought.
        pending: Of them, those that are not here as listed.
        absent: Of them, those that the server does not have (404, 410), where that is accepted:
            at a plain sitemap, or with ``accept_missing``. A copy that is here is kept.
        skipped: Of them, those that the Source's robots.txt keeps from programs, or that lead to
            another site, where that is accepted.
        same, created, updated, deleted: What the run found and did.
        refetched: Of the same, those that this run fetched, and that were equal.
        failed: Listed resources that are not here as listed, and copies that could not be deleted.
        edited: Of the failed, files that are to be deleted and were changed here: they are kept.
        refused: Entries that cannot be used (unsafe path, foreign host, malformed).
        unread: Of the refused, the parts of a list that could not be read: what they list is not
            known, so nothing is deleted, and the next run reads all again.
        gap: Whether the lists that could be read are known to leave something out: a list was cut,
            or the Change Lists do not reach back. What is missing here is then not known.
        held: Deletions that wait for a person's word or for proof, or would in a dry run.
        held_of: How many copies were here when they were held first, before that run.
        moved_from: Where the Source was before a move after which the mirror was not in sync yet.
        unlisted: Resources here that the Source lists no more and that policy keeps.
        filtered: Resources here that the Source lists and the filters do not want any more; kept.
        restored: Resources here that were brought back from the trash, and are not listed; kept.
        verified, weak, unverified: How the resources fetched in this run were proven.
        contradicting: Of the pending, those of which bytes are kept that are not what the list
            says (``verify="lenient"``).
        renamed: Files that were given other names; of a dry run, those that would be.
        linked: Of the resources here, those that are not listed, but that listed entries link to.
        patched: Resources that were made of the copy before by a patch.
        unpatched: Patches that were of no use; their resources were fetched whole.
        requests: Requests sent.
        received: Bytes received, documents included.
        useful: Bytes of the resources installed.
        seconds: Duration.
        as_of: The Source's time up to which the mirror is complete, UTC.
        failures: The first failures, at most 1,000.
        skew: Seconds that this machine's clock is ahead of the Source's (negative: behind), where
            that is a day or more; then the mirror is not in sync.
    """

    run: str
    mode: Mode
    state: MirrorState
    dry_run: bool = False
    lists_only: bool = False
    spent: str = ""
    resources: int = 0
    listed: int = 0
    unchanged: int = 0
    applied: int = 0
    pending: int = 0
    absent: int = 0
    skipped: int = 0
    same: int = 0
    created: int = 0
    updated: int = 0
    refetched: int = 0
    deleted: int = 0
    failed: int = 0
    edited: int = 0
    refused: int = 0
    unread: int = 0
    gap: bool = False
    held: int = 0
    held_of: int = 0
    moved_from: str = ""
    unlisted: int = 0
    filtered: int = 0
    restored: int = 0
    verified: int = 0
    weak: int = 0
    unverified: int = 0
    contradicting: int = 0
    renamed: int = 0
    linked: int = 0
    patched: int = 0
    unpatched: int = 0
    requests: int = 0
    received: int = 0
    useful: int = 0
    seconds: float = 0.0
    as_of: datetime | None = None
    failures: tuple[Failing, ...] = ()
    skew: float = 0.0


class FindingKind(StrEnum):
    """What an audit says of one resource; the value is the symbol that is printed."""

    MISSING = "+"
    DIFFERENT = "*"
    EXTRA = "-"
    FAILED = "!"
    UNPROVEN = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """One resource that an audit has something to say of."""

    kind: FindingKind
    uri: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """The outcome of one audit (§5.2). No copy was changed.

    Attributes:
        run: The run's id.
        at: The moment of the Source that was compared with, UTC.
        listed: Resources that the Source lists and that are selected, without the absent and the
            skipped.
        absent, skipped: Resources that the Source lists and does not give, where that is accepted:
            see `RunReport`. Whether a copy of one is right is not known, so it counts nowhere else.
        present: How many of them are here.
        accurate: How many of those are equal, as far as the lists let one tell.
        unproven: How many of those nothing proves: the Source lists no hash of them, and was not
            requested to serve them (method ``remote``).
        extra: Copies here that the Source does not list.
        unlisted: Copies that the Source lists no more and that a pull kept by policy: no fault.
        foreign: Files here that we did not fetch.
        read: Bytes of copies that were read.
        doubted: How many copies are not what was put there; the next pull fetches them again.
        seconds: Duration.
        findings: The first findings, at most 10,000; the counts are complete.
        proven: How many copies a rolling audit looked at; ``None`` when all were.
        proven_since: Since when every copy was proven at least once, UTC; of a rolling audit.
        stopped: Whether it ended before all chosen copies were proven.
        is_begun: Whether the mirror's first pull never came to its end and the Source was not
            asked: how much is missing is not known, so nothing is in sync.
        is_looking: Whether files were looked at, and not the mirror's memory only.
        has_gap: Whether there may be changes that no list tells of that was read: the Change Lists
            do not reach back, no run has come to its end since other filters were chosen, or this
            machine's clock is a day or more off.
            Then nothing is in sync, though all that is known agrees.
    """

    run: str
    at: datetime | None
    listed: int = 0
    absent: int = 0
    skipped: int = 0
    present: int = 0
    accurate: int = 0
    unproven: int = 0
    extra: int = 0
    unlisted: int = 0
    foreign: int = 0
    refused: int = 0
    read: int = 0
    doubted: int = 0
    seconds: float = 0.0
    findings: tuple[AuditFinding, ...] = ()
    proven: int | None = None
    proven_since: datetime | None = None
    stopped: bool = False
    is_begun: bool = False
    has_gap: bool = False
    is_looking: bool = True

    @property
    def in_sync(self) -> bool:
        """Whether everything listed is here and equal, and nothing else is."""
        if self.is_begun or self.has_gap:
            return False
        return self.accurate == self.listed and not self.extra and not self.refused

    @property
    def coverage(self) -> float:
        """The share of the listed resources that are here, 0 to 1."""
        return self.present / self.listed if self.listed else 1.0

    @property
    def accuracy(self) -> float | None:
        """The share of the resources here that are equal to what is listed, 0 to 1.

        Where some are unproven it is that at most; ``None`` where nothing else is wrong, and where
        the Source gives nothing of what it lists.
        """
        if not self.present and (self.absent or self.skipped):
            return None
        if self.unproven and self.accurate == self.present:
            return None
        return self.accurate / self.present if self.present else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRun:
    """Why a run could not go on.

    Attributes:
        code: The error's stable word; ``interrupted`` when no error of ours ended it.
        kind: The name of its class in `resourcesync.errors`; empty when it is not known.
        message: What happened.
        hint: What to do now.
    """

    code: str
    kind: str = ""
    message: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorStatus:
    """What a mirror's own state says, without asking the Source.

    Attributes:
        folder: The mirror's folder.
        source: The address that it follows.
        state: One of the six words.
        resources: Copies here.
        pending: Listed resources that are not here as listed.
        outdated: Of the pending, those of which another copy is here.
        contradicting: Of the pending, those of which bytes are kept that are not what the list
            says (``verify="lenient"``).
        resting: Of the pending, those that failed so often that not every run tries them again.
        tried_again: When the first of the resting is tried again, UTC; ``None`` when none rests.
        refused: Entries of the Source that cannot be used.
        absent, skipped: Listed resources that the Source does not give, where that is accepted;
            not pending. See `RunReport`.
        unknown: Of these, those of which an older copy is here: nobody knows whether it is right.
        held: Deletions on hold.
        moved_from: Where the Source was before a move after which the mirror was not in sync yet.
        edited: Files that are to be deleted and were changed here: they are kept.
        as_of: The Source's time up to which the mirror is complete, UTC.
        in_sync_at: When the last run began that found the mirror in sync, UTC; the lag counts
            from here. ``None``: none has, by the filters of now.
        last_run: When the last run ended, UTC.
        outcome: What the last run said, one of its codes or ``ok``.
        failed: Why the last run could not go on; ``None`` when it came to its end.
        failures: The first listed resources that are not here as listed, and why.
        is_counted: Whether all that the Source lists is known here. Until a first pull, or one
            with other filters, came to its end, nobody here knows how much is missing.
    """

    folder: str
    source: str
    state: MirrorState
    resources: int = 0
    pending: int = 0
    outdated: int = 0
    contradicting: int = 0
    resting: int = 0
    tried_again: datetime | None = None
    refused: int = 0
    absent: int = 0
    skipped: int = 0
    unknown: int = 0
    held: int = 0
    moved_from: str = ""
    edited: int = 0
    as_of: datetime | None = None
    in_sync_at: datetime | None = None
    last_run: datetime | None = None
    outcome: str = ""
    failed: FailedRun | None = None
    failures: tuple[Failing, ...] = ()
    is_counted: bool = True
