"""What changed from one table to the next: one join, out of core."""

from pathlib import Path
from typing import Any, Final, NamedTuple

from resourcesync.adapters.inventory.engine import sql_literal
from resourcesync.adapters.inventory.files import RowGroupWriter, atomic_write

_BATCH: Final = 100_000


class Differences(NamedTuple):
    """How many resources differ. Touched ones tell something else of the same bytes."""

    created: int = 0
    updated: int = 0
    deleted: int = 0
    touched: int = 0


_JOINED: Final = """
CREATE TEMP TABLE difference AS
SELECT coalesce(new.uri, old.uri) AS uri,
    CASE WHEN old.uri IS NULL THEN 'created' WHEN new.uri IS NULL THEN 'deleted'
        WHEN old.hash <> new.hash OR old.length IS DISTINCT FROM new.length
            OR (new.hash = '' AND old.lastmod IS DISTINCT FROM new.lastmod)
        THEN 'updated' ELSE 'touched' END AS kind,
    new.lastmod AS lastmod, new.length AS length,
    coalesce(new.hash, '') AS hash, coalesce(new.type, '') AS type
FROM read_parquet({before}) AS old FULL JOIN read_parquet({after}) AS new ON old.uri = new.uri
WHERE old.uri IS NULL OR new.uri IS NULL OR old.hash <> new.hash OR old.type <> new.type
    OR old.length IS DISTINCT FROM new.length OR old.lastmod IS DISTINCT FROM new.lastmod
"""
_CHANGES: Final = "SELECT * FROM difference WHERE kind <> 'touched' ORDER BY uri"


def compare_tables(connection: Any, before: Path, after: Path, into: Path) -> Differences:
    """Compare two tables that ``take`` wrote; write the changes in the order of their URIs.

    A resource is updated when its hash or its length differs, or its ``lastmod`` where no hash
    tells. Of a deleted one only the URI is written.

    Args:
        connection: What ``opened`` gives.
        before: The table that was published.
        after: The next one.
        into: The file of the changes; none is written where there are none.

    Raises:
        StorageError: It could not be done.
    """
    files = {"before": sql_literal(str(before)), "after": sql_literal(str(after))}
    connection.execute(_JOINED.format(**files))
    rows = connection.execute("SELECT kind, count(*) FROM difference GROUP BY kind").fetchall()
    found = Differences(**dict(rows))
    if found.created or found.updated or found.deleted:
        reader = connection.sql(_CHANGES).to_arrow_reader(_BATCH)
        with atomic_write(into) as stream:
            writer = RowGroupWriter(stream, reader.schema)
            for batch in reader:
                writer.add(batch)
            writer.close()
    return found
