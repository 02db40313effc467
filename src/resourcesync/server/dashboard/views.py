"""What the pages show: values, read elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from resourcesync.destination.reports import AuditReport, FailedRun, MirrorStatus, RunReport
from resourcesync.ports.subscriptions import TopicSubscriber
from resourcesync.server.metrics import Metric
from resourcesync.server.pages import Overview
from resourcesync.websub.subscription_status import SubscriptionReport


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedPull:
    """A pull that ended.

    Attributes:
        run: Its id.
        started, ended: When, UTC.
        outcome: ``ok``, the mirror's state, what it ran out of, or the code of an error.
        report: What it counted; ``None`` when it could not go on.
        failed: Why it could not go on.
    """

    run: str
    started: datetime
    ended: datetime
    outcome: str
    report: RunReport | None = None
    failed: FailedRun | None = None

    @property
    def changes(self) -> int:
        """How many changes it brought."""
        report = self.report
        return 0 if report is None else report.created + report.updated + report.deleted

    @property
    def is_first(self) -> bool:
        """Whether it brought the copy itself, and no changes of it."""
        report = self.report
        return (
            report is not None
            and report.mode == "baseline"
            and report.created == report.resources > 0
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedChange:
    """A change that came.

    Attributes:
        time: When it came, UTC.
        kind: ``created``, ``updated`` or ``deleted``.
        uri: Of what.
        dated: When it was made, as the Source dates it; ``None``: it does not.
    """

    time: datetime
    kind: str
    uri: str
    dated: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedChange:
    """A change that is not here yet: what it is of, and when it was made."""

    uri: str
    dated: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSpan:
    """A Change List that was read: its address and what it tells of; open without ``until``."""

    uri: str
    since: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCause:
    """Why some of what is listed is not here.

    Attributes:
        code: A stable word; empty when it was not tried yet.
        count: How many.
        uri: One of them.
        reason: The reason of one, in a sentence.
        due: Before this moment no pull tries any of them again, UTC; ``None``: the next does.
    """

    code: str
    count: int
    uri: str
    reason: str
    due: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PushStatus:
    """How a mirror is told by its Source that something changed.

    Attributes:
        subscriptions: To the channels of the Source.
        is_looked: Whether the Source has told all channels that it offers.
    """

    subscriptions: tuple[SubscriptionReport, ...] = ()
    is_known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSummary:
    """One mirror in the list of mirrors.

    Attributes:
        status: What it says of itself.
        lag: Seconds since it was known to be in sync; ``None``: it never was.
        right, listed: How many resources are here as listed, and how many are listed.
        notes: What is to be known of it, and what to do.
        days: How many changes came on each of the last days, the oldest first.
        max_lag: The longest lag that is fine, in seconds.
        trouble: Why it cannot be read; empty when it can.
        push: How its Source tells of changes; ``None`` when it is not to.
        next: When it is pulled next, and why then; empty when that is not known.
    """

    status: MirrorStatus
    lag: float | None = None
    right: int = 0
    listed: int = 0
    notes: tuple[str, ...] = ()
    days: tuple[int, ...] = ()
    max_lag: float | None = None
    error: str = ""
    push: PushStatus | None = None
    next_pull: str = ""

    @property
    def name(self) -> str:
        """The mirror's name."""
        return self.status.folder


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorDetail:
    """One mirror, and what happened to it.

    Attributes:
        brief: As in the list.
        since, until: The window of time that is told of, UTC.
        runs: The pulls in it, the newest first.
        changes: The changes in it, the newest first; not those of the first pull.
        is_cut: Whether there were more changes.
        lists: The Change Lists that were read.
        awaited: Changes that are not here yet.
        notices: When notifications came, as far as this service saw them.
        causes: Why what is listed is not here.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedResource:
    """One resource, explained: labelled lines, and the changes of it, the newest first."""

    uri: str
    lines: tuple[tuple[str, str], ...]
    history: tuple[AppliedChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedAudit:
    """An audit of a mirror: which one, when it ended, what it compared, what it counted."""

    mirror: str
    ended: datetime
    method: str
    report: AuditReport


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """A run of the service that ended: when, of which mirror, what it was, how it went."""

    time: datetime
    mirror: str
    kind: str
    exit: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorableSource:
    """A Source that can be looked at: its name, what it is here, and where it begins."""

    name: str
    kind: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeItem:
    """One place in the tree of a Source's documents.

    Attributes:
        depth: Its level; 1 for the first document.
        uri: Its address.
        said: What it is and holds, in parts; the first says what it is.
        details: All that is known of it, as names and values.
        is_bad: Whether it could not be read.
        is_sum: Whether it sums up what stands before it.
    """

    depth: int
    uri: str
    labels: tuple[str, ...]
    details: tuple[tuple[str, str], ...] = ()
    is_bad: bool = False
    is_total: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentTree:
    """The documents of a Source.

    Attributes:
        name: What it is called here; empty for the only one.
        address: Where it begins.
        depth: Levels of documents that were asked for.
        read_at: When it was read, UTC.
        found: The places of the tree, each before those below it.
        said: What all of it is, in a few words.
        notes: What went wrong, or why this is not all.
    """

    name: str
    address: str
    depth: int
    read_at: datetime
    found: tuple[TreeItem, ...] = ()
    summary: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFile:
    """A document of a Source: its name, its bytes, and when it was written."""

    name: str
    size: int
    written: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationStatus:
    """How the documents of a Source were judged, if they were.

    Attributes:
        now: The moment that this is told of, UTC.
        is_running: Whether they are being judged now.
        documents: How many were judged, or have been so far.
        ended: When they were judged, UTC; ``None`` if they were not.
        said: What was found, in a few words.
        is_good: Whether there was no error.
        trouble: Why it came to no end; empty if it did.
        is_stale: Whether they are others by now.
    """

    now: datetime
    is_running: bool = False
    documents: int = 0
    ended: datetime | None = None
    summary: str = ""
    is_good: bool = False
    error: str = ""
    is_stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    """A Source, as it offers itself.

    Attributes:
        now: The moment that it is told of, UTC.
        overview: Its address, its lists, and how much they list.
        documents: Its documents, those written last first.
        figures: What its server counts.
        days: Of how many days its changes are told.
        since: When the first interval of them begins, UTC.
        changes: For each kind, how many there were in each interval.
        subscribers: Who is subscribed at its own hub, not all if they are many; ``None`` when no
            hub is run here.
        subscribed: How many are.
        validated: How its documents were judged.
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
    """Where the pages of a Source get what they show; each is called in one thread at a time.

    They raise a ``ResourceSyncError`` when it cannot be read.
    """

    def source(self, days: int) -> SourceView:
        """Return the Source, and its changes of the last days."""
        ...

    def explore(self, depth: int) -> DocumentTree:
        """Return its documents, so many levels of them."""
        ...

    def validate(self, *, again: bool) -> str | ValidationStatus:
        """Judge its documents; return the findings as a page of their own, or how far it is."""
        ...


class Views(Protocol):
    """Where the pages get what they show. Each is called in a thread, and may take a while.

    They raise a ``ResourceSyncError`` when a mirror cannot be read, and return ``None`` for what
    is not there.
    """

    def now(self) -> datetime:
        """Return the present moment, UTC."""
        ...

    def mirrors(self) -> Sequence[MirrorSummary]:
        """Return all mirrors."""
        ...

    def mirror(self, name: str, days: int) -> MirrorDetail | None:
        """Return one mirror and its last days."""
        ...

    def resource(self, name: str, resource: str) -> ExplainedResource | None:
        """Return what is known of one resource, by its URI or path."""
        ...

    def run(self, name: str, run: str) -> EndedPull | None:
        """Return one pull."""
        ...

    def audits(self) -> Sequence[EndedAudit]:
        """Return the last audits of all mirrors, the newest first."""
        ...

    def audit(self, name: str, run: str) -> str | None:
        """Return the report of one audit: a page of its own."""
        ...

    def sources(self) -> Sequence[ExplorableSource]:
        """Return the Sources that can be looked at."""
        ...

    def explore(self, name: str, depth: int) -> DocumentTree | None:
        """Return the documents of one of these Sources; one thread at a time asks."""
        ...

    def ended(self) -> tuple[int, Sequence[EndedRun]]:
        """Return how many runs ended, and the last of them, the newest first."""
        ...
