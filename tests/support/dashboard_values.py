"""What the pages for operators show, with one text everywhere; what a browser makes of it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

from msgspec.structs import replace

from resourcesync.destination.reports import (
    FailedRun,
    MirrorState,
    MirrorStatus,
    Mode,
    RunReport,
)
from resourcesync.model.vocabulary import Capability
from resourcesync.ports.subscriptions import TopicSubscriber
from resourcesync.server.dashboard.front_page import OfferedList, Overview
from resourcesync.server.dashboard.mirror_selection import MirrorQuery, select_mirrors
from resourcesync.server.dashboard.mirrors_page import mirrors_page
from resourcesync.server.dashboard.views import (
    AppliedChange,
    AwaitedChange,
    DocumentFile,
    DocumentTree,
    EndedPull,
    ListSpan,
    MirrorActivity,
    MirrorDetail,
    MirrorSummary,
    PendingCause,
    PushStatus,
    SourceView,
    TreeItem,
    ValidationStatus,
)
from resourcesync.server.metrics import Metric
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
        self.scripts: list[str | None] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name in {"href", "action"} and value:
                self.addresses.add(value)
        if tag == "script":
            self.scripts.append(dict(attrs).get("src"))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def ran(text: str, *, hours: float = 1, good: bool = True) -> EndedPull:
    report = RunReport(
        run=text,
        mode=Mode.INCREMENTAL,
        state=MirrorState.IN_SYNC,
        resources=9,
        listed=9,
        created=1,
        requests=2,
        received=99,
        useful=50,
    )
    failed = FailedRun(code=text, message=text, hint=text)
    ended = NOW - hours * HOUR
    return EndedPull(
        run=text,
        started=ended,
        ended=ended,
        outcome=text,
        report=report if good else None,
        failed=None if good else failed,
    )


def brief(text: str) -> MirrorSummary:
    status = MirrorStatus(
        folder=text,
        source=text,
        state=MirrorState.BEHIND,
        resources=9,
        pending=2,
        outdated=2,
        last_run=NOW,
    )
    return MirrorSummary(
        status=status,
        lag=60.0,
        notes=(text, f"next   {text}"),
        push=pushed(text),
        disk_free=5_000,
        disk_size=9_000,
    )


def overview(mirrors: Sequence[MirrorSummary], **query: Any) -> str:
    """Return the page of mirrors for a request."""
    activity = MirrorActivity(days=(1, 0, 5), failing_since=NOW - HOUR)
    selection = select_mirrors(mirrors, MirrorQuery(**query))
    running = [found.running for found in mirrors if found.running is not None]
    return mirrors_page(selection, {found.name: activity for found in mirrors}, running, NOW)


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
                refusals=((DeliveryFault.SIGNATURE, 2), (DeliveryFault.ENDED, 5)),
            )
            for standing in (SubscriptionStatus.VERIFIED, SubscriptionStatus.REFUSED)
        )
    )


def detail(text: str) -> MirrorDetail:
    change = AppliedChange(time=NOW - HOUR, kind="created", uri=text, dated=NOW - 3 * HOUR)
    return MirrorDetail(
        summary=brief(text),
        since=NOW - 24 * HOUR,
        until=NOW,
        runs=(ran(text), ran(text, hours=2, good=False)),
        changes=(change, replace(change, kind="deleted", dated=None)),
        lists=(
            ListSpan(uri=text, since=NOW - 9 * HOUR, until=NOW - 5 * HOUR),
            ListSpan(uri=text, since=NOW - 9 * HOUR),
        ),
        awaited=(AwaitedChange(uri=text, dated=NOW - HOUR),),
        notices=(NOW - HOUR,),
        causes=(PendingCause(code=text, count=3, uri=text, reason=text),),
    )


def explored(text: str) -> DocumentTree:
    depths = (1, 2, 3, 3, 4, 2)
    found = [
        TreeItem(depth=depth, uri=text, labels=(text, text), details=((text, text),))
        for depth in depths
    ]
    found += [replace(found[0], depth=2, is_bad=True), replace(found[0], depth=2, is_total=True)]
    return DocumentTree(
        name=text,
        address=text,
        depth=3,
        read_at=NOW,
        found=tuple(found),
        summary=text,
        notes=(text,),
    )


def source(text: str) -> SourceView:
    figure = Metric(
        name=text, kind="gauge", help_text=text, values=((((text, text),), 1.5), ((), 2))
    )
    offered = OfferedList(capability=Capability.RESOURCE_LIST, uri=text)
    return SourceView(
        now=NOW,
        overview=Overview(address=text, lists=(offered,), resources=3, changes=None),
        documents=(DocumentFile(name=text, size=3, written=NOW - HOUR),),
        figures=(figure,),
        days=7,
        since=NOW - 12 * HOUR,
        changes=(("created", (0, 3, 1)), ("updated", (0, 0, 2)), ("deleted", (0, 0, 0))),
        subscribers=(
            TopicSubscriber(topic=text, origin=text, expires=0, has_pending_delivery=True),
            TopicSubscriber(topic=text, origin=text, expires=0, attempts=3),
            TopicSubscriber(topic=f"{text}/channel", origin=text, expires=0),
        ),
        subscribed=7,
        validated=validated(text),
    )


def validated(text: str) -> ValidationStatus:
    return ValidationStatus(now=NOW, documents=3, ended=NOW, summary=text, error=text)
