"""What the owner of a database or an index runs once, so that its changes can be followed."""

from collections.abc import Mapping
from typing import Final

_ANY_BASE: Final = "https://example.org/"


def postgres_migration(values: Mapping[str, str]) -> str:
    """Return the SQL for a table of PostgreSQL; nothing is connected to.

    Args:
        values: What ``publish`` is told by ``--with``, ``env:`` and ``file:`` as they stand.

    Raises:
        ConfigurationError: One is unknown, missing, or cannot work.
    """
    from resourcesync.adapters.postgres import layout, migration  # noqa: PLC0415 - seldom needed

    return migration.migration(layout.parse_layout(values, _ANY_BASE))


def elasticsearch_indices() -> str:
    """Return the requests that make the two indices of an account, called ``INDEX-…``."""
    from resourcesync.adapters.elastic import documents  # noqa: PLC0415 - seldom needed

    return documents.mapping_requests("INDEX")
