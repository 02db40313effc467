"""Reports: results of runs, and the status of a mirror, as values."""

from datetime import datetime
from enum import StrEnum

import msgspec

from resourcesync.model import formatting


class MirrorState(StrEnum):
    """State of a mirror, the same six values everywhere.

    Attributes:
        NEW: No pull has ended yet.
        IN_SYNC: All selected resources that the Source lists are here, equal and verified.
        BEHIND: The last run ended, but something is missing: a resource that cannot be fetched, an
            entry that cannot be used, or what is left when a limit of time or bytes was reached.
        SYNCING: A run goes on now; only a status has this value.
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
    length. ``absent``, counted in a dry run, were not served to an earlier run, which is accepted.
    """

    mode: Mode
    same: int = 0
    create: int = 0
    update: int = 0
    delete: int = 0
    unsignalled: int = 0
    size: int = 0
    unsized: int = 0
    absent: int = 0


class Failing(msgspec.Struct, frozen=True, kw_only=True):
    """Listed resource that is not in the mirror as listed, and the reason.

    Attributes:
        uri: Its URI.
        code: Stable code of the reason.
        reason: The reason as a sentence.
        tries: Number of attempts, over all runs.
        due: No run tries it again before this moment, UTC, unless its entry changes; ``None`` if
            unknown.
    """

    uri: str
    code: str
    reason: str
    tries: int = 1
    due: datetime | None = None


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one pull.

    Attributes:
        run: The run's id.
        mode: Mode of the pull.
        state: The mirror's state now. ``IN_SYNC`` means: every selected resource that the Source
            lists is in the mirror, equal, and verified as the policy requires.
        dry_run: Nothing was changed, by request.
        lists_only: Nothing was fetched, by request: what is listed is stored.
        spent: ``time`` or ``bytes``: the limit that ended the run early; the next one continues.
            Empty if it completed.
        resources: Resources in the mirror now.
        listed: Selected resources that the Source is known to list, and entries that cannot be
            used: ``unchanged + applied + pending + absent + skipped + refused``, always.
        unchanged: Of the listed, those that were in the mirror as listed already.
        applied: Of the listed, those that this run installed.
        pending: Of the listed, those that are not in the mirror as listed.
        absent: Of the listed, those that the server does not have (404, 410), where that is
            accepted: at a plain sitemap, or with ``accept_missing``. A present copy is kept.
        absent_below: Common start of the addresses of the absent, if they are so many that the
            mirror is not in sync: all of them, or most of those of a mirror that never was in sync
            and for which that is not accepted. Else empty.
        skipped: Of the listed, those that the Source's robots.txt excludes, or that lead to another
            site, where that is accepted.
        unknown: Of the absent and skipped, those with an older copy that may be wrong.
        same, created, updated, deleted: Resources found the same, or changed by the run.
        refetched: Of the same, those that this run fetched, with equal bytes.
        failed: Listed resources that are not in the mirror as listed, and copies that could not be
            deleted.
        edited: Of the failed, files to be deleted that were changed locally: they are kept.
        refused: Entries that cannot be used (unsafe path, foreign host, malformed).
        unread: Of the refused, the parts of a list that could not be read: their content is
            unknown, so nothing is deleted, and the next run reads all again.
        gap: The lists that could be read are known to be incomplete: a list was cut, or the Change
            Lists do not reach back. What is missing is then unknown.
        held: Deletions that wait for confirmation or proof, or would in a dry run.
        held_of: Number of copies when they were first held, before that run.
        moved_from: The Source's address before a move after which the mirror was not in sync yet.
        unlisted: Copies that the Source no longer lists and that policy retains.
        filtered: Copies of listed resources that no longer match the filters; kept.
        restored: Unlisted copies that were restored from the trash; kept.
        verified, server_verified, weak, unverified: Fixity of the resources fetched in this run:
            by a hash of the list; by the server's digest alone; by a weak hash or the length; not.
        by_hash, by_request, by_date: Resources in the mirror by the evidence that they are as at
            the Source: a listed hash; an answer to a request of this run; only that their date, or
            a Change List, tells of no change. Their sum is ``resources``.
        unconfirmed: Of those without a listed hash, those of which the Source said "not modified"
            although their date moved; each is fetched once within the period of rechecks.
        rechecked: Resources requested again though no list tells that they changed.
        stale_dates: Of the rechecked, those that had changed.
        contradicting: Of the pending, those whose bytes are kept although they are not as listed
            (``verify="lenient"``).
        renamed: Files moved to other names; in a dry run, to be moved.
        linked: Resources in the mirror that are not listed, but linked by listed entries.
        patched: Resources made from the previous copy by a patch.
        unpatched: Patches that failed; their resources were fetched whole.
        requests: Requests sent.
        received: Bytes received, documents included.
        useful: Bytes of the resources installed.
        seconds: Duration.
        as_of: The Source's time up to which the mirror is complete, UTC.
        failures: The first failures, at most 1,000.
        skew: Seconds that this machine's clock is ahead of the Source's (negative: behind), if a
            day or more; then the mirror is not in sync.
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
    absent_below: str = ""
    skipped: int = 0
    unknown: int = 0
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
    server_verified: int = 0
    weak: int = 0
    unverified: int = 0
    by_hash: int = 0
    by_request: int = 0
    by_date: int = 0
    unconfirmed: int = 0
    rechecked: int = 0
    stale_dates: int = 0
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


class FailedRun(msgspec.Struct, frozen=True, kw_only=True):
    """Error that ended a run.

    Attributes:
        code: The error's stable code; ``interrupted`` if no `ResourceSyncError` ended it.
        kind: Name of its class in `resourcesync.errors`; empty if unknown.
        message: The error message.
        hint: Advice.
    """

    code: str
    kind: str = ""
    message: str = ""
    hint: str = ""


class MirrorStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of a mirror by its own state, without a request to the Source.

    Attributes:
        folder: The mirror's folder.
        source: The address that it follows.
        state: One of the six states.
        resources: Number of copies.
        pending: Listed resources that are not in the mirror as listed.
        outdated: Of the pending, those with another copy in the mirror.
        contradicting: Of the pending, those whose bytes are kept although they are not as listed
            (``verify="lenient"``).
        resting: Of the pending, those that failed so often that not every run tries them again.
        tried_again: Time of the next attempt of the first of the resting, UTC; ``None`` if there is
            none.
        refused: Entries of the Source that cannot be used.
        absent, skipped: Listed resources that the Source does not serve, where that is accepted;
            not pending. See `RunReport`.
        unknown: Of the absent and skipped, those with an older copy that may be wrong.
        held: Deletions on hold.
        moved_from: The Source's address before a move after which the mirror was not in sync yet.
        edited: Files to be deleted that were changed locally: they are kept.
        as_of: The Source's time up to which the mirror is complete, UTC.
        in_sync_at: Start of the last run that found the mirror in sync, UTC; the lag counts from
            here. ``None``: none has, with the present filters.
        last_run: End of the last run, UTC.
        outcome: Outcome of the last run, one of its codes or ``ok``.
        failed: Error that ended the last run; ``None`` if it completed.
        failing_since: End of the first of the runs that failed in a row up to now, UTC; ``None`` if
            the last one did not fail.
        failures: The first listed resources that are not in the mirror as listed, and the reasons.
        certificate_until: End of the first TLS certificate of the servers of the Source's lists, as
            the last run met it, UTC; ``None`` without TLS.
        size: Bytes of the copies; ``None`` if that takes too long to count.
        by_hash, by_request, by_date: Number of copies by the evidence that they are as at the
            Source, as of the last pull; see `RunReport`.
        unconfirmed: Copies of which the Source said "not modified" although their date moved.
        recheck: Seconds within which each copy that is known by its date only is requested again;
            0: never; ``None``: no pull has completed yet.
        recheck_reached: Seconds in which that is really done.
        is_counted: All that the Source lists is known. Until a first pull, or one with other
            filters, completes, the number of missing resources is unknown.
        refuted: An audit since the last run that was in sync found that the mirror is not.
        left: While a run goes on, the state that the last one left; else ``None``.
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
    failing_since: datetime | None = None
    failures: tuple[Failing, ...] = ()
    certificate_until: datetime | None = None
    size: int | None = None
    by_hash: int = 0
    by_request: int = 0
    by_date: int = 0
    unconfirmed: int = 0
    recheck: float | None = None
    recheck_reached: float = 0.0
    is_counted: bool = True
    refuted: bool = False
    left: MirrorState | None = None

    @property
    def is_recheck_late(self) -> bool:
        """True if copies known by their dates are not requested again within the period."""
        return 0 < (self.recheck or 0) < self.recheck_reached

    @property
    def right(self) -> int:
        """Number of resources that are in the mirror as listed, as far as it is known."""
        good = self.resources - self.outdated - self.unknown
        return max(good - self.held - self.edited, 0)

    @property
    def listed(self) -> int:
        """Number of resources that are listed or to be deleted.

        Without those that are accepted as absent or skipped, unless there is an older copy.
        """
        return self.resources - self.outdated + self.pending + self.refused

    @property
    def share(self) -> float | None:
        """Share of the listed that are right, 0 to 1; ``None`` if it is unknown.

        It is after a failed first pull, if the Source delivered nothing, and if an audit found more
        to do than is known here.
        """
        is_nothing_listed = not (self.listed or self.absent or self.skipped)
        if not self.is_counted or (self.refuted and self.right == self.listed):
            return None
        if self.listed:
            return self.right / self.listed
        return 1.0 if is_nothing_listed and self.state is MirrorState.IN_SYNC else None

    @property
    def share_text(self) -> str:
        """The share in percent; ``-`` if it is unknown."""
        return "-" if self.share is None else formatting.share(self.right, self.listed)

    @property
    def judged(self) -> MirrorState:
        """The state by which the mirror is judged: a run that goes on is neither good nor bad."""
        return self.left or self.state
