"""The comparison of the list with the mirror by joins; the same as the planner's, out of core.

The wide rows are read once to be compared by the few columns that count, and once more for those
that differ. Rows are known by their number, so intermediate results are numbers only. DuckDB
does it all; the answer comes in URI order and is written as it comes.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from resourcesync.cluster.tables.arrow import pc
from resourcesync.cluster.tables.duckdb_session import DuckDbSession, scan_query
from resourcesync.cluster.tables.parquet import COPIES, COPY, GROUP, LISTED, WORK, TableFileWriter
from resourcesync.ports.mirror import Copy, Fixity
from resourcesync.ports.tables import JoinResult, ListedRow, WorkSlice

ALTERED: Final = "altered"
"""A copy's signature when an audit found its file altered, as in ``destination.planner``."""

_UNLISTED, _TO_DO, _LEFT = 0, 1, 2

_LISTED_COLUMNS: Final = ", ".join(f"t.{name}" for name in ListedRow._fields)
_COPY_COLUMNS: Final = ", ".join(f"c.{name}" for name in Copy._fields)
_WORK_COLUMNS: Final = ", ".join(f"c.{name} AS {COPY}{name}" for name in Copy._fields)

# Same hash: perhaps the same URI. So the rows of most files need no grouping by their URIs.
_TWICE: Final = """
CREATE TEMP TABLE twice AS SELECT hash(uri) AS h FROM {rows} GROUP BY h HAVING count(*) > 1
"""

# Of each such URI, the row that counts: the last one with a change,
# else the first; and the URI itself where a list contradicts itself.
_WON: Final = """
CREATE TEMP TABLE won AS
SELECT coalesce(last, first) AS n, CASE WHEN last IS NULL AND differs THEN uri END AS conflict
FROM (
    SELECT uri, min(n) AS first, max(n) FILTER (change <> '') AS last,
        min(hash) FILTER (change = '') <> max(hash) FILTER (change = '')
        OR coalesce(min(length) <> max(length), false) OR count(length) NOT IN (0, count(*))
        OR coalesce(min(lastmod) <> max(lastmod), false) OR count(lastmod) NOT IN (0, count(*))
        AS differs
    FROM told SEMI JOIN twice ON hash(told.uri) = twice.h
    GROUP BY uri
)
"""

_DEDUPLICATED: Final = """
SELECT uri, hash, length, lastmod, change, n FROM told ANTI JOIN twice ON hash(told.uri) = twice.h
UNION ALL
SELECT uri, hash, length, lastmod,
    CASE WHEN conflict IS NULL THEN change ELSE 'filtered' END AS change, told.n
FROM told JOIN won ON told.n = won.n
"""

# No more than is compared, since all of it may have to be spilled: most copies have the digest
# that the Source listed. One that was brought back from the trash equals nothing listed.
_COMPARED_COPIES: Final = f"""
SELECT uri, CASE
        WHEN signature = '{ALTERED}' OR fixity = '{Fixity.RESTORED}' THEN -1 ELSE length
    END AS length,
    digests, nullif(listed, digests) AS listed, lastmod, n
FROM copies
"""  # noqa: S608 - the same

_FOUND: Final = f"""
CREATE TEMP TABLE found AS
SELECT t.n AS t, c.n AS c,
    CASE WHEN t.n IS NULL THEN {_UNLISTED}
        WHEN t.change = 'filtered' THEN {_LEFT} ELSE {_TO_DO} END AS kind
FROM settled t FULL OUTER JOIN here c ON t.uri = c.uri
WHERE CASE
    WHEN t.n IS NULL THEN true
    WHEN c.n IS NULL THEN t.change NOT IN ('deleted', 'filtered')
    WHEN t.change IN ('deleted', 'filtered', 'disputed') THEN true
    WHEN c.length < 0 OR t.length <> c.length THEN true
    WHEN t.hash <> '' THEN t.hash <> c.digests AND coalesce(t.hash <> c.listed, true)
    ELSE coalesce(t.lastmod <> c.lastmod, true)
END
"""  # noqa: S608 - our own names

# The last join is not EXISTS, which would copy all wide rows and group them first. Joined before
# they are sorted: both at once need the memory of both.
_WORK: Final = f"""
WITH work AS MATERIALIZED (
SELECT {_LISTED_COLUMNS}, {_WORK_COLUMNS}, r.uri IS NOT NULL AS rests
FROM told t JOIN (FROM found WHERE kind = {_TO_DO}) f ON t.n = f.t
LEFT JOIN before c ON c.n = f.c
LEFT JOIN (SELECT DISTINCT uri, hash, length, lastmod FROM resting) r
ON t.change <> 'deleted' AND r.uri = t.uri AND r.hash = t.hash
    AND r.length IS NOT DISTINCT FROM t.length AND r.lastmod IS NOT DISTINCT FROM t.lastmod
)
FROM work ORDER BY uri
"""  # noqa: S608 - the same

# One pass over the wide rows: of copies to check, not listed, or not selected.
_BEFORE: Final = f"""
CREATE TEMP TABLE before AS SELECT {_COPY_COLUMNS}, c.n, f.kind
FROM copies c JOIN found f ON c.n = f.c
"""  # noqa: S608 - the same

_COPIES_OF: Final = f"""
SELECT {_COPY_COLUMNS} FROM before c WHERE kind = {{kind}} ORDER BY uri
"""  # noqa: S608 - the same

_CONFLICTS: Final = f"""
WITH both_ways AS (
    SELECT told.* FROM told SEMI JOIN (FROM won WHERE conflict IS NOT NULL) w ON uri = w.conflict
), firsts AS (
    SELECT t.uri, t.n, t.hash, t.length, t.lastmod FROM both_ways t JOIN won w ON t.n = w.n
), others AS (
    SELECT min(t.n) AS n FROM both_ways t JOIN firsts f ON t.uri = f.uri
    WHERE (t.hash, t.length, t.lastmod) IS DISTINCT FROM (f.hash, f.length, f.lastmod)
    GROUP BY t.uri
)
SELECT {_LISTED_COLUMNS} FROM both_ways t
WHERE t.n IN (SELECT n FROM firsts UNION ALL SELECT n FROM others)
ORDER BY t.uri, t.n
"""  # noqa: S608 - the same


_SELECT_LISTED: Final = f"""
SELECT {_LISTED_COLUMNS} FROM told t SEMI JOIN chosen ON t.uri = chosen.uri ORDER BY t.uri, t.n
"""  # noqa: S608 - the same


def find_listed(work: DuckDbSession, files: Sequence[str], chosen: Sequence[str]) -> Iterator[Any]:
    """Yield batches of rows, as ``ports.tables.Tables.find_listed`` says."""
    work.run(f"CREATE TEMP VIEW told AS {scan_query(files, LISTED)}")
    work.run(f"CREATE TEMP VIEW chosen AS {scan_query(chosen, LISTED)}")
    yield from work.batches(_SELECT_LISTED)


def join(
    work: DuckDbSession,
    told: Sequence[str],
    copies: Sequence[str],
    resting: Sequence[str],
    *,
    into: Path,
    rows: int,
) -> JoinResult:
    """Compare, as ``ports.tables.Tables.join`` says; ``told``: listed files, then changed."""
    work.run(f"CREATE TEMP VIEW told AS {scan_query(told, LISTED)}")
    work.run(f"CREATE TEMP VIEW copies AS {scan_query(copies, COPIES)}")
    work.run(f"CREATE TEMP TABLE resting AS {scan_query(resting, LISTED)}")
    work.run(f"CREATE TEMP VIEW here AS {_COMPARED_COPIES}")
    _deduplicate(work)
    work.run(_FOUND)
    known = work.value("SELECT count(*) FROM copies")
    others = work.value("SELECT count(c) FROM found")
    work.run(_BEFORE)
    slices = SliceWriter(into, rows)
    resting_rows = slices.write_all(work)
    _write_conflicts(work, into / "conflicts.parquet")
    return JoinResult(
        same=known - others,
        create=slices.create,
        update=slices.update,
        size=slices.size,
        unsized=slices.unsized,
        has_unprovable=slices.unsure,
        slices=tuple(slices.made),
        unlisted=str(into / "unlisted.parquet"),
        unlisted_rows=_write_copies(work, _UNLISTED, into / "unlisted.parquet"),
        filtered=str(into / "filtered.parquet"),
        filtered_rows=_write_copies(work, _LEFT, into / "filtered.parquet"),
        deferred=str(into / _RESTING),
        deferred_rows=resting_rows,
        conflicts=str(into / "conflicts.parquet"),
    )


_RESTING: Final = "resting.parquet"


def _deduplicate(work: DuckDbSession) -> None:
    work.run(_TWICE.format(rows="told"))
    if work.value("SELECT count(*) FROM twice"):
        work.run(_WON)
        work.run(f"CREATE TEMP VIEW settled AS {_DEDUPLICATED}")
    else:
        work.run("CREATE TEMP TABLE won (n BIGINT, conflict VARCHAR)")
        work.run("CREATE TEMP VIEW settled AS FROM told")


def _write_copies(work: DuckDbSession, kind: int, file: Path) -> int:
    return _write(work, _COPIES_OF.format(kind=kind), file, COPIES)


def _write_conflicts(work: DuckDbSession, file: Path) -> None:
    if work.value("SELECT count(conflict) FROM won"):
        _write(work, _CONFLICTS, file, LISTED)
    else:  # most lists have none, and are not read again
        TableFileWriter(file, LISTED).close()


def _write(work: DuckDbSession, query: str, file: Path, schema: Any) -> int:
    with TableFileWriter(file, schema) as writer:
        for batch in work.batches(query):
            writer.write(batch)
    return writer.rows


class SliceWriter:
    """A writer of slices to process, which counts their rows.

    Args:
        into: Their folder.
        rows: The most rows of a slice.
    """

    def __init__(self, into: Path, rows: int) -> None:
        self.create = self.update = self.size = self.unsized = 0
        self.unsure = False
        self.made: list[WorkSlice] = []
        self._into, self._most = into, rows

    def write_all(self, work: DuckDbSession) -> int:
        """Write all slices, and the resting rows; return the number of these."""
        with ExitStack() as stack:
            resting = stack.enter_context(TableFileWriter(self._into / _RESTING, LISTED))
            pieces = self._pieces(work, resting)
            piece = next(pieces, None)
            while piece is not None:
                piece = self._slice(piece, pieces)
        return resting.rows

    def _pieces(self, work: DuckDbSession, resting: TableFileWriter) -> Any:
        for batch in work.batches(_WORK):
            rests = batch.column("rests")
            rows = batch.select(WORK.names)
            if pc.any(rests).as_py():
                resting.write(rows.filter(rests).select(LISTED.names))
                rows = rows.filter(pc.invert(rests))
            for start in range(0, rows.num_rows, GROUP):
                yield rows.slice(start, GROUP)

    def _slice(self, piece: Any, rest: Any) -> Any:
        """Write one slice; return the rest of the last piece."""
        file = self._into / f"slice-{len(self.made):06}.parquet"
        size = 0
        with TableFileWriter(file, WORK) as writer:
            while piece is not None:
                taken = piece.slice(0, self._most - writer.rows)
                size += self._count(taken)
                writer.write(taken)
                left = piece.slice(taken.num_rows)
                piece = left if left.num_rows else next(rest, None)
                if writer.rows == self._most:
                    break
        self.made.append(WorkSlice(str(file), writer.rows, size))
        return piece

    def _count(self, rows: Any) -> int:
        """Count rows; return the sum of their lengths in bytes."""
        wanted = rows.filter(pc.not_equal(rows.column("change"), "deleted"))
        create = wanted.column(f"{COPY}uri").null_count
        length, lastmod = wanted.column("length"), wanted.column("lastmod")
        size: int = pc.sum(length).as_py() or 0
        self.create += create
        self.update += wanted.num_rows - create
        self.size += size
        self.unsized += length.null_count
        vague = pc.and_(pc.equal(wanted.column("hash"), ""), lastmod.is_null())
        self.unsure = self.unsure or bool(pc.any(vague).as_py())
        return size
