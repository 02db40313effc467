"""A Source on raw sockets with a Resource List that says what a test wants, and its mirror."""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from html import escape
from pathlib import Path
from typing import Any, Self

from resourcesync.adapters.system import SystemClock
from resourcesync.app.mirror_home import Home
from resourcesync.app.mirror_opening import open_destination
from resourcesync.destination.audits.reports import AuditReport
from resourcesync.destination.destination import Destination
from resourcesync.destination.options import PullOptions
from resourcesync.destination.reports import RunReport
from resourcesync.ports import CancelToken
from resourcesync.settings.mirror import Network
from tests.support.documents.written import sha256, written
from tests.support.servers.hostile_server import Asked, HostileServer, Step, answer

LIST = "/resourcelist.xml"


def serve(body: bytes, tag: str = "") -> Callable[[Asked], list[Step]]:
    """Serve a body as a good server does, ranges too."""
    tag = tag or f'"{hashlib.sha256(body).hexdigest()[:8]}"'

    def script(asked: Asked) -> list[Step]:
        at = int(asked.fields.get("range", "bytes=0-")[6:-1])
        if at and asked.fields.get("if-range") == tag:
            said = f"bytes {at}-{len(body) - 1}/{len(body)}"
            return answer("206 Partial Content", body[at:], Content_Range=said, ETag=tag)
        return answer("200 OK", body, ETag=tag)

    return script


def cut_at(at: int, body: bytes, tag: str, end: str) -> list[Step]:
    (whole,) = answer("200 OK", body, ETag=tag)
    assert isinstance(whole, bytes)
    return [whole[: len(whole) - len(body) + at], 0.05, end]


class ScriptedSource:
    def __init__(self, folder: Path) -> None:
        self.server = HostileServer()
        self.folder = folder
        self.events: list[tuple[str, Mapping[str, object]]] = []
        self._entries: dict[str, str] = {}

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.server.__exit__(None, None, None)

    @property
    def uri(self) -> str:
        return self.server.origin + LIST

    def put(
        self,
        target: str,
        body: bytes,
        *,
        links: str = "",
        digest: str | None = None,
        length: bool = True,
        serving: bool = True,
    ) -> str:
        """List a resource, and serve it well; return its URI."""
        uri = self.server.origin + target
        said = sha256(body) if digest is None else digest
        facts = f' hash="{said}"' if said else ""
        facts += f' length="{len(body)}"' if length else ""
        self._entries[target] = f"<url><loc>{escape(uri)}</loc><rs:md{facts}/>{links}</url>"
        if serving:
            self.server.on(target, serve(body))
        self.publish()
        return uri

    def publish(self, at: str = "2026-01-01T00:00:00Z") -> None:
        head = f'<rs:md capability="resourcelist" at="{at}" completed="{at}"/>'
        body = written(head, self._entries.values()).encode()
        tag = f'"{hashlib.sha256(body).hexdigest()}"'

        def script(asked: Asked) -> list[Step]:
            if asked.fields.get("if-none-match") == tag:
                return answer("304 Not Modified", length=None, ETag=tag)
            return answer("200 OK", body, Content_Type="application/xml", ETag=tag)

        self.server.on(LIST, script)

    def pull(self, network: Network | None = None, **options: Any) -> RunReport:
        self.server.asked.clear()
        self.events.clear()
        with self._destination(network or Network(retries=0, timeout=2.0)) as destination:
            return destination.pull(PullOptions(**options))

    def audit(self, **options: Any) -> AuditReport:
        with self._destination(Network(retries=0, timeout=2.0)) as destination:
            return destination.audit(**options)

    def _destination(self, network: Network) -> AbstractContextManager[Destination]:
        return open_destination(
            Home(self.folder),
            source=self.uri,
            network=network,
            report=lambda event, fields: self.events.append((event, fields)),
            cancel=CancelToken(SystemClock()),
        )

    def file(self, target: str) -> bytes | None:
        path = self.folder / target.lstrip("/")
        return path.read_bytes() if path.exists() else None

    def temporary(self) -> list[str]:
        return sorted(path.name for path in (self.folder / ".resourcesync/tmp").iterdir())

    def ranges(self, target: str) -> list[str | None]:
        return [a.fields.get("range") for a in self.server.asked if a.target == target]


def duplicate(href: str, pri: int | None = None) -> str:
    said = "" if pri is None else f' pri="{pri}"'
    return f'<rs:ln rel="duplicate" href="{escape(href)}"{said}/>'
