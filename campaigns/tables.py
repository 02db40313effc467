"""Tables of a size that no test has: an audit, a first pull, changes, and the next table.

The rows are made by DuckDB: URIs of 60 characters, SHA-256 as lists have it (72 characters), 1 %
created, 1 % deleted, 1 % updated, the lists in no order. What is measured is the adapter's own
code, each piece in a process of its own: seconds, the most memory it held, the most it spilled.
"""

import contextlib
import multiprocessing
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb

from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.cluster.tables import ParquetTables
from resourcesync.cluster.tables.table_merge import Cutter
from resourcesync.ports.mirror import Copy
from resourcesync.ports.tables import DoneRow, JoinResult, TablePart, WorkRow

_ALLOWED: Final = 1_536
"""MiB that a process may hold: what DuckDB may use, and Python and PyArrow besides."""

_LIST: Final = 50_000
_PART: Final = 1_000_000
_SLICE: Final = 50_000
_WORLD: Final = 101  # of each 101 URIs, one is created, one deleted, one updated
_AT: Final = 1_700_000_000_000_000

_URI: Final = (
    "'https://repository.example.org/item/' || lpad(i::VARCHAR, 12, '0') || '/content.pdf'"
)
_SUM: Final = "'sha-256:' || sha256((2 * i + (EDITED)::INTEGER)::VARCHAR)"
_TIME: Final = "make_timestamptz(EPOCH + i)"

_COPIES: Final = f"""
SELECT {_URI} AS uri, 'item/' || i || '/content.pdf' AS path, 1000 + i % 9000 AS length,
    {_SUM.replace("EDITED", "false")} AS digests, digests AS listed,
    {_TIME.replace("EPOCH", str(_AT))} AS lastmod, '"' || to_hex(hash(i + 9)) || '"' AS etag,
    '' AS last_modified, '1:' || i || ':1700000000000000000' AS signature,
    'verified' AS fixity, {_TIME.replace("EPOCH", str(_AT + 10**12))} AS installed
FROM range(BEGIN, END) r(i) WHERE i % {_WORLD} <> 1 ORDER BY i
"""

_LISTED: Final = f"""
COPY (
    SELECT {_URI} AS uri, uri AS loc, 'item/' || i || '/content.pdf' AS path,
        {_SUM} AS hash, 1000 + i % 9000 AS length,
        {_TIME.replace("EPOCH", str(_AT))} AS lastmod, CHANGE AS change, '' AS elsewhere
    FROM (SELECT PLACE AS i, k FROM range(BEGIN, END) r(k)) WHERE i % {_WORLD} <> 2
) TO 'FILE' (FORMAT parquet, COMPRESSION zstd)
"""


def run(asked: Asked) -> Outcome:
    """Make the rows, and measure each piece of work on them."""
    outcome = Outcome()
    size, folder = asked.size, asked.folder
    for name in ("listed", "changed", "parts", "next", "audit", "first", "changes", "done"):
        (folder / name).mkdir()
    began = time.monotonic()
    parts = _in_process(_make_copies, size, folder / "parts")[0]
    listed = _in_process(_make_lists, size, folder / "listed")[0]
    changed = _in_process(_make_changes, size, folder / "changed")[0]
    outcome.add("seconds to make the rows", time.monotonic() - began)
    outcome.add("bytes of a copy in a part", sum(part.size for part, _ in parts) / size)
    files = [file for _, file in parts]
    world = size - size % _WORLD

    audit = _measured(outcome, "audit", folder, _join, listed, [], files, folder / "audit")
    each = world // _WORLD
    for label, got in (("created", audit.create), ("updated", audit.update)):
        outcome.require(abs(got - each) < _WORLD, f"{got} {label}, not about {each}")
    outcome.require(abs(audit.unlisted_rows - each) < _WORLD, f"{audit.unlisted_rows} unlisted")
    outcome.require(audit.same + audit.update + audit.unlisted_rows == _rows(parts), "copies lost")

    done = _measured(outcome, "units of the audit", folder, _do, audit, folder / "done")
    table = _measured(outcome, "next table", folder, _merge, parts, done, folder / "next")
    outcome.require(_rows(table) == _rows(parts) + audit.create, "the next table lost rows")

    last = _measured(outcome, "changes", folder, _join, [], changed, files, folder / "changes")
    looked = last.same + last.create + last.update
    outcome.add("changes, different URIs", looked + last.deferred_rows)
    first = _measured(outcome, "first pull", folder, _join, listed, [], [], folder / "first")
    outcome.require(first.create == audit.same + audit.update + audit.create, "listed rows lost")
    return outcome


def _rows(parts: list[tuple[TablePart, str]]) -> int:
    return sum(part.rows for part, _ in parts)


def _tables(folder: Path) -> ParquetTables:
    return ParquetTables(folder / "scratch")


def _join(listed: list[str], changed: list[str], copies: list[str], into: Path) -> JoinResult:
    tables = _tables(into.parent)
    return tables.join(listed, changed, copies, [], into=str(into), rows=_SLICE)


def _do(audit: JoinResult, into: Path) -> list[str]:
    """Do what the slices ask for, without a Source: write what would be here then."""
    tables, files = _tables(into.parent), []
    for piece in audit.slices:
        files.append(str(into / Path(piece.file).name))
        tables.write_done(files[-1], (_done(row) for row in tables.read_work(piece.file)))
    return files


def _done(row: WorkRow) -> DoneRow:
    listed = row.listed
    copy = Copy(
        listed.uri,
        listed.path,
        listed.length or 0,
        listed.hash,
        listed.hash,
        listed.lastmod,
        "",
        "",
        "1:2:3",
        "verified",
        _AT,
    )
    return DoneRow(listed.uri, copy, None)


def _merge(
    parts: list[tuple[TablePart, str]], done: list[str], into: Path
) -> list[tuple[TablePart, str]]:
    return _tables(into.parent).merge(parts, done, into=str(into), stem="b", rows=_PART)


def _make_copies(size: int, into: Path) -> list[tuple[TablePart, str]]:
    cut, base = Cutter(into, "a", _PART), _duckdb()
    for begin in range(0, size, _PART):
        query = _between(_COPIES, begin, min(size, begin + _PART))
        for batch in base.sql(query).to_arrow_reader(1 << 16):
            cut.write(batch)
    return cut.end()


def _make_lists(size: int, into: Path) -> list[str]:
    step = next(step for step in (7_919, 7_927, 7_933) if size % step)
    return _lists(size, into, place=f"(k * {step}) % {size}", change="''")


def _make_changes(size: int, into: Path) -> list[str]:
    place = f"(hash(k) % {max(1, size * 37 // 100)}::UBIGINT)::BIGINT"
    return _lists(
        size, into, place=place, change="CASE WHEN k % 3 = 0 THEN 'created' ELSE 'updated' END"
    )


def _lists(size: int, into: Path, *, place: str, change: str) -> list[str]:
    base, files = _duckdb(), []
    edited = "true" if "hash" in place else f"i % {_WORLD} = 3"
    for begin in range(0, size, _LIST):
        files.append(str(into / f"{begin:012}.parquet"))
        query = _between(_LISTED, begin, min(size, begin + _LIST)).replace("EDITED", edited)
        base.execute(
            query.replace("PLACE", place).replace("CHANGE", change).replace("FILE", files[-1])
        )
    return files


def _between(query: str, begin: int, end: int) -> str:
    return query.replace("BEGIN", str(begin)).replace("END", str(end))


def _duckdb() -> duckdb.DuckDBPyConnection:
    base = duckdb.connect(":memory:", config={"memory_limit": "1GiB", "threads": 2})
    base.execute("SET enable_progress_bar = false")
    return base


def _measured(
    outcome: Outcome, label: str, folder: Path, work: Callable[..., Any], *args: Any
) -> Any:
    """Do it in a process of its own; add its figures."""
    with _most_spilled(folder / "scratch") as spilled:
        value, seconds, cpu, peak = _in_process(work, *args)
    figures = {
        "seconds": seconds,
        "seconds of processor time": cpu,
        "peak MiB": peak,
        "spilled MiB": spilled[0] / (1 << 20),
    }
    for name, figure in figures.items():
        outcome.add(f"{label}, {name}", figure)
    print(label, {name: round(figure) for name, figure in figures.items()}, flush=True)
    outcome.require(peak < _ALLOWED, f"{label} held {peak:,.0f} MiB")
    return value


def _in_process(work: Callable[..., Any], *args: Any) -> tuple[Any, float, float, float]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_timed, work, *args).result()


def _timed(work: Callable[..., Any], *args: Any) -> tuple[Any, float, float, float]:
    began = time.monotonic()
    value = work(*args)
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    return value, time.monotonic() - began, cpu, used.ru_maxrss / 1024


@contextmanager
def _most_spilled(folder: Path) -> Iterator[list[int]]:
    most, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(0.25):
            most[0] = max(most[0], _size(folder))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()


def _size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(place, name)).st_blocks * 512
    return total


CAMPAIGN: Final = Campaign(run=run, size=1_000_000, unit="copies")
