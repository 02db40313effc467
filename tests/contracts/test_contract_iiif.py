"""A stream of IIIF Change Discovery keeps what every account promises."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.backends.iiif import open_account
from resourcesync.ports.accounts import AccountOptions, ResourceAccount
from resourcesync.testing import AccountSuite
from tests.support.accounts.activity_stream import ALL, ActivityStream, uri_of


class TestChangeDiscoveryAccount(AccountSuite):
    has_lengths = False
    has_digests = False
    stream: ActivityStream

    @pytest.fixture
    def account(self, tmp_path: Path) -> Iterator[ResourceAccount]:
        self.stream = ActivityStream()
        self.names: set[str] = set()
        options = AccountOptions(
            address=f"iiif:{ALL}",
            base_uri="https://mine.example/",
            memory=str(tmp_path / "memory"),
            out=str(tmp_path / "out"),
            clock=SystemClock(),
            fetcher=lambda _: nullcontext(self.stream.fetcher),
        )
        with open_account(options) as account:
            yield account

    def put(self, name: str, content: bytes) -> str:
        del content
        self.stream.add("Update" if name in self.names else "Create", name)
        self.names.add(name)
        return uri_of(name)

    def remove(self, name: str) -> None:
        self.names.discard(name)
        self.stream.add("Delete", name)

    def outage(self) -> AbstractContextManager[None]:
        return self.stream.fails(after=0)

    def partial_failure(self) -> AbstractContextManager[None]:
        return self.stream.fails(after=3)

    def expire_changes(self) -> bool:
        for number in range(40):
            self.put(f"later{number}", b"")
        self.stream.dropped = 1
        return True


class TestLevelZeroAccount(TestChangeDiscoveryAccount):
    """A stream without times has no log; deleted objects are no longer in it."""

    has_changes = False

    def put(self, name: str, content: bytes) -> str:
        del content
        if name not in self.names:
            self.stream.add("Update", name)
            del self.stream.activities[-1]["endTime"]
        self.names.add(name)
        return uri_of(name)

    def remove(self, name: str) -> None:
        self.names.discard(name)
        self.stream.activities = [
            item for item in self.stream.activities if item["object"]["id"] != uri_of(name)
        ]

    @pytest.mark.skip(reason="a stream without activities may have a log")
    def test_only_a_change_log_has_a_position(self, account: ResourceAccount) -> None:
        """Nothing says that it is of level 0 until the first activity."""
