"""Hubs on loopback for tests: a running one, and what one says to it."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from resourcesync.adapters.system import SystemClock
from resourcesync.app.serving.applications import LateApplication
from resourcesync.app.serving.hubs import open_hub
from resourcesync.documents.writer import write
from resourcesync.model.entries import Change, Header, Link, Resource
from resourcesync.model.vocabulary import Capability, ChangeKind
from resourcesync.server.uvicorn_server import ServerThread
from resourcesync.server.websub import HubApplication
from resourcesync.websub.hub import HubRules
from resourcesync.websub.messages import FORM, SIGNATURE, XML, link_field, sign
from tests.support.servers.listening import Got, get

TOPIC = "https://museum.example/resourcesync/changenotification.xml"
KEY = b"the publisher's key"


def payload(*uris: str, minute: int = 0) -> bytes:
    at = datetime(2026, 11, 21, 12, minute, tzinfo=UTC)
    changes = [
        Change(kind=ChangeKind.UPDATED, time=at, resource=Resource(uri=uri, lastmod=at))
        for uri in uris or ("https://museum.example/a",)
    ]
    up = "https://museum.example/resourcesync/capabilitylist.xml"
    links = (Link(rel="up", href=up), Link(rel="self", href=TOPIC))
    kind = Capability.CHANGE_NOTIFICATION
    header = Header(capability=kind, from_=at, until=at, links=links)
    return b"".join(write(header, changes))


def said(
    uri: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    fields: Mapping[str, str] | None = None,
) -> Got:
    parts = urlsplit(uri)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return get(uri, target, method=method, body=body, **(fields or {}))


def post(uri: str, body: bytes, **fields: str) -> Got:
    return said(uri, method="POST", body=body, fields=fields)


@dataclass
class RunningHub:
    uri: str
    hub: HubApplication

    def subscribe(self, callback: str, **said: str) -> Got:
        fields = {"hub.mode": "subscribe", "hub.topic": TOPIC, "hub.callback": callback}
        more = {f"hub.{name}": value for name, value in said.items()}
        return post(self.uri, urlencode(fields | more).encode(), content_type=FORM)

    def submit(self, body: bytes, *, key: bytes = KEY, topic: str = TOPIC) -> Got:
        return post(
            self.uri,
            body,
            content_type=XML,
            link=link_field(topic, [self.uri]),
            **{SIGNATURE: sign(key, body)},
        )

    def subscribed(self) -> int:
        return self.hub.store.count_subscriptions()


@contextlib.contextmanager
def running_hub(path: Path, *, private: bool = True, **rules: Any) -> Iterator[RunningHub]:
    late = LateApplication()
    clock = SystemClock()
    usual: dict[str, Any] = {"topics": frozenset({TOPIC}), "key": KEY, "per_peer": 10_000}
    usual |= {"per_origin": 10_000, "submissions": 10_000}
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(ServerThread(late))
        made = HubRules(address=f"{server.uri}hub", **(usual | rules))
        hub = open_hub(path, lambda: made, clock, private=private)
        stack.enter_context(hub.running())
        late.application = hub
        yield RunningHub(uri=server.uri, hub=hub)
