"""An index with thirty resources, its harvester, and what stands between us and the server."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from resourcesync.model.entries import Change
from resourcesync.ports import Fetcher
from resourcesync.ports.accounts import AccountOptions
from resourcesync_elasticsearch.account import IndexAccount
from resourcesync_elasticsearch.client import SearchServer
from resourcesync_elasticsearch.settings import parse_settings
from tests.support.accounts.dit_index import PREFIX, DitIndex, rel_path
from tests.support.in_memory import ManualClock
from tests.support.servers.interposed import Interposed, interposed


@dataclass
class PublishedIndex:
    """An index with thirty resources, and what stands between us and it."""

    index: DitIndex
    between: Interposed
    scheme: str
    clock: ManualClock

    @property
    def address(self) -> str:
        return f"{self.scheme}:{self.between.url}/{self.index.name}"

    @contextmanager
    def account(self, page: int = 7, **values: str) -> Iterator[IndexAccount]:
        options = AccountOptions(
            address=self.address,
            base_uri=PREFIX,
            values={"resource_set": "pdf", **values},
            memory="",
            out="",
            clock=self.clock,
            fetcher=no_fetcher,
        )
        settings = parse_settings(options)
        with SearchServer(settings.server, self.clock) as asked:
            yield IndexAccount(
                asked, settings, self.clock, is_opensearch=self.scheme == "opensearch", page=page
            )

    def told(self, account: IndexAccount, position: str) -> tuple[list[Change], str]:
        found: list[Change] = []
        for told in account.changes(position, 0):
            found += told.changes
            position = told.position
        return found, position


def no_fetcher(address: str) -> AbstractContextManager[Fetcher]:
    raise AssertionError(address)


@contextmanager
def published_index(url: str, *, is_opensearch: bool) -> Iterator[PublishedIndex]:
    """Make such an index; it goes when the block ends."""
    index = DitIndex(url)
    index.make()
    for number in range(30):
        index.put(rel_path(f"{number:02}"), b"%d" % number)
    index.refresh()
    scheme = "opensearch" if is_opensearch else "elasticsearch"
    with interposed(urlsplit(url).port or 80) as between:
        yield PublishedIndex(index, between, scheme, ManualClock(datetime.now(UTC)))
    index.drop()
