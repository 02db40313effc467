"""The pages of ``watch --admin`` about three mirrors with a past, on loopback."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from resourcesync.adapters.system import SystemClock
from resourcesync.cli.configured_mirrors import MirrorConfiguration, load
from resourcesync.cli.service.watch_pages import WatchPages
from resourcesync.cli.service.watch_reports import WatchFigures
from resourcesync.server.admin import AdminApplication, OperationsApplication
from resourcesync.server.dashboard.app import Dashboard
from resourcesync.server.dashboard.views import PushStatus
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.websub.subscription_status import (
    DeliveryFault,
    SubscriptionReport,
    SubscriptionStatus,
)
from tests.support.simulated.simulated_week import simulate
from tests.support.sources.own_source import published_for_days

HOURS = 5


def configured(folder: Path) -> MirrorConfiguration:
    """Make the mirrors, and a Source of our own, in a folder."""
    path = simulate(folder, hours=HOURS)
    demo = folder / "demo"
    published_for_days(demo, days=4)
    path.write_text(f'{path.read_text()}\n[source.demo]\npath = "{demo}"\n')
    return load(path)


def subscriptions() -> dict[str, PushStatus]:
    """Return a good and a bad subscription of a mirror, and none of another."""
    now = SystemClock().now()
    base = "https://museum.example/resourcesync"

    def one(topic: str, standing: SubscriptionStatus, **more: Any) -> SubscriptionReport:
        hub = "https://hub.example/"
        return SubscriptionReport(mirror="theses", topic=topic, hub=hub, status=standing, **more)

    good = one(
        f"{base}/changenotification.xml",
        SubscriptionStatus.VERIFIED,
        until=now + timedelta(days=9),
        accepted=41,
        last=now - timedelta(minutes=3),
        refusals=((DeliveryFault.SIGNATURE, 2),),
    )
    bad = one(
        f"{base}/frameworknotification.xml",
        SubscriptionStatus.REFUSED,
        reason="the hub refuses it: 403",
    )
    return {"theses": PushStatus(subscriptions=(good, bad)), "maps": PushStatus(is_known=True)}


@contextmanager
def served(configuration: MirrorConfiguration, pages: WatchPages) -> Iterator[str]:
    """Serve the pages while the block runs; give their address."""
    figures = WatchFigures(lambda: (configuration.names, configuration), dict)
    health = OperationsApplication(look=lambda: None, counts=[figures.figures])
    with ServerThread(AdminApplication(figures.status, Dashboard(pages, health))) as server:
        yield server.uri
