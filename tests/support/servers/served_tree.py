"""A small published tree and the application that serves it."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from resourcesync.adapters.system import SystemClock
from resourcesync.server.app import Application, ServedSource
from tests.support.in_memory import ManualClock

LIST_URI = "https://example.org/base/resourcesync/capabilitylist.xml"
LINK = f'<{LIST_URI}>; rel="resourcesync"'
BIG = bytes(range(256)) * 2000
YEAR_AGO = 1_600_000_000


def media_type(path: str) -> str:
    return {"html": "text/html", "txt": "text/plain"}.get(path.rpartition(".")[2], "")


def served_source(root: Path, **more: Any) -> ServedSource:
    documents, well_known = root / "resourcesync", root / ".well-known" / "resourcesync"
    usual: dict[str, Any] = {"capability_list_uri": LIST_URI, "media_type": media_type}
    return ServedSource(root=root, documents=documents, well_known=well_known, **(usual | more))


def application(root: Path, clock: ManualClock | SystemClock | None = None) -> ASGIApp:
    return Application(served_source(root), clock=clock or SystemClock())


def settled() -> ManualClock:
    return ManualClock(datetime.now(UTC) + timedelta(seconds=10))


def plant(tree: Path) -> Path:
    (tree / "a").mkdir(parents=True)
    (tree / "a" / "one.txt").write_bytes(b"0123456789")
    (tree / "a" / "big.bin").write_bytes(BIG)
    (tree / "empty.txt").write_bytes(b"")
    (tree / "resourcesync").mkdir()
    (tree / "resourcesync" / "capabilitylist.xml").write_bytes(b"<urlset/>")
    (tree / ".well-known").mkdir()
    (tree / ".well-known" / "resourcesync").write_bytes(b"<description/>")
    for path in tree.rglob("*"):
        os.utime(path, (YEAR_AGO, YEAR_AGO))
    return tree
