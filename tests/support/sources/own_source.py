"""A Source of our own with a past, its hub, and its pages for operators."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing import trees
from resourcesync.app.serving import applications
from resourcesync.cli.render.serve_pages import ServePages
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports.subscriptions import SubscriptionIntent
from resourcesync.server.dashboard.app import SourceDashboard
from resourcesync.server.uvicorn_server import ServerThread

BASE = "https://demo.example/"
CALLBACKS = ("https://one.example/push/secret-1", "https://two.example:8443/hook/secret-2")


class ShiftedClock(SystemClock):
    """A clock that is behind by a while."""

    behind = timedelta()

    def now(self) -> datetime:
        return super().now() - self.behind


def published_for_days(root: Path, *, days: int) -> None:
    """Publish a tree that changed four times each day."""
    random = Random(7)
    clock = ShiftedClock()
    chosen: dict[str, object] = {"url": BASE, "hubs": (f"{BASE}hub",)}
    names: list[str] = []
    root.mkdir()
    for hours in range(24 * days, 0, -6):
        clock.behind = timedelta(hours=hours)
        names += [f"item-{len(names) + more:04}.xml" for more in range(random.randint(2, 9))]
        for name in {*names[-5:], *random.sample(names, min(len(names), 4))}:
            (root / name).write_bytes(random.randbytes(random.randint(10, 900)))
        (root / random.choice(names)).unlink(missing_ok=True)
        trees.publish_tree(root, chosen, clock=clock)
        chosen = {}


@contextmanager
def source_pages(root: Path) -> Iterator[tuple[str, ServePages]]:
    """Show a published tree to its operators; two are subscribed at its hub."""
    clock = SystemClock()
    tree = applications.find_tree(root)
    hub = tree.own_hub(clock).hub
    now = to_microseconds(clock.now())
    topic = f"{BASE}resourcesync/changenotification.xml"
    for callback in CALLBACKS:
        wish = SubscriptionIntent(
            mode="subscribe",
            topic=topic,
            callback=callback,
            secret=b"",
            lease=864_000,
            echo="",
            requested=now,
        )
        hub.store.add_intent(wish)
        [kept] = hub.store.due_intents(now, 1, ())
        hub.store.confirm(kept, now + 9 * 86_400_000_000)
    pages = ServePages(tree, clock, [hub.figures], hub)
    try:
        with ServerThread(SourceDashboard(pages, tree.operations(hub.figures))) as server:
            yield server.uri, pages
    finally:
        hub.application.end()
