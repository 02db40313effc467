"""An index of search documents keeps what every account must.

The server is an emulator, unless RS_TEST_ES_URL or RS_TEST_OPENSEARCH_URL names a real one.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

import pytest

from resourcesync_elasticsearch.account import IndexAccount
from resourcesync_elasticsearch.documents import CHANGE_FIELDS
from tests.contracts.account_suite import AccountSuite
from tests.support.accounts.dit_index import PREFIX, DitIndex, ask, rel_path
from tests.support.accounts.published_index import PublishedIndex
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
        scheme = "opensearch" if is_opensearch else "elasticsearch"
        with interposed(urlsplit(url).port or 80) as self.between:
            published = PublishedIndex(self.index, self.between, scheme, ManualClock())
            with published.account() as account:
                yield account
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
