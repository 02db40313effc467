"""Our hub and our subscriber, as the checks see them: by their addresses."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing import trees
from tests.support.commands.run import environment, free_port
from tests.support.commands.started import Started
from tests.support.servers.pushing import served_with_hub
from tests.support.websub.hub_checks import XML, HubUnderTest
from tests.support.websub.subscriber_checks import Page, Site, SubscriberUnderTest

_OPEN: Final = (
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
    'xmlns:rs="http://www.openarchives.org/rs/terms/">'
)
_CHANGE: Final = (
    "<url><loc>http://127.0.0.1/a</loc>"
    '<rs:md change="updated" datetime="2026-11-21T00:00:00Z"/></url>'
)


def _notification(topic: str, hub: str) -> bytes:
    links = f'<rs:ln rel="self" href="{topic}"/><rs:ln rel="hub" href="{hub}"/>' if topic else ""
    md = '<rs:md capability="changenotification" from="2026-11-20T00:00:00Z"/>'
    return f"{_OPEN}{links}{md}{_CHANGE}</urlset>".encode()


NOTIFICATION: Final = Page(XML, _notification)


@contextmanager
def our_hub(root: Path) -> Iterator[HubUnderTest]:
    """Serve a published tree with its hub; its topic changes when a file is published."""
    root.mkdir()
    (root / "a.txt").write_text("a")
    with served_with_hub(root) as base:

        def publish(topic: str) -> bytes:
            number = len(list(root.glob("*.txt")))
            (root / f"{number}.txt").write_text("new")
            done = trees.publish_tree(root, {}, clock=SystemClock())
            assert done.notified is not None
            return (root / topic.removeprefix(base)).read_bytes()

        topic = f"{base}resourcesync/changenotification.xml"
        yield HubUnderTest(f"{base}hub", {XML: topic}, publish)


@contextmanager
def our_subscriber(folder: Path, site: Site) -> Iterator[SubscriberUnderTest]:
    """Run ``watch --callback`` with one mirror, as soon as it shall subscribe."""
    admin, listen = free_port(), free_port()
    running: list[Started] = []

    def subscriptions() -> list[dict[str, Any]]:
        with urlopen(f"http://127.0.0.1:{admin}/api/status.json", timeout=10) as answer:
            return list(json.load(answer)["subscriptions"])

    def subscribe(name: str, topic: str) -> None:
        source = _offer(site, name, topic)
        mirror = f'[mirror.{name}]\nsource = "{source}"\ndest = "copy"\nevery = "1h"\npush = true\n'
        (folder / "resourcesync.toml").write_text(mirror)
        words = ["--callback", f"http://127.0.0.1:{listen}/push/", "--state", "state"]
        words += ["--listen", f"127.0.0.1:{listen}", "--admin", f"127.0.0.1:{admin}"]
        running.append(Started("watch", *words, cwd=folder, env=environment(folder)))

    def accepted(_name: str) -> int:
        return sum(int(found["taken"]) for found in subscriptions())

    try:
        yield SubscriberUnderTest(subscribe, accepted, {})
    finally:
        for process in running:
            process.__exit__(None, None, None)


def _offer(site: Site, name: str, topic: str) -> str:
    """Serve a Source that has no resources yet, and a channel; return where it is."""
    listed, capabilities = f"/{name}/resourcelist.xml", f"/{name}/capabilitylist.xml"

    def entry(uri: str, capability: str) -> str:
        return f'<url><loc>{uri}</loc><rs:md capability="{capability}"/></url>'

    entries = entry(site.uri(listed), "resourcelist") + entry(topic, "changenotification")
    _serve(site, capabilities, f'<rs:md capability="capabilitylist"/>{entries}')
    _serve(site, listed, '<rs:md capability="resourcelist" at="2026-11-20T00:00:00Z"/>')
    return site.uri(capabilities)


def _serve(site: Site, path: str, inside: str) -> None:
    body = f"{_OPEN}{inside}</urlset>".encode()
    site.others[path] = 200, body, {"content-type": XML}
