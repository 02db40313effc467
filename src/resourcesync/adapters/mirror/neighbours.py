"""What in a mirror's state some new paths would meet, looked up without reading all of it."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

from resourcesync.adapters.mirror.schema import ODD
from resourcesync.ports.naming import folders_of

_TABLES: Final = (("copy", ""), ("pending", " AND task = 'fetch'"))
# A path that is the end of its URI is found by that; others by an index of their own.
_AT: Final = " UNION ALL ".join(
    f"SELECT uri, path FROM {table} WHERE uri = :uri AND path = :path{of_task}"  # noqa: S608 - constants
    f" UNION ALL SELECT uri, path FROM {table} WHERE path = :path AND {ODD}{of_task}"
    for table, of_task in _TABLES
)
_BELOW: Final = " UNION ALL ".join(
    f"SELECT * FROM (SELECT uri, path FROM {table} WHERE uri > :uri || '/' AND uri < :uri || '0'"  # noqa: S608 - constants
    f" AND substr(path, 1, length(:path) + 1) = :path || '/'{of_task} LIMIT 1)"
    f" UNION ALL SELECT * FROM (SELECT uri, path FROM {table} WHERE path > :path || '/'"
    f" AND path < :path || '0' AND {ODD}{of_task} LIMIT 1)"
    for table, of_task in _TABLES
)


def neighbours(
    db: sqlite3.Connection, base: str, paths: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the URIs and paths of what some new paths would meet; see ``ports.naming.near``."""
    folders = {folder for path in paths for folder in folders_of(path)}
    for query, named in ((_AT, {*paths, *folders}), (_BELOW, set(paths))):
        for path in sorted(named):
            yield from db.execute(query, {"uri": f"{base}{path}", "path": path}).fetchall()
