"""``ParquetTables``: the tables of a mirror as Parquet files, joined by DuckDB."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from resourcesync.cluster.tables import parquet
from resourcesync.cluster.tables.duckdb_session import open_session
from resourcesync.cluster.tables.parquet import (
    OF_COPIES,
    OF_DONE,
    OF_LISTED,
    OF_WORK,
    FileKind,
    batch_of,
    copies_of,
    rows_of,
)
from resourcesync.cluster.tables.table_join import find_listed, join
from resourcesync.cluster.tables.table_merge import Cutter, latest_rows, merge
from resourcesync.ports.mirror import Copy
from resourcesync.ports.tables import DoneRow, JoinResult, ListedRow, TablePart, WorkRow

_AT_ONCE: Final = 8_192


class ParquetTables:
    """Tables in Parquet files (``ports.tables.Tables``).

    Writing and reading needs PyArrow alone; ``join`` and ``merge`` also need DuckDB.

    Args:
        folder: The folder that joins spill to; emptied afterwards.
        memory: Bytes that a join may use; by default 640 MiB. It spills the rest to the folder.
        threads: Number of threads of a join; by default limited by processors and memory.

    Raises:
        ConfigurationError: The extra ``tables`` is not installed.
    """

    def __init__(
        self, folder: Path, *, memory: int | None = None, threads: int | None = None
    ) -> None:
        self._folder, self._memory, self._threads = folder, memory, threads

    def write_listed(self, file: str, rows: Iterable[ListedRow]) -> int:
        """Write a file of listed rows; return their number."""
        return _write(file, OF_LISTED, rows)

    def read_listed(self, file: str) -> Iterator[ListedRow]:
        """Yield the rows of such a file, as they were written."""
        return _read(file, OF_LISTED)

    def find_listed(self, files: Sequence[str], chosen: Sequence[str]) -> Iterator[ListedRow]:
        """Yield the rows of files whose URIs other files have, too, in rising URI order.

        Raises:
            StateError: A file is damaged; it is named.
            StorageError: There is too little memory or disk space.
        """
        both = [*files, *chosen]
        with open_session(self._folder, both, self._memory, self._threads) as work:
            yield from rows_of(OF_LISTED, find_listed(work, files, chosen))

    def write_work(self, file: str, rows: Iterable[WorkRow]) -> int:
        """Write a slice; return the number of its rows."""
        return _write(file, OF_WORK, rows)

    def read_work(self, file: str) -> Iterator[WorkRow]:
        """Yield the rows of a slice."""
        return _read(file, OF_WORK)

    def write_done(self, file: str, rows: Iterable[DoneRow]) -> int:
        """Write the results of the rows of a slice; return their number."""
        return _write(file, OF_DONE, rows)

    def read_done(self, file: str) -> Iterator[DoneRow]:
        """Yield the rows of such a file."""
        return _read(file, OF_DONE)

    def read_copies(
        self, files: Sequence[str], after: str = "", columns: Sequence[str] = ()
    ) -> Iterator[Copy]:
        """Yield copies in rising URI order, those after a URI."""
        wanted = list(columns or Copy._fields)
        made = partial(copies_of, columns=wanted) if columns else partial(rows_of, OF_COPIES)
        for file in files:
            yield from made(parquet.read_batches(file, wanted, after=after))

    def find(self, files: Sequence[str], uris: Sequence[str]) -> list[Copy]:
        """Return the copies of some URIs (a few thousand at most), in URI order."""
        wanted = sorted(set(uris))
        found = (parquet.read_selected(file, Copy._fields, wanted) for file in files)
        return [copy for batches in found for copy in rows_of(OF_COPIES, batches)]

    def join(
        self,
        listed: Sequence[str],
        changed: Sequence[str],
        copies: Sequence[str],
        resting: Sequence[str],
        *,
        into: str,
        rows: int,
    ) -> JoinResult:
        """Compare the listed resources with the copies.

        Raises:
            StateError: A file is damaged; it is named.
            StorageError: There is too little memory or disk space.
        """
        parquet.verify_checksums(copies, Copy._fields)
        told = [*listed, *changed]
        with open_session(
            self._folder, [*told, *copies, *resting], self._memory, self._threads
        ) as work:
            return join(work, told, copies, resting, into=Path(into), rows=rows)

    def merge(
        self,
        parts: Sequence[tuple[TablePart, str]],
        done: Sequence[str],
        *,
        into: str,
        stem: str,
        rows: int,
    ) -> list[tuple[TablePart, str]]:
        """Make the next table: the last one, with its rows replaced by those in ``done``.

        Raises:
            StateError: A file is damaged; it is named.
            StorageError: There is too little memory or disk space.
        """
        cut = Cutter(Path(into), stem, rows)
        with open_session(self._folder, done, self._memory, self._threads) as work:
            try:
                return merge(parts, latest_rows(work, done), cut)
            finally:
                cut.abandon()


def copies_to_parts(
    copies: Iterable[Copy], *, into: Path, stem: str, rows: int
) -> list[tuple[TablePart, str]]:
    """Write copies, which come in rising URI order, as the parts of a table.

    Args:
        copies: The copies; only some thousands are in memory at a time.
        into: The folder of the parts.
        stem: The prefix of their names.
        rows: Approximate number of rows of a part.

    Returns:
        The parts, in order, and their paths.

    Raises:
        StorageError: A part could not be written.
    """
    cut = Cutter(into, stem, rows)
    try:
        for batch in _batches(into / stem, OF_COPIES, copies):
            cut.write(batch)
        return cut.end()
    finally:
        cut.abandon()


def _write(file: str, kind: FileKind, rows: Iterable[Any]) -> int:
    with parquet.TableFileWriter(file, kind.schema) as writer:
        for batch in _batches(Path(file), kind, rows):
            writer.write(batch)
    return writer.rows


def _batches(file: Path, kind: FileKind, rows: Iterable[Any]) -> Iterator[Any]:
    rest = iter(rows)
    while some := list(islice(rest, _AT_ONCE)):
        with parquet.guard_writing(file):
            batch = batch_of(kind, some)
        yield batch


def _read(file: str, kind: FileKind) -> Iterator[Any]:
    return rows_of(kind, parquet.read_batches(file, kind.schema.names))
