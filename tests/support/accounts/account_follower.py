"""Publishes what a scripted system tells, with a clock of its own."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from resourcesync.app.publishing import accounts, catalogues
from resourcesync.app.publishing.accounts import FollowedAccount
from resourcesync.model.entries import Change, Resource
from resourcesync.source.publication_options import PublicationResult, PublishRequest
from tests.support.accounts.scripted_account import ScriptedSystem
from tests.support.documents.text import tell
from tests.support.in_memory import ManualClock


class Follower:
    """Publishes what a system tells, with a clock of its own."""

    def __init__(self, system: ScriptedSystem, out: Path, name: str = "told:one") -> None:
        self.system = system
        self.out = out
        self.name = name
        self.clock = ManualClock(datetime(2026, 6, 1, tzinfo=UTC))

    def followed(self, **changes: Any) -> FollowedAccount:
        values = changes.pop("values", {})
        return FollowedAccount(address=self.name, values=values, out=self.out, **changes)

    def publish(self, *, allow_empty: bool = False, **changes: Any) -> PublicationResult:
        return accounts.publish_account(
            self.followed(**changes),
            {"url": "https://h/"},
            clock=self.clock,
            asked=PublishRequest(allow_empty=allow_empty),
        )

    def keep(self, every: float = 60.0, **changes: Any) -> Iterator[PublicationResult]:
        return accounts.publish_continuously(
            self.followed(**changes),
            {"url": "https://h/"},
            clock=self.clock,
            asked=PublishRequest(),
            every=every,
        )

    def asked(self) -> list[str]:
        found = [name for name in self.system.asked if name != "closed"]
        self.system.asked.clear()
        return found

    def recorded(self) -> dict[str, Resource]:
        path = self.out / ".resourcesync/catalogue.db"
        return {resource.uri: resource for resource in catalogues.read_resources(path)}

    def log(self) -> list[Change]:
        path = self.out / ".resourcesync/catalogue.db"
        return [change for _, change in catalogues.read_changes(path, 0)]

    def listed(self, name: str = "resourcelist") -> list[Any]:
        return tell((self.out / f"resourcesync/{name}.xml").read_bytes()).entries


def counts(done: PublicationResult) -> tuple[int, int, int, int]:
    scan = done.scan
    return scan.created, scan.updated, scan.deleted, scan.omitted
