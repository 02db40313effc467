"""What in a mirror's state some new paths would meet, looked up without reading all of it."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

from resourcesync.adapters.mirror.schema import PATH_NOT_IN_URI
from resourcesync.ports.mirror import folders_of

_PATH_TABLES: Final = (("copy", ""), ("pending", " AND task = 'fetch'"))
# A path that is the end of its URI is found by that; others by an index of their own.
_SAME_PATH: Final = " UNION ALL ".join(
    f"SELECT uri, path FROM {table} WHERE uri = :uri AND path = :path{of_task}"  # noqa: S608 - constants
    f" UNION ALL SELECT uri, path FROM {table} WHERE path = :path AND {PATH_NOT_IN_URI}{of_task}"
    for table, of_task in _PATH_TABLES
)
_LOWER_PATHS: Final = " UNION ALL ".join(
    f"SELECT * FROM (SELECT uri, path FROM {table} WHERE uri > :uri || '/' AND uri < :uri || '0'"  # noqa: S608 - constants
    f" AND substr(path, 1, length(:path) + 1) = :path || '/'{of_task} LIMIT 1)"
    f" UNION ALL SELECT * FROM (SELECT uri, path FROM {table} WHERE path > :path || '/'"
    f" AND path < :path || '0' AND {PATH_NOT_IN_URI}{of_task} LIMIT 1)"
    for table, of_task in _PATH_TABLES
)


def find_path_conflicts(
    db: sqlite3.Connection, base: str, paths: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the URIs and paths of what some new paths would meet; see ``ports.mirror.near``."""
    folders = {folder for path in paths for folder in folders_of(path)}
    for query, named in ((_SAME_PATH, {*paths, *folders}), (_LOWER_PATHS, set(paths))):
        for path in sorted(named):
            yield from db.execute(query, {"uri": f"{base}{path}", "path": path}).fetchall()
