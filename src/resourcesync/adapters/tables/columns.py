"""The columns of each kind of file, and how rows become columns and rows again.

Times are timestamps in UTC, so that other programs show them as such; here they are microseconds.
The copy and the task of a row are columns of their own, named ``copy_…`` and ``pending_…``: all of
one are null when there is none.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from resourcesync.adapters.tables.arrow import pa
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
        flat: Makes the values of one row from what it stands for.
        made: Makes the thing from the values of a row.
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
        UnicodeError: A text has half a character, which no Parquet file can hold.
        OverflowError: A number is none of 64 bits.
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
