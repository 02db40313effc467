"""Values of the pages: statuses and reports as they are, with the service's knowledge of them."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from resourcesync.destination.audits.reports import AuditRecord
from resourcesync.destination.mirror_health import CheckedMirror
from resourcesync.destination.reports import FailedRun, MirrorStatus, RunReport
from resourcesync.mirror_state.rows import PendingCause
from resourcesync.push_state.rows import TopicSubscriber
from resourcesync.watch.scheduler import NextPull
from resourcesync.websub.subscription_status import SubscriptionReport


class PushStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The subscriptions of a mirror; ``is_known`` once all channels of its Source are known."""

    subscriptions: tuple[SubscriptionReport, ...] = ()
    is_known: bool = False


class RunningJob(msgspec.Struct, frozen=True, kw_only=True):
    """A pull or an audit that runs; of a pull, how much of it is done, 0 of 0 if unknown."""

    kind: str
    since: datetime
    done: int = 0
    total: int = 0


class MirrorSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One mirror as it is now, and what the service knows of it.

    ``error`` says why its state cannot be read, ``notes`` its problems with the next steps.
    """

    seen: CheckedMirror
    notes: tuple[str, ...] = ()
    error: str = ""
    push: PushStatus | None = None
    next: NextPull | None = None
    running: RunningJob | None = None

    @property
    def status(self) -> MirrorStatus:
        """The mirror's status."""
        return self.seen.status

    @property
    def name(self) -> str:
        """The mirror's name."""
        return self.status.mirror

    @property
    def is_paused(self) -> bool:
        """True if an operator paused it."""
        return self.next is not None and self.next.is_paused


class EndedPull(msgspec.Struct, frozen=True, kw_only=True):
    """A pull that ended: its report, or why it failed."""

    started: datetime
    ended: datetime
    outcome: str
    report: RunReport | None = None
    failed: FailedRun | None = None


class MirrorDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One mirror with its last pulls and audits, the newest first, and what keeps it behind."""

    summary: MirrorSummary
    now: datetime
    runs: tuple[EndedPull, ...] = ()
    causes: tuple[PendingCause, ...] = ()
    audits: tuple[AuditRecord, ...] = ()


class DocumentFile(msgspec.Struct, frozen=True, kw_only=True):
    """A document of a Source: its name, size, and time of writing."""

    name: str
    size: int
    written: datetime


class SourceView(msgspec.Struct, frozen=True, kw_only=True):
    """A Source as its operators see it.

    ``resources`` and ``changes`` are ``None`` without a catalogue, ``subscribers`` without a hub;
    the documents are the newest ones, and the subscribers the first of ``subscribed``.
    """

    now: datetime
    address: str
    documents: tuple[DocumentFile, ...]
    resources: int | None = None
    changes: int | None = None
    subscribers: tuple[TopicSubscriber, ...] | None = None
    subscribed: int = 0


class Views(Protocol):
    """The mirrors of a service. Each method is called in a thread, and may take a while.

    They raise a ``ResourceSyncError`` when a mirror cannot be read.
    """

    def now(self) -> datetime:
        """Return the present moment, UTC."""

    def mirrors(self) -> Sequence[MirrorSummary]:
        """Return all mirrors, by their statuses only."""

    def mirror(self, name: str) -> MirrorDetail | None:
        """Return one mirror and its recent past; ``None`` for one that is not watched."""


Operate = Callable[[str, str, int], bool]
"""Does an action of operators with a mirror, on any thread: ``pull``, ``pause``, ``resume``, or
``release``, of the number of held deletions that was confirmed.

It returns False for a mirror that does not exist, and raises a ``ResourceSyncError`` if it cannot
be done. A paused mirror stays so after a restart; a pull is done soon in any case.
"""


def next_pull_text(planned: NextPull, now: datetime) -> str:
    """Return the time and the reason of a mirror's next pull, in a few words."""
    reason = f"retry {planned.failures}" if planned.reason == "retry" else planned.reason.value
    if planned.time is None:
        return reason
    moment = datetime.fromtimestamp(planned.time, UTC)
    form = "%H:%M:%SZ" if moment.date() == now.date() else "%Y-%m-%dT%H:%MZ"
    when = moment.strftime(form) if moment > now else "now"
    return when if planned.reason == "scheduled" else f"{when} ({reason})"
