"""Values that the pages show; they are read elsewhere."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from resourcesync.destination.audits.reports import AuditReport
from resourcesync.destination.reports import FailedRun, MirrorStatus, RunReport
from resourcesync.ports.subscriptions import TopicSubscriber
from resourcesync.server.dashboard.front_page import Overview
from resourcesync.server.metrics import Metric
from resourcesync.websub.subscription_status import SubscriptionReport


class EndedPull(msgspec.Struct, frozen=True, kw_only=True):
    """A pull that ended.

    Attributes:
        run: Its id.
        started, ended: The times of its start and end, UTC.
        outcome: ``ok``, the mirror's state, the exhausted limit, or the code of an error.
        report: Its report; ``None`` when it failed.
        failed: The reason of its failure.
    """

    run: str
    started: datetime
    ended: datetime
    outcome: str
    report: RunReport | None = None
    failed: FailedRun | None = None

    @property
    def changes(self) -> int:
        """Return the number of changes that it applied."""
        report = self.report
        return 0 if report is None else report.created + report.updated + report.deleted

    @property
    def is_first(self) -> bool:
        """True if it was the baseline, without changes."""
        report = self.report
        return (
            report is not None
            and report.mode == "baseline"
            and report.created == report.resources > 0
        )


class AppliedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change that was applied.

    Attributes:
        time: The time of its application, UTC.
        kind: ``created``, ``updated`` or ``deleted``.
        uri: The URI of the resource.
        dated: Its time according to the Source; ``None`` without one.
    """

    time: datetime
    kind: str
    uri: str
    dated: datetime | None = None


class AwaitedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change that was not applied yet: its resource and its time."""

    uri: str
    dated: datetime


class ListSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A Change List that was read: its address and its span; open without ``until``."""

    uri: str
    since: datetime
    until: datetime | None = None


class PendingCause(msgspec.Struct, frozen=True, kw_only=True):
    """A reason why listed resources are pending.

    Attributes:
        code: A stable word; empty when they were not tried yet.
        count: Number of these resources.
        uri: One of them.
        reason: The reason of one, in a sentence.
        due: Earliest time of the next try, UTC; ``None``: the next pull.
    """

    code: str
    count: int
    uri: str
    reason: str
    due: datetime | None = None


class PushStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Push subscriptions of a mirror.

    Attributes:
        subscriptions: The subscriptions to the Source's channels.
        is_known: True if the Source's channels are all known.
    """

    subscriptions: tuple[SubscriptionReport, ...] = ()
    is_known: bool = False


class RunningJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job of the service that runs now.

    Attributes:
        mirror: The name by which the mirror is watched.
        kind: ``pull``, ``audit`` or ``hand on``.
        since: Time of its start, UTC.
        done, total: Number of fetched resources, and of those to fetch; 0 if that is not known.
    """

    mirror: str
    kind: str
    since: datetime
    done: int = 0
    total: int = 0


class MirrorActivity(msgspec.Struct, frozen=True, kw_only=True):
    """The recent past of a mirror, from its state.

    Attributes:
        days: Number of changes on each of the last days, the oldest first.
        failing_since: End of the first of the pulls that failed in a row up to now, UTC; ``None``
            if the last one did not fail.
    """

    days: tuple[int, ...] = ()
    failing_since: datetime | None = None


class MirrorSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One mirror in the list of mirrors.

    Attributes:
        lag: Seconds since it was known to be in sync; ``None``: it never was.
        notes: Problems and remedies.
        max_lag: The longest acceptable lag, in seconds.
        error: The reason why it cannot be read; empty when it can.
        push: Its push subscriptions; ``None`` without push.
        next_pull: The time and the reason of the next pull; empty when that is not known.
        next_at: The time of the next pull, UTC; ``None`` when that is not known.
        tries: Number of failures in a row.
        running: Its running pull or audit; ``None`` for none.
        is_paused: True if an operator paused it.
        disk_free, disk_size: Bytes of the file system of its folder; ``None`` and 0 if unknown.
    """

    status: MirrorStatus
    lag: float | None = None
    notes: tuple[str, ...] = ()
    max_lag: float | None = None
    error: str = ""
    push: PushStatus | None = None
    next_pull: str = ""
    next_at: datetime | None = None
    tries: int = 0
    running: RunningJob | None = None
    is_paused: bool = False
    disk_free: int | None = None
    disk_size: int = 0

    @property
    def name(self) -> str:
        """Return the mirror's name."""
        return self.status.folder

    @property
    def is_late(self) -> bool:
        """True if the lag is longer than acceptable."""
        return self.max_lag is not None and (self.lag is None or self.lag > self.max_lag)


class MirrorDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One mirror with its recent history.

    Attributes:
        since, until: The window of time, UTC.
        runs: The pulls in it, the newest first.
        changes: The changes in it, the newest first; not those of the first pull.
        is_cut: True if there were more changes.
        lists: The Change Lists that were read.
        awaited: Changes that were not applied yet.
        notices: Times of notifications, as far as this service received them.
        causes: The reasons why listed resources are pending.
        failing_since: End of the first of the pulls that failed in a row up to now, UTC.
    """

    summary: MirrorSummary
    since: datetime
    until: datetime
    runs: tuple[EndedPull, ...] = ()
    changes: tuple[AppliedChange, ...] = ()
    is_cut: bool = False
    lists: tuple[ListSpan, ...] = ()
    awaited: tuple[AwaitedChange, ...] = ()
    notices: tuple[datetime, ...] = ()
    causes: tuple[PendingCause, ...] = ()
    failing_since: datetime | None = None


class ExplainedResource(msgspec.Struct, frozen=True, kw_only=True):
    """One resource, explained: labelled lines, and its changes, the newest first."""

    uri: str
    lines: tuple[tuple[str, str], ...]
    history: tuple[AppliedChange, ...] = ()


class EndedAudit(msgspec.Struct, frozen=True, kw_only=True):
    """An audit of a mirror: its id, end, scope and counts."""

    mirror: str
    ended: datetime
    method: str
    report: AuditReport


class EndedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that ended, or several in a row with the same result.

    Attributes:
        time: The end of the last of them, UTC.
        mirror: Its mirror.
        kind: ``pull``, ``audit`` or ``hand-on``.
        word: Its result in a word.
        is_good: True if nobody has to do anything.
        text: Its result in a few words.
        count: Number of these runs.
        since: The end of the first of them, UTC.
    """

    time: datetime
    mirror: str
    kind: str
    word: str
    is_good: bool
    text: str
    count: int = 1
    since: datetime | None = None


class ExplorableSource(msgspec.Struct, frozen=True, kw_only=True):
    """A Source that can be explored: its name, its role for the mirrors, and its address."""

    name: str
    kind: str
    address: str


class TreeItem(msgspec.Struct, frozen=True, kw_only=True):
    """One item in the tree of a Source's documents.

    Attributes:
        depth: Its level; 1 for the first document.
        uri: Its address.
        labels: Its kind and content, in parts; the first is the kind.
        details: All its properties, as names and values.
        is_bad: True if it could not be read.
        is_total: True if it sums up the items before it.
    """

    depth: int
    uri: str
    labels: tuple[str, ...]
    details: tuple[tuple[str, str], ...] = ()
    is_bad: bool = False
    is_total: bool = False


class DocumentTree(msgspec.Struct, frozen=True, kw_only=True):
    """The documents of a Source.

    Attributes:
        name: Its configured name; empty for the only one.
        address: Its address.
        depth: Number of levels that were requested.
        read_at: The time of reading, UTC.
        found: The items of the tree, each before those below it.
        summary: A summary in a few words.
        notes: Errors, or reasons why the tree is incomplete.
    """

    name: str
    address: str
    depth: int
    read_at: datetime
    found: tuple[TreeItem, ...] = ()
    summary: str = ""
    notes: tuple[str, ...] = ()


class DocumentFile(msgspec.Struct, frozen=True, kw_only=True):
    """A document of a Source: its name, size, and time of writing."""

    name: str
    size: int
    written: datetime


class ValidationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """State of the validation of a Source's documents.

    Attributes:
        now: The moment of this state, UTC.
        is_running: True while a validation is running.
        documents: Number of documents that were validated so far.
        ended: The end of the validation, UTC; ``None`` if there was none.
        summary: The findings, in a few words.
        is_good: True if there was no error.
        error: The reason why it failed; empty if it did not.
        is_stale: True if the documents changed since.
    """

    now: datetime
    is_running: bool = False
    documents: int = 0
    ended: datetime | None = None
    summary: str = ""
    is_good: bool = False
    error: str = ""
    is_stale: bool = False


class SourceView(msgspec.Struct, frozen=True, kw_only=True):
    """A Source as others see it.

    Attributes:
        now: The moment of the data, UTC.
        overview: Its address, its lists, and how much they list.
        documents: Its documents, the newest first.
        figures: The metrics of its server.
        days: The length of the window in days.
        since: The start of the first interval, UTC.
        changes: For each kind, the number of changes in each interval.
        subscribers: Subscribers of its own hub, not all if they are many; ``None`` without a hub.
        subscribed: Number of subscribers.
        validated: The state of the validation of its documents.
    """

    now: datetime
    overview: Overview
    documents: tuple[DocumentFile, ...]
    figures: tuple[Metric, ...]
    days: int
    since: datetime
    changes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    subscribers: tuple[TopicSubscriber, ...] | None = None
    subscribed: int = 0
    validated: ValidationStatus


class SourceViews(Protocol):
    """Values for the pages of a Source; each method runs in one thread at a time.

    They raise a ``ResourceSyncError`` when the Source cannot be read.
    """

    def source(self, days: int) -> SourceView:
        """Return the Source, and its changes of the last days."""

    def explore(self, depth: int) -> DocumentTree:
        """Return the Source's documents, down to a number of levels."""

    def validate(self, *, again: bool) -> str | ValidationStatus:
        """Validate the documents; return the findings as a page, or the progress."""


class Views(Protocol):
    """Values for the pages of mirrors. Each method is called in a thread, and may take a while.

    They raise a ``ResourceSyncError`` when a mirror cannot be read, and return ``None`` for
    something that does not exist.
    """

    def now(self) -> datetime:
        """Return the present moment, UTC."""

    def mirrors(self) -> Sequence[MirrorSummary]:
        """Return all mirrors, quickly: a page of them needs no other state than their statuses."""

    def activity(self, names: Sequence[str]) -> Mapping[str, MirrorActivity]:
        """Return the recent past of some mirrors by name, without the unreadable ones."""

    def mirror(self, name: str, length: timedelta | None) -> MirrorDetail | None:
        """Return one mirror and its recent past, all of it without a length."""

    def resource(self, name: str, resource: str) -> ExplainedResource | None:
        """Return the explanation of one resource, by its URI or path."""

    def run(self, name: str, run: str) -> EndedPull | None:
        """Return one pull."""

    def audits(self) -> Sequence[EndedAudit]:
        """Return the last audits of all mirrors, the newest first."""

    def audit(self, name: str, run: str) -> str | None:
        """Return the report of one audit: a page of its own."""

    def sources(self) -> Sequence[ExplorableSource]:
        """Return the Sources that can be explored."""

    def explore(self, name: str, depth: int) -> DocumentTree | None:
        """Return the documents of one of these Sources; called by one thread at a time."""

    def version(self) -> int:
        """Return a number that is another one once something happened; quick, on any thread."""

    def running(self) -> Sequence[RunningJob]:
        """Return the running jobs, the longest running first."""

    def events(self) -> Sequence[EndedRun]:
        """Return the runs of the last 30 days, the newest first; as many as are quick to read."""


class MirrorOperations(Protocol):
    """What operators may do with a mirror; each method may be called on any thread.

    They return False for a mirror that does not exist, and raise a ``ResourceSyncError`` if it
    cannot be done.
    """

    def pull_now(self, name: str) -> bool:
        """Pull a mirror soon, also if it waits after a failure or is paused."""

    def pause(self, name: str) -> bool:
        """Start no pulls and audits of a mirror any more, also after a restart."""

    def resume(self, name: str) -> bool:
        """Start the pulls and audits of a paused mirror again."""
