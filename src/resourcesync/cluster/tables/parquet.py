"""Parquet files: written whole or not at all; a damaged file is named when read.

Only PyArrow is needed, as on the workers. Pages carry checksums, and these are verified.

Times are timestamps in UTC, so that other programs show them as such; in Python they are
microseconds. The copy and the task of a row are columns of their own, named ``copy_…`` and
``pending_…``: all columns of one are null when there is none.
"""

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, NamedTuple, Self

from resourcesync.cluster.tables.arrow import pa, pc, pq
from resourcesync.errors import StateError, StorageError, storage_error
from resourcesync.ports.mirror import Copy, Pending
from resourcesync.ports.tables import DoneRow, ListedRow, WorkRow

COPY: Final = "copy_"
PENDING: Final = "pending_"

_TIME: Final = pa.timestamp("us", tz="UTC")
_TIMES: Final = frozenset({"lastmod", "installed", "due", "first", "first_at"})
_NUMBERS: Final = frozenset({"length", "tries", "generation"})
_OPTIONAL: Final = frozenset({"length", "lastmod"})


def column_type(column: str) -> Any:
    """Return the type of a column by its name."""
    name = column.removeprefix(COPY).removeprefix(PENDING)
    return _TIME if name in _TIMES else pa.int64() if name in _NUMBERS else pa.string()


def _field(name: str, prefix: str = "") -> Any:
    return pa.field(prefix + name, column_type(name), nullable=bool(prefix) or name in _OPTIONAL)


def _fields(row: type[Any], prefix: str = "") -> list[Any]:
    return [_field(name, prefix) for name in row._fields]


COPIES: Final = pa.schema(_fields(Copy))
LISTED: Final = pa.schema(_fields(ListedRow))
WORK: Final = pa.schema([*_fields(ListedRow), *_fields(Copy, COPY)])
DONE: Final = pa.schema([_field("uri"), *_fields(Copy, COPY), *_fields(Pending, PENDING)])

_LISTED_COLUMNS: Final = len(ListedRow._fields)
_COPY_COLUMNS: Final = len(Copy._fields)
_NO_COPY: Final = (None,) * _COPY_COLUMNS
_NO_TASK: Final = (None,) * len(Pending._fields)


class FileKind(NamedTuple):
    """A kind of file.

    Attributes:
        schema: Its columns.
        to_row: Converts an object to the values of one row.
        from_row: Converts the values of a row to an object.
    """

    schema: Any
    to_row: Callable[[Any], Sequence[Any]]
    from_row: Callable[[Sequence[Any]], Any]


def _itself(row: Sequence[Any]) -> Sequence[Any]:
    return row


def _of_work(row: WorkRow) -> Sequence[Any]:
    return (*row.listed, *(row.copy or _NO_COPY))


def _work(values: Sequence[Any]) -> WorkRow:
    listed, copy = values[:_LISTED_COLUMNS], values[_LISTED_COLUMNS:]
    return WorkRow(ListedRow._make(listed), None if copy[0] is None else Copy._make(copy))


def _of_done(row: DoneRow) -> Sequence[Any]:
    return (row.uri, *(row.copy or _NO_COPY), *(row.pending or _NO_TASK))


def _done(values: Sequence[Any]) -> DoneRow:
    copy, task = values[1 : 1 + _COPY_COLUMNS], values[1 + _COPY_COLUMNS :]
    return DoneRow(
        values[0],
        None if copy[0] is None else Copy._make(copy),
        None if task[0] is None else Pending._make(task),
    )


OF_COPIES: Final = FileKind(COPIES, _itself, Copy._make)
OF_LISTED: Final = FileKind(LISTED, _itself, ListedRow._make)
OF_WORK: Final = FileKind(WORK, _of_work, _work)
OF_DONE: Final = FileKind(DONE, _of_done, _done)


def batch_of(kind: FileKind, rows: Iterable[Any]) -> Any:
    """Return rows as one batch of columns.

    Raises:
        UnicodeError: A text has a lone surrogate, which Parquet cannot store.
        OverflowError: A number exceeds 64 bits.
    """
    columns = list(zip(*map(kind.to_row, rows), strict=True))
    return pa.RecordBatch.from_arrays(
        [
            pa.array(values, field.type)
            for values, field in zip(columns or [()] * len(kind.schema), kind.schema, strict=True)
        ],
        schema=kind.schema,
    )


def rows_of(kind: FileKind, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of batches that have all columns of their kind, in its order."""
    return map(kind.from_row, chain.from_iterable(_across(b) for b in batches))


def copies_of(batches: Iterable[Any], columns: Sequence[str]) -> Iterator[Copy]:
    """Yield the copies of batches that have only some columns; other values are empty ones."""
    empty = Copy("", "", 0, "", "", None, "", "", "", "", 0)
    places = [Copy._fields.index(name) for name in columns]
    for batch in batches:
        values = list(empty)
        for row in _across(batch):
            for place, value in zip(places, row, strict=True):
                values[place] = value
            yield Copy._make(values)


def _across(batch: Any) -> Iterator[Sequence[Any]]:
    return zip(*map(_values, batch.columns), strict=True)


def _values(column: Any) -> list[Any]:
    timed = pa.types.is_timestamp(column.type)
    values: list[Any] = (column.cast(pa.int64()) if timed else column).to_pylist()
    return values


GROUP: Final = 1 << 16
"""Rows of a row group: the unit in memory, and the unit that a reader can skip."""

_FEW: Final = frozenset({"fixity", "copy_fixity", "change", "pending_task", "pending_code"})


class TableFileWriter:
    """A file that appears under its name when it is complete, synced; a context manager.

    Args:
        file: The final path.
        schema: Its columns.
    """

    def __init__(self, file: str | Path, schema: Any) -> None:
        self.file, self.rows = Path(file), 0
        self._schema = schema
        self._beside = self.file.with_name(f".{self.file.name}.{token_hex(4)}.tmp")
        self._batches: list[Any] = []
        self._waiting = 0
        with guard_writing(self.file):
            self._stream = self._beside.open("wb")
            self._parquet = pq.ParquetWriter(
                self._stream,
                schema,
                compression="zstd",
                use_dictionary=[name for name in schema.names if name in _FEW],
                write_page_checksum=True,
                write_page_index=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exception: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def write(self, batch: Any) -> None:
        """Add rows; those of a row group are written together."""
        self._batches.append(batch)
        self._waiting += batch.num_rows
        self.rows += batch.num_rows
        if self._waiting >= GROUP:
            with guard_writing(self.file):
                self._flush()

    def close(self) -> None:
        """Complete the file, synced to disk."""
        try:
            with guard_writing(self.file):
                self._flush()
                self._parquet.close()
                self._stream.flush()
                os.fsync(self._stream.fileno())
                self._beside.replace(self.file)
                handle = os.open(self.file.parent, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Remove the temporary file, unless the file is complete."""
        with suppress(OSError, pa.ArrowException):
            self._parquet.close()
        self._parquet.is_open = False  # after a failed close, it would be retried
        with suppress(OSError):
            self._stream.close()
        with suppress(OSError):
            self._beside.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._waiting:
            batches, self._batches, self._waiting = self._batches, [], 0
            table = pa.Table.from_batches(batches).cast(self._schema)
            self._parquet.write_table(table, row_group_size=GROUP)


@contextmanager
def guard_writing(file: Path) -> Iterator[None]:
    """Translate errors of writing a file.

    Raises:
        DiskFullError: No space is left.
        StorageError: Anything else.
    """
    try:
        yield
    except OSError as error:
        raise storage_error(
            error, f"writing {file}", kept="all files that were complete"
        ) from error
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise StorageError(
            f"a row cannot be stored in a table: {str(error)[:300]}",
            evidence=(("file", str(file)), ("kept", "all files that were complete")),
        ) from error


@contextmanager
def guard_reading(file: str | Path) -> Iterator[None]:
    """Translate errors of reading a file.

    Raises:
        StateError: The file is gone, cut, or damaged.
        StorageError: It cannot be read now.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise _damaged(file, "it is not there") from error
    except OSError as error:
        if error.errno is None:  # raised by PyArrow for pages that it cannot decode
            raise _damaged(file, str(error)) from error
        raise StorageError(
            f"{Path(file).name} cannot be read: {error.strerror}",
            evidence=(("file", str(file)),),
            hint="check the disk and the permissions of the file, then try again",
        ) from error
    except (pa.ArrowException, KeyError, UnicodeError) as error:
        raise _damaged(file, str(error)) from error


def _damaged(file: str | Path, why: str) -> StateError:
    return StateError(
        f"the table file {Path(file).name} is damaged: {why[:300]}",
        evidence=(("file", str(file)), ("kept", "the copies themselves")),
        hint="restore the file from a backup, or start the mirror again in another folder",
    )


def check_footers(files: Sequence[str]) -> None:
    """Check the footers of files, which describe their content.

    Raises:
        StateError: One is gone, cut, or damaged; it is named.
        StorageError: One cannot be read.
    """
    for file in files:
        with guard_reading(file):
            pq.ParquetFile(file).close()


def verify_checksums(files: Sequence[str], columns: Sequence[str]) -> None:
    """Read files completely to verify the checksums of their pages, which DuckDB does not.

    Raises:
        StateError: One is gone, cut, or damaged; it is named.
        StorageError: One cannot be read.
    """
    for file in files:
        for _ in read_batches(file, columns, rows=GROUP):
            pass


@contextmanager
def _opened(file: str | Path, columns: Sequence[str]) -> Iterator[Any]:
    with guard_reading(file):
        parquet = pq.ParquetFile(file, page_checksum_verification=True)
    try:
        with guard_reading(file):
            types = {field.name: field.type for field in parquet.schema_arrow}
        for name in columns:
            if types.get(name) != column_type(name):
                raise _damaged(file, f"it has no column {name}, or one of another type")
        yield parquet
    finally:
        parquet.close()


def read_batches(
    file: str | Path, columns: Sequence[str], *, after: str = "", rows: int = 8_192
) -> Iterator[Any]:
    """Yield some columns of a file, a few thousand rows at a time.

    Args:
        file: Its path.
        columns: The columns; all must exist.
        after: Only rows whose ``uri`` is greater; the file must be in this order then.
        rows: The most rows of a batch.

    Raises:
        StateError: The file is gone, cut, damaged, or has other columns.
    """
    asked = list(columns) if not after or "uri" in columns else [*columns, "uri"]
    with _opened(file, asked) as parquet:
        ranges = enumerate(_ranges(parquet))
        groups = [n for n, (_, last) in ranges if not after or last is None or last > after]
        for batch in _rows(file, parquet, groups, asked, rows):
            later = batch.filter(pc.greater(batch.column("uri"), after)) if after else batch
            yield later.select(list(columns))


def _rows(
    file: str | Path, parquet: Any, groups: Sequence[int], columns: Sequence[str], rows: int
) -> Iterator[Any]:
    """Yield the rows of row groups, and check their number against the footer."""
    left = 0
    with guard_reading(file):
        left = sum(parquet.metadata.row_group(number).num_rows for number in groups)
        found = parquet.iter_batches(
            rows, row_groups=list(groups), columns=list(columns), use_threads=False
        )
    while True:
        with guard_reading(file):
            batch = next(found, None)
        if batch is None:
            break
        left -= batch.num_rows
        yield batch
    if left:
        raise _damaged(file, "its number of rows contradicts its footer")


def read_selected(file: str | Path, columns: Sequence[str], uris: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of some URIs, which are in rising order, from a file in this order."""
    with _opened(file, columns) as parquet:
        for number, (first, last) in enumerate(_ranges(parquet)):
            low = bisect_left(uris, first)
            if low == len(uris) or (last is not None and uris[low] > last):
                continue
            here = pa.Table.from_batches(_rows(file, parquet, [number], ["uri"], GROUP))
            mask = pc.is_in(here.column("uri"), value_set=pa.array(uris, pa.string()))
            if pc.any(mask).as_py():
                all_of_it = _rows(file, parquet, [number], columns, GROUP)
                found = pa.Table.from_batches(all_of_it).filter(mask)
                yield from found.select(list(columns)).to_batches()


def _ranges(parquet: Any) -> Iterator[tuple[str, str | None]]:
    """Yield the least and the greatest URI of each row group, as far as the footer has them."""
    column = parquet.schema_arrow.names.index("uri") if "uri" in parquet.schema_arrow.names else -1
    for number in range(parquet.num_row_groups):
        told = None
        if column >= 0:
            told = parquet.metadata.row_group(number).column(column).statistics
        yield (told.min, told.max) if told is not None and told.has_min_max else ("", None)
