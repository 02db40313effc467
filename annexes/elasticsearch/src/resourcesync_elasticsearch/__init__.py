"""Elasticsearch and OpenSearch: an index that another program fills, published (DIT-ES)."""

from collections.abc import Iterator
from contextlib import contextmanager

from resourcesync.ports.accounts import AccountOptions
from resourcesync_elasticsearch.account import IndexAccount
from resourcesync_elasticsearch.client import SearchServer
from resourcesync_elasticsearch.settings import parse_settings

__all__ = ["IndexAccount", "open_account"]


@contextmanager
def open_account(options: AccountOptions) -> Iterator[IndexAccount]:
    """Open an index: ``elasticsearch:https://HOST:9200/INDEX``, or ``opensearch:…``."""
    settings = parse_settings(options)
    with SearchServer(settings.server, options.clock) as server:
        yield IndexAccount(
            server,
            settings,
            options.clock,
            is_opensearch=options.address.startswith("opensearch:"),
            allow_empty=options.allow_empty,
        )
