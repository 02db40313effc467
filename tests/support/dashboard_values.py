"""What the pages for operators show, with one text everywhere; what a browser makes of it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

from resourcesync.destination.audits.reports import AuditRecord, AuditReport
from resourcesync.destination.mirror_health import CheckedMirror, DiskSpace
from resourcesync.destination.reports import (
    FailedRun,
    ListedCounts,
    MirrorState,
    MirrorStatus,
    Mode,
    RunReport,
)
from resourcesync.mirror_state.rows import PendingCause
from resourcesync.model.timestamps import to_microseconds
from resourcesync.push_state.rows import TopicSubscriber
from resourcesync.server.dashboard.mirror_selection import MirrorQuery, select_mirrors
from resourcesync.server.dashboard.mirrors_page import mirrors_page
from resourcesync.server.dashboard.views import (
    DocumentFile,
    EndedPull,
    MirrorDetail,
    MirrorSummary,
    PushStatus,
    SourceView,
)
from resourcesync.websub.subscription_status import (
    DeliveryFault,
    SubscriptionReport,
    SubscriptionStatus,
)

NOW = datetime(2026, 11, 21, 15, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Seen(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name in {"href", "action"} and value:
                self.addresses.add(value)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def ran(text: str, *, hours: float = 1, good: bool = True, **counts: Any) -> EndedPull:
    report = RunReport(
        pull=text,
        mode=Mode.INCREMENTAL,
        state=MirrorState.IN_SYNC,
        resources=9,
        listed=ListedCounts(unchanged=8, applied=1),
        requests=2,
        received_bytes=99,
        **counts,
    )
    failed = FailedRun(code=text, message=text, hint=text)
    ended = NOW - hours * HOUR
    return EndedPull(
        started=ended,
        ended=ended,
        outcome=text,
        report=report if good else None,
        failed=None if good else failed,
    )


def brief(text: str) -> MirrorSummary:
    status = MirrorStatus(
        mirror=text,
        source=text,
        state=MirrorState.BEHIND,
        resources=9,
        listed=ListedCounts(unchanged=7, pending=2),
        last_run=NOW,
        failing_since=NOW - HOUR,
    )
    return MirrorSummary(
        seen=CheckedMirror(status, 60.0, disk=DiskSpace(9_000, 5_000)),
        notes=(text, f"next   {text}"),
        push=pushed(text),
    )


def overview(mirrors: Sequence[MirrorSummary], **query: Any) -> str:
    return mirrors_page(select_mirrors(mirrors, MirrorQuery(**query)), NOW)


def pushed(text: str) -> PushStatus:
    return PushStatus(
        subscriptions=tuple(
            SubscriptionReport(
                mirror=text,
                topic=text,
                hub=text,
                status=standing,
                until=NOW,
                reason=text,
                accepted=3,
                last=NOW - HOUR,
                refusals=((DeliveryFault.SIGNATURE, 2), (DeliveryFault.SIZE, 5)),
            )
            for standing in (SubscriptionStatus.VERIFIED, SubscriptionStatus.REFUSED)
        )
    )


def detail(text: str) -> MirrorDetail:
    audit = AuditReport(audit=text, at=NOW, listed=4, present=4, accurate=3)
    return MirrorDetail(
        summary=brief(text),
        now=NOW,
        runs=(ran(text, created=1), ran(text, hours=2, good=False)),
        causes=(
            PendingCause("fetch", text, 3, text, text, 0),
            PendingCause("delete", "", 5, text, text, 0),
        ),
        audits=(AuditRecord(ended=to_microseconds(NOW), method=text, report=audit),),
    )


def source(text: str) -> SourceView:
    return SourceView(
        now=NOW,
        address=text,
        documents=(DocumentFile(name=text, size=3, written=NOW - HOUR),),
        resources=3,
        subscribers=(
            TopicSubscriber(topic=text, origin=text, expires=0, has_pending_delivery=True),
            TopicSubscriber(topic=text, origin=text, expires=0, attempts=3),
            TopicSubscriber(topic=f"{text}/channel", origin=text, expires=0),
        ),
        subscribed=7,
    )
