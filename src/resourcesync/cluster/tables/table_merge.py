"""The next table of copies: only the parts of the last one that changes fall into are rewritten.

A part has the URIs from its first one up to the first one of the next part. The changes come in
URI order, each URI once, and so do the rows of a part: two streams are merged, some ten thousand
rows at a time, and cut into parts of similar size.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from resourcesync.cluster.tables.arrow import pa, pc
from resourcesync.cluster.tables.duckdb_session import DuckDbSession, scan_query
from resourcesync.cluster.tables.parquet import (
    COPIES,
    COPY,
    DONE,
    GROUP,
    TableFileWriter,
    read_batches,
)
from resourcesync.ports.mirror import Copy
from resourcesync.ports.tables import TablePart

PartFile = tuple[TablePart, str]

_FIELDS: Final = ("uri", *(f"{COPY}{name}" for name in Copy._fields))
_COLUMNS: Final = ", ".join(_FIELDS)

_TWICE: Final = """
CREATE TEMP TABLE twice AS SELECT hash(uri) AS h FROM done GROUP BY h HAVING count(*) > 1
"""
_LAST: Final = """
CREATE TEMP TABLE last AS
SELECT max(n) AS n FROM done SEMI JOIN twice ON hash(done.uri) = twice.h GROUP BY uri
"""
_ONCE: Final = f"SELECT {_COLUMNS} FROM done ORDER BY uri"  # noqa: S608 - our own names
_LATEST: Final = f"""
SELECT {_COLUMNS} FROM done ANTI JOIN twice ON hash(done.uri) = twice.h
UNION ALL
SELECT {_COLUMNS} FROM done SEMI JOIN last ON done.n = last.n
ORDER BY uri
"""  # noqa: S608 - the same


def latest_rows(work: DuckDbSession, done: Sequence[str]) -> Iterator[Any]:
    """Yield the last result of each URI, in URI order, with the columns of its copy."""
    work.run(f"CREATE TEMP VIEW done AS {scan_query(done, DONE)}")
    work.run(_TWICE)
    if not work.value("SELECT count(*) FROM twice"):
        return work.batches(_ONCE)
    work.run(_LAST)
    return work.batches(_LATEST)


def merge(parts: Sequence[PartFile], done: Iterator[Any], cut: "Cutter") -> list[PartFile]:
    """Return the next table.

    Args:
        parts: The parts of the last table.
        done: The results, as ``latest_rows`` yields them.
        cut: The writer of new parts.
    """
    table: list[PartFile] = []
    changes = _BatchCursor(done)
    if not parts:
        for batch in changes.below(None):
            cut.write(_copies_in(batch))
        return cut.end()
    for number, (part, file) in enumerate(parts):
        bound, after = (
            parts[place][0].first if place < len(parts) else None
            for place in (number + 1, number + 2)
        )
        is_small = part.rows < cut.rows // 2
        if changes.has(bound):
            for batch in _merged(_rows(file), changes.below(bound)):
                cut.write(batch)
        elif is_small and (cut.has_begun or (bound is not None and changes.has(after))):
            for batch in _rows(file):
                cut.write(batch)
        else:
            table += [*cut.end(), (part, file)]
    return [*table, *cut.end()]


def _rows(file: str) -> Iterator[Any]:
    return read_batches(file, Copy._fields, rows=GROUP)


class _BatchCursor:
    """A stream of batches in URI order that can be read up to a URI."""

    def __init__(self, stream: Iterator[Any]) -> None:
        self._stream = stream
        self._batch = self._next()

    def _next(self) -> Any:
        return next((batch for batch in self._stream if batch.num_rows), None)

    def has(self, bound: str | None) -> bool:
        """True if the next row, if any, is below a URI; ``None`` is above all."""
        if self._batch is None:
            return False
        return bound is None or self._batch.column(0)[0].as_py() < bound

    def below(self, bound: str | None) -> Iterator[Any]:
        """Yield the rows below a URI."""
        while self.has(bound):
            batch = self._batch
            end = batch.num_rows if bound is None else _place(batch, bound, bisect_left)
            self._batch = batch.slice(end) if end < batch.num_rows else self._next()
            yield batch.slice(0, end)


def _place(batch: Any, uri: str, bisect: Any) -> int:
    uris = batch.column(0)
    place: int = bisect(range(len(uris)), uri, key=lambda row: uris[row].as_py())
    return place


def _merged(old: Iterator[Any], new: Iterator[Any]) -> Iterator[Any]:
    """Yield copies in URI order: new results in place of old rows of their URIs."""
    before, after = next(old, None), next(new, None)
    while before is not None and after is not None:
        end = min(before.column(0)[-1].as_py(), after.column(0)[-1].as_py())
        first, second = (_place(batch, end, bisect_right) for batch in (before, after))
        yield _merge_batches(before.slice(0, first), after.slice(0, second))
        before = before.slice(first) if first < before.num_rows else next(old, None)
        after = after.slice(second) if second < after.num_rows else next(new, None)
    while before is not None:
        yield before
        before = next(old, None)
    while after is not None:
        yield _copies_in(after)
        after = next(new, None)


def _merge_batches(old: Any, new: Any) -> Any:
    if not new.num_rows:
        return old
    left = old.filter(pc.invert(pc.is_in(old.column("uri"), value_set=new.column("uri"))))
    both = pa.Table.from_batches([left.cast(COPIES), _copies_in(new)])
    return both.sort_by("uri").combine_chunks().to_batches()[0] if both.num_rows else left


def _copies_in(done: Any) -> Any:
    """Return the copies among the results."""
    rows = done.filter(pc.is_valid(done.column(f"{COPY}uri")))
    return pa.RecordBatch.from_arrays(rows.columns[1:], names=Copy._fields).cast(COPIES)


class Cutter:
    """A writer of copies, in URI order, as parts of similar size.

    Between two calls of ``end``, each part has at least half of ``rows``, if there are so many, and
    at most one and a half times as many.

    Args:
        into: Their folder.
        stem: The prefix of their names.
        rows: Approximate number of rows of a part.
    """

    def __init__(self, into: Path, stem: str, rows: int) -> None:
        self.rows = max(2, rows)
        self._into, self._stem = into, stem
        self._number = 0
        self._open: list[_PartWriter] = []
        self._made: list[PartFile] = []

    @property
    def has_begun(self) -> bool:
        """True if rows were written since the last ``end``."""
        return bool(self._open)

    def write(self, batch: Any) -> None:
        """Append rows."""
        while batch.num_rows:
            if not self._open or self._open[-1].rows == self.rows:
                file = self._into / f"{self._stem}-{self._number:06}.parquet"
                self._number += 1
                self._open.append(_PartWriter(file))
            growing = self._open[-1]
            taken = batch.slice(0, self.rows - growing.rows)
            growing.write(taken)
            batch = batch.slice(taken.num_rows)
            if len(self._open) > 1 and growing.rows >= self.rows // 2:
                self._made.append(self._open.pop(0).end())

    def end(self) -> list[PartFile]:
        """Finish the current parts; return them, in order."""
        if len(self._open) > 1:  # a small rest goes to the part before
            last, little = self._open
            _, file = little.end()
            for batch in _rows(file):
                last.write(batch)
            Path(file).unlink()
            self._open.pop()
        self._made += [growing.end() for growing in self._open]
        made, self._made, self._open = self._made, [], []
        return made

    def abandon(self) -> None:
        """Remove the unfinished parts."""
        for growing in self._open:
            growing.abandon()
        self._open = []


class _PartWriter:
    """A part in progress."""

    def __init__(self, file: Path) -> None:
        self._writer = TableFileWriter(file, COPIES)
        self._first = self._last = ""

    @property
    def rows(self) -> int:
        return self._writer.rows

    def write(self, batch: Any) -> None:
        if not batch.num_rows:
            return
        uris = batch.column(0)
        if not self.rows:
            self._first = uris[0].as_py()
        self._last = uris[-1].as_py()
        self._writer.write(batch)

    def end(self) -> PartFile:
        self._writer.close()
        file = self._writer.file
        size = file.stat().st_size
        return TablePart(file.name, self.rows, self._first, self._last, size), str(file)

    def abandon(self) -> None:
        self._writer.abandon()
