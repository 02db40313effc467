"""An index of search documents keeps what every account must.

The server is an emulator, unless RS_TEST_ES_URL or RS_TEST_OPENSEARCH_URL names a real one.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

import pytest

from resourcesync.ports import Fetcher
from resourcesync.ports.accounts import AccountOptions
from resourcesync_elasticsearch.account import IndexAccount
from resourcesync_elasticsearch.client import SearchServer
from resourcesync_elasticsearch.documents import CHANGE_FIELDS
from resourcesync_elasticsearch.settings import parse_settings
from tests.contracts.account_suite import AccountSuite
from tests.support.accounts.dit_index import PREFIX, DitIndex, ask, rel_path
from tests.support.in_memory import ManualClock
from tests.support.servers.interposed import Answer, Interposed, interposed


class TestIndexAccount(AccountSuite):
    many = 30
    between: Interposed
    index: DitIndex

    @pytest.fixture
    def account(self, search_server: tuple[str, bool]) -> Iterator[IndexAccount]:
        url, is_opensearch = search_server
        self.index = DitIndex(url)
        self.index.make()
        with interposed(urlsplit(url).port or 80) as self.between:
            options = AccountOptions(
                address=f"opensearch:{self.between.url}/{self.index.name}",
                base_uri=PREFIX,
                values={"resource_set": self.index.resource_set},
                memory="",
                out="",
                clock=ManualClock(),
                fetcher=_no_fetcher,
            )
            settings = parse_settings(options)
            with SearchServer(settings.server, options.clock) as asked:
                yield IndexAccount(
                    asked, settings, options.clock, is_opensearch=is_opensearch, page=7
                )
        self.index.drop()

    def put(self, name: str, content: bytes) -> str:
        self.index.put(rel_path(name), content)
        return PREFIX + name

    def remove(self, name: str) -> None:
        self.index.remove(rel_path(name))

    def wait_until_visible(self) -> None:
        self.index.refresh()

    def outage(self) -> AbstractContextManager[None]:
        return self.between.spoiling(lambda *_: Answer(503, b"{}"))

    def partial_failure(self) -> AbstractContextManager[None]:
        answers = iter(range(2))

        def lost(method: str, target: str) -> Answer | None:
            if target.startswith("/_search?") and next(answers, None) is None:
                return Answer(404, b'{"error": {"type": "search_context_missing_exception"}}')
            return None

        return self.between.spoiling(lost)

    def expire_changes(self) -> bool:
        ask(f"{self.index.url}/{self.index.changes}", "DELETE")
        self.index.make_index(self.index.changes, CHANGE_FIELDS)
        return True


def _no_fetcher(address: str) -> AbstractContextManager[Fetcher]:
    raise AssertionError(address)
