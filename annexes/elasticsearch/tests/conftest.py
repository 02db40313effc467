"""A search server for those that need one, and an index on it."""

from collections.abc import Iterator

import pytest

from tests.support.accounts.published_index import PublishedIndex, published_index
from tests.support.servers.search_servers import any_server


@pytest.fixture(scope="session")
def search_server() -> Iterator[tuple[str, bool]]:
    """Give a server's address, and whether it is an OpenSearch."""
    with any_server() as found:
        yield found


@pytest.fixture
def world(search_server: tuple[str, bool]) -> Iterator[PublishedIndex]:
    with published_index(search_server[0], is_opensearch=search_server[1]) as made:
        yield made
