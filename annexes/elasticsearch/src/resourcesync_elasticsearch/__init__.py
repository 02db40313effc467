"""Elasticsearch and OpenSearch: an index that another program fills, published (DIT-ES)."""

from collections.abc import Iterator
from contextlib import contextmanager

from resourcesync.ports.accounts import AccountOptions
from resourcesync_elasticsearch.account import IndexAccount
from resourcesync_elasticsearch.client import SearchServer
from resourcesync_elasticsearch.settings import parse_settings

__all__ = ["IndexAccount", "open_elasticsearch", "open_opensearch"]


@contextmanager
def open_elasticsearch(options: AccountOptions) -> Iterator[IndexAccount]:
    """Open an index of Elasticsearch: ``elasticsearch:https://HOST:9200/INDEX``."""
    yield from _opened(options, is_opensearch=False)


@contextmanager
def open_opensearch(options: AccountOptions) -> Iterator[IndexAccount]:
    """Open an index of OpenSearch: ``opensearch:https://HOST:9200/INDEX``."""
    yield from _opened(options, is_opensearch=True)


def _opened(options: AccountOptions, *, is_opensearch: bool) -> Iterator[IndexAccount]:
    settings = parse_settings(options)
    with SearchServer(settings.server, options.clock) as server:
        yield IndexAccount(
            server,
            settings,
            options.clock,
            is_opensearch=is_opensearch,
            allow_empty=options.allow_empty,
        )
