"""Reports: results of runs, and the status of a mirror, as values."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, Self

import msgspec

from resourcesync.errors import ResourceSyncError, StoppedError, at_address, next_step
from resourcesync.model import formatting


def report_fields(report: msgspec.Struct) -> dict[str, object]:
    """Return a report as the fields of its event; the fields of a value in it are a mapping."""
    fields: dict[str, object] = msgspec.to_builtins(report, builtin_types=(datetime,))
    return fields


def flat_fields(fields: Mapping[str, object], of: str = "") -> Iterator[tuple[str, object]]:
    """Yield the fields of an event; ``pending`` in ``listed`` is ``listed_pending``."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from flat_fields(value, f"{of}{name}_")
        else:
            yield f"{of}{name}", value


class MirrorState(StrEnum):
    """State of a mirror, the same six values everywhere.

    Attributes:
        NEW: No pull has ended yet.
        IN_SYNC: All selected resources that the Source lists are here, equal and verified.
        BEHIND: The last run ended, but something is missing: a resource that cannot be fetched, an
            entry that cannot be used, or what is left when a limit of time or bytes was reached, or
            when the run was asked to stop.
        SYNCING: A run goes on now, or a program has it open; only of a status.
        FAILING: An error ended the last run.
        STOPPED: Deletions are held, until they are released or the Source withdraws or confirms
            them; all else is done.
    """

    NEW = "new"
    IN_SYNC = "in sync"
    BEHIND = "behind"
    SYNCING = "syncing"
    FAILING = "failing"
    STOPPED = "stopped"


class Mode(StrEnum):
    """Mode of a pull."""

    BASELINE = "baseline"
    INCREMENTAL = "incremental"
    UNCHANGED = "unchanged"


class PlanSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Plan of a pull, in numbers.

    ``unsignalled`` deletions are reported by no Change List. ``unsized`` fetches have no listed
    length; those that ``may_be_same`` send a condition. ``absent``, counted in a dry run, were not
    served to an earlier run, which is accepted.
    """

    mode: Mode
    same: int = 0
    create: int = 0
    update: int = 0
    delete: int = 0
    unsignalled: int = 0
    size: int = 0
    unsized: int = 0
    may_be_same: int = 0
    absent: int = 0


class Failing(msgspec.Struct, frozen=True, kw_only=True):
    """Listed resource that is not in the mirror as listed, and the reason.

    Attributes:
        uri: Its URI.
        code: Stable code of the reason.
        reason: The reason as a sentence.
        tries: Number of runs that tried it.
        due: No run tries it before this moment, UTC, unless its entry changes; ``None``: the next.
    """

    uri: str
    code: str
    reason: str
    tries: int = 1
    due: datetime | None = None


class TransferTally(msgspec.Struct, kw_only=True):
    """Counts of a transfer so far; a fetched resource with equal bytes is ``same``, too."""

    created: int = 0
    updated: int = 0
    same: int = 0
    refetched: int = 0
    failed: int = 0
    absent: int = 0
    skipped: int = 0
    gone: int = 0
    undecided: int = 0
    useful: int = 0
    patched: int = 0
    unpatched: int = 0
    contradicting: int = 0
    by_request: int = 0
    """Copies that no hash proves, and that the Source sent or called unchanged."""
    open_dates: int = 0
    """Copies whose ``lastmod`` does not show yet whether the Source changed them again."""
    fixity: dict[str, int] = msgspec.field(default_factory=dict)
    failures: list[Failing] = msgspec.field(default_factory=list)

    @property
    def done(self) -> int:
        """Number of ended fetches, with any result."""
        had = self.created + self.updated + self.same
        return had + self.failed + self.absent + self.skipped + self.gone

    def plus(self, other: "TransferTally", *, without: str = "") -> "TransferTally":
        """Return the sum of two transfers, without one count of the other."""
        fixity = Counter(self.fixity)
        fixity.update(other.fixity)
        pairs = ((name, getattr(self, name)) for name in self.__struct_fields__)
        added = {
            name: mine if name == without else mine + getattr(other, name)
            for name, mine in pairs
            if name != "fixity"
        }
        return TransferTally(**added, fixity=dict(fixity))


class DeletionResult(msgspec.Struct, kw_only=True):
    """Result of the deletions of a run.

    ``held`` are above the limit of a run; there were ``held_of`` copies when they were first held.
    The files of those that had one are ``trashed``. A dry run foresees that ``mended`` damaged
    copies beside the list end, and that the run tries nothing for ``left`` resources that fail.
    """

    deleted: int = 0
    trashed: int = 0
    held: int = 0
    held_of: int = 0
    mended: int = 0
    left: int = 0
    failures: list[Failing] = msgspec.field(default_factory=list)


class ListedCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of what the Source is known to list and is selected, each by its result.

    Attributes:
        unchanged: In the mirror as listed already.
        applied: Installed by this run.
        pending: Not in the mirror as listed.
        absent: The server does not have them (404, 410), where that is accepted: at a plain
            sitemap, or with ``accept_missing``. A present copy is kept.
        skipped: The Source's robots.txt excludes them, or they lead to another site, where that is
            accepted.
        refused: Entries that cannot be used (unsafe path, foreign host, malformed).
        since: The Source lists changes only, and these since this moment, UTC: what did not change
            since is unknown. ``None`` if it lists all.
        is_since_accepted: The operator accepted that.
    """

    unchanged: int = 0
    applied: int = 0
    pending: int = 0
    absent: int = 0
    skipped: int = 0
    refused: int = 0
    since: datetime | None = None
    is_since_accepted: bool = False

    @property
    def right(self) -> int:
        """Number of those that are in the mirror as listed."""
        return self.unchanged + self.applied

    @property
    def total(self) -> int:
        """Number of all that is listed."""
        return self.right + self.pending + self.absent + self.skipped + self.refused


class RetainedCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of copies that are not what the Source lists now, and stay.

    Attributes:
        unlisted: The Source no longer lists them, and policy retains them.
        open: They are not in the list, which does not prove yet that they are gone.
        extra: They are not listed, and a repair leaves them to a pull.
        filtered: They no longer match the filters.
        restored: They are not listed, and were restored from the trash.
        damaged: They are not listed, or excluded by the filters, and were found changed or missing.
        excluded: Of the damaged, those that the filters exclude.
        edited: They are to be deleted, and were changed locally.
        contradicting: Their bytes are not as listed (``verify="lenient"``); they are pending.
        unknown: They are absent or skipped at the Source, so they may be wrong.
        linked: They are not listed, but linked by listed entries.
    """

    unlisted: int = 0
    open: int = 0
    extra: int = 0
    filtered: int = 0
    restored: int = 0
    damaged: int = 0
    excluded: int = 0
    edited: int = 0
    contradicting: int = 0
    unknown: int = 0
    linked: int = 0


class FetchedCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of what a run fetched.

    Attributes:
        verified, server_verified, weak, unverified: Resources by their proof: a hash of the list;
            the server's digest alone; a weak hash or the length; none.
        equal: Those whose bytes were equal to those of the copy.
        patched: Resources made from the previous copy by a patch.
        unpatched: Patches that failed; their resources were fetched whole.
        rechecked: Resources requested again though no list tells that they changed.
        stale: Of the rechecked, those that had changed.
        bytes: Bytes of the resources fetched, equal and patched ones too.
    """

    verified: int = 0
    server_verified: int = 0
    weak: int = 0
    unverified: int = 0
    equal: int = 0
    patched: int = 0
    unpatched: int = 0
    rechecked: int = 0
    stale: int = 0
    bytes: int = 0


class EvidenceCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the copies that are as listed, by the evidence for that.

    Attributes:
        by_hash: By a hash listed when they were fetched.
        by_request: By an answer to a request of this run.
        by_date: Only since their date, or a Change List, tells of no change.
        unconfirmed: Of those without a listed hash, those of which the Source said "not modified"
            although their date moved; each is fetched once within the period of rechecks.
    """

    by_hash: int = 0
    by_request: int = 0
    by_date: int = 0
    unconfirmed: int = 0


class ListFaults(msgspec.Struct, frozen=True, kw_only=True):
    """Why the lists that were read may not tell all; each but the last two keeps a mirror behind.

    Attributes:
        gap: The lists are known to be incomplete: a list was cut, or the Change Lists do not reach
            back. What is missing is then unknown.
        unread: Parts of a list that could not be read: their content is unknown, so nothing is
            deleted, and the next run reads all again. They count as refused.
        undecided: Resources about which lists contradict each other, and no answer decided.
        absent_below: Common start of the absent and skipped, if they are all that is listed, or
            most of it in a mirror that never was in sync and does not accept that. Else empty.
        skew_seconds: Seconds that this machine's clock is ahead of the Source's (negative: behind),
            if that keeps the mirror behind; else 0.
        moved_from: The Source's address before a move after which the mirror was not in sync yet.
        unproving: The Resource List cannot show what is gone: it came from another host, or has
            only some of what there is, as a feed. What it does not list is kept.
    """

    gap: bool = False
    unread: int = 0
    undecided: int = 0
    absent_below: str = ""
    skew_seconds: float = 0.0
    moved_from: str = ""
    unproving: bool = False


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one pull or repair; its fields are those of ``run.end`` in ``--json``.

    Attributes:
        pull: The run's id.
        mode: Mode of the pull.
        state: The mirror's state now. ``IN_SYNC`` means: every selected resource that the Source
            lists is in the mirror, equal, and verified as the policy requires; in a dry run, that
            its lists let a run achieve that.
        dry_run: Nothing was changed, by request.
        lists_only: Nothing was fetched, by request: what is listed is stored.
        spent: ``time`` or ``bytes``: the limit that ended the run early; the next one continues.
            Empty if it completed.
        resources: Resources in the mirror now.
        listed: What the Source lists, by result.
        created, updated, deleted: Copies that the run changed.
        renamed: Files moved to other names; in a dry run, to be moved.
        failed: Listed resources that are not in the mirror as listed, and copies that are damaged
            or could not be deleted.
        reasons: The failed, by the code of their reasons.
        held: Deletions that wait for confirmation or proof, or would in a dry run.
        held_of: Number of copies when they were first held, before that run.
        retained: Copies that are not what is listed, by reason.
        fetched: What the run fetched.
        evidence: Copies by what proves them; none of those restored or damaged.
        faults: Why the lists may not tell all.
        requests: Requests sent.
        received_bytes: Bytes received, documents included.
        seconds: Duration.
        as_of: The Source's time up to which the mirror is complete, UTC.
        failures: The first failures, at most 100.
    """

    pull: str
    mode: Mode
    state: MirrorState
    dry_run: bool = False
    lists_only: bool = False
    spent: str = ""
    resources: int = 0
    listed: ListedCounts = ListedCounts()
    created: int = 0
    updated: int = 0
    deleted: int = 0
    renamed: int = 0
    failed: int = 0
    reasons: dict[str, int] = {}
    held: int = 0
    held_of: int = 0
    retained: RetainedCounts = RetainedCounts()
    fetched: FetchedCounts = FetchedCounts()
    evidence: EvidenceCounts = EvidenceCounts()
    faults: ListFaults = ListFaults()
    requests: int = 0
    received_bytes: int = 0
    seconds: float = 0.0
    as_of: datetime | None = None
    failures: tuple[Failing, ...] = ()


_MAX_MESSAGE: Final = 2_000


class FailedRun(msgspec.Struct, frozen=True, kw_only=True):
    """Error that ended a run.

    Attributes:
        code: The error's stable code; ``stopped`` if it was asked to stop, ``bug`` for an
            error that is no `ResourceSyncError`.
        kind: Name of its class in `resourcesync.errors`; empty if unknown.
        message: The error message, with the answer that it is about.
        uri: The address that it is about; empty for none.
        hint: Advice.
        retry_after: ``Retry-After``, in seconds; ``None`` without one.
    """

    code: str
    kind: str = ""
    message: str = ""
    uri: str = ""
    hint: str = ""
    retry_after: float | None = None

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Return the record of a run that an error ended."""
        if not isinstance(error, ResourceSyncError):
            return cls(code="bug" if isinstance(error, Exception) else StoppedError.default_code)
        return cls(
            code=error.code,
            kind=type(error).__name__,
            message=error.cause[:_MAX_MESSAGE],
            uri=error.uri[:_MAX_MESSAGE],
            hint=next_step(error)[:_MAX_MESSAGE],
            retry_after=error.retry_after,
        )

    @property
    def is_stop(self) -> bool:
        """True if nothing failed: the run was asked to stop."""
        return self.code == StoppedError.default_code

    @property
    def state(self) -> MirrorState:
        """The state in which it leaves the mirror: after a stop the rest of its work is left."""
        return MirrorState.BEHIND if self.is_stop else MirrorState.FAILING

    @property
    def text(self) -> str:
        """The message with its address; without one, the code."""
        return at_address(self.message, self.uri) if self.message else self.code


class LastingFailure(FailedRun, frozen=True, kw_only=True):
    """Error that each run would end with; none may have recorded it."""


class MirrorStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of a mirror by its own state, without a request to the Source.

    Its fields are those of ``status --json``.

    Attributes:
        mirror: The mirror's folder, or its name.
        source: The address that it follows.
        state: One of the six states.
        left: While a run goes on, the state that the last one left; else ``None``.
        resources: Number of copies.
        listed: What the Source lists, by result, as far as it is known; see `RunReport`.
        retained: Copies that are not what is listed, by reason; see `RunReport`.
        evidence: Copies by what proves them, as of the last pull; see `RunReport`.
        faults: Why the lists that the last run read may not tell all; see `RunReport`.
        resting: Of the pending, those that failed so often that not every run tries them again.
        tried_again: Time of the next attempt of the first of the resting, UTC; ``None`` if there is
            none.
        deletions: Deletions that are to be done.
        held: Of these, those that a limit holds; the others wait for the next pull.
        held_of: Number of copies when they were first held; 0 before a pull has held them.
        stopped_command: The command that held them.
        as_of: The Source's time up to which the mirror is complete, UTC.
        in_sync_at: Start of the last run that found the mirror in sync, UTC; the lag counts from
            here. ``None``: none has, with the present filters.
        last_run: End of the last run, UTC.
        outcome: Outcome of the last run, one of its codes or ``ok``.
        failed_run: Error that ended the last run, or by which the configuration file lets none
            begin; ``None`` if there is none.
        failing_since: End of the first of the runs that failed in a row up to now, UTC; ``None`` if
            the last one did not fail.
        failures: The first listed resources that are not in the mirror as listed, and the reasons.
        certificate_until: End of the first TLS certificate of the servers of the Source's lists, as
            the last run met it, UTC; ``None`` without TLS.
        size_bytes: Bytes of the copies; ``None`` if that takes too long to count.
        has_trash: Its trash has a file.
        recheck_seconds: Time within which each copy that is known by its date only is requested
            again; 0: never; ``None``: there was none to request.
        recheck_reached_seconds: Time in which that is really done.
        is_counted: All that the Source lists is known. Until a first pull, or one with other
            filters, completes, the number of missing resources is unknown.
        is_refuted: An audit or repair since the last run that was in sync found it is not.
        audit_accuracy_ratio: Share of the checked copies that the last audit found right, 0 to 1.
        audit_damaged: Copies whose files the last audit found missing, changed or unreadable.
    """

    mirror: str
    source: str
    state: MirrorState
    left: MirrorState | None = None
    resources: int = 0
    listed: ListedCounts = ListedCounts()
    retained: RetainedCounts = RetainedCounts()
    evidence: EvidenceCounts = EvidenceCounts()
    faults: ListFaults = ListFaults()
    resting: int = 0
    tried_again: datetime | None = None
    deletions: int = 0
    held: int = 0
    held_of: int = 0
    stopped_command: str = "pull"
    as_of: datetime | None = None
    in_sync_at: datetime | None = None
    last_run: datetime | None = None
    outcome: str = ""
    failed_run: FailedRun | None = None
    failing_since: datetime | None = None
    failures: tuple[Failing, ...] = ()
    certificate_until: datetime | None = None
    size_bytes: int | None = None
    has_trash: bool = False
    recheck_seconds: float | None = None
    recheck_reached_seconds: float = 0.0
    is_counted: bool = True
    is_refuted: bool = False
    audit_accuracy_ratio: float | None = None
    audit_damaged: int | None = None

    @property
    def is_recheck_late(self) -> bool:
        """True if copies known by their dates are not requested again within the period."""
        return 0 < (self.recheck_seconds or 0) < self.recheck_reached_seconds

    @property
    def wanted(self) -> int:
        """Number of resources that are listed or to be deleted.

        Without those that are accepted as absent or skipped, unless there is an older copy.
        """
        listed, retained = self.listed, self.retained
        wrong = listed.pending + listed.refused + retained.unknown + retained.edited
        return listed.right + wrong + self.deletions

    @property
    def share(self) -> float | None:
        """Share of the wanted that are right, 0 to 1; ``None`` if it is unknown.

        It is after a failed first pull, if the Source delivered nothing, and if an audit found more
        to do than is known here.
        """
        right, wanted = self.listed.right, self.wanted
        if not self.is_counted or (self.is_refuted and right == wanted):
            return None
        if wanted:
            return right / wanted
        is_nothing_listed = not (self.listed.absent or self.listed.skipped)
        return 1.0 if is_nothing_listed and self.state is MirrorState.IN_SYNC else None

    @property
    def share_text(self) -> str:
        """The share in percent; ``-`` if it is unknown."""
        return "-" if self.share is None else formatting.share(self.listed.right, self.wanted)

    @property
    def judged(self) -> MirrorState:
        """The state by which the mirror is judged: a run that goes on is neither good nor bad."""
        return self.left or self.state
