"""The import of a table: in URI order, each URI once, and compared with the table before.

Both tables pass by in windows of the same URIs, some ten thousand rows at a time: memory does not
grow with them. Only rows that differ are checked: the others were checked when they were new.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import reduce
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from resourcesync.adapters.inventory.duckdb_engine import open_duckdb, sql_literal
from resourcesync.adapters.inventory.table_files import (
    RowGroupWriter,
    atomic_write,
    read_batches,
)
from resourcesync.adapters.inventory.table_queries import (
    DIFFERENCES,
    FIELDS,
    UNSURE,
    normalizing_query,
)
from resourcesync.errors import ConfigurationError, Remedy, StorageError
from resourcesync.model.digests import parse_digests
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import from_microseconds

_READ: Final = 20_000
_FEW: Final = 100
_SHARE: Final = 100
_MOST: Final = 100_000
_SHOWN: Final = 100
_LITTLE: Final = "100MB"
"""Memory for queries of one window, apart from sorting, which may use all that it has."""
_ORDER: Final = "uri, fault <> '', lastmod DESC NULLS LAST, hash, length, type"
"""By all columns: of several rows of one URI, the same one counts in every run."""

Fault = Callable[[Resource], str]
"""Returns why a resource cannot be published; empty if it can."""


class SuppliedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table from another system.

    Attributes:
        files: Its Parquet files.
        columns: The column of each field, by the keys of `COLUMN_NAMES`; others are found by name.
    """

    files: Sequence[Path]
    columns: Mapping[str, str]


class Differences(NamedTuple):
    """Numbers of resources that differ. Touched ones have other metadata for the same bytes."""

    created: int = 0
    updated: int = 0
    deleted: int = 0
    touched: int = 0


class ImportCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of an import.

    Attributes:
        rows: Number of rows now, each with a URI of its own.
        refused: Number of rows that cannot be published.
        repeated: Number of further rows of the same URI; the one with the newest ``lastmod``
            counts.
        faults: The first refused rows: their URIs, and reasons.
        differences: Number of rows that differ from those of the table before.
    """

    rows: int
    refused: int = 0
    repeated: int = 0
    faults: tuple[tuple[str, str], ...] = ()
    differences: Differences = Differences()


class ImportFiles(NamedTuple):
    """The files of an import.

    Attributes:
        before: The last published table; ``None`` for none: then nothing is a change.
        into: The file of the table to write, whole or not at all.
        changes: The file of the changes; not written if there are none.
        spill: The folder for data that does not fit into memory.
    """

    before: Path | None
    into: Path
    changes: Path
    spill: Path


def import_table(
    told: SuppliedTable, files: ImportFiles, *, memory: str, fault: Fault
) -> ImportCounts:
    """Write a table in our schema, in URI order (by code points), and what changed, in this order.

    A row that cannot be published is left out; the row of its URI in the table before stays. A
    resource is updated if its hash or its length differs, or its ``lastmod`` if there is no hash.
    Of a deleted one only the URI is written.

    Args:
        told: The table to import.
        files: The files to read and write.
        memory: The memory limit of sorting, such as ``1GB``.
        fault: Checks the rows that the query does not clear.

    Raises:
        ConfigurationError: A column is missing, or more than 1 % of the rows, or 100,000, cannot
            be published (code ``many-refused``).
        StorageError: The table could not be read or written.
    """
    with open_duckdb(files.spill, memory) as sorting:
        other = files.spill / "windows"  # the temporary files of two have the same names
        other.mkdir(parents=True, exist_ok=True)
        with open_duckdb(other, _LITTLE) as small:
            return _TableImport(small, _SuppliedRows(sorting, told), fault).write(files)


class _SuppliedRows:
    """The rows of the supplied table, in URI order, each URI once.

    Attributes:
        count: Number of its rows.
        repeated: Number of rows that were left out so far.
    """

    def __init__(self, connection: Any, told: SuppliedTable) -> None:
        self._connection = connection
        self.repeated = 0
        names = ", ".join(sql_literal(str(file)) for file in told.files)
        source = f"read_parquet([{names}], hive_partitioning = false, union_by_name = true)"
        described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()  # noqa: S608
        query = normalizing_query({row[0]: row[1] for row in described}, told.columns, source)
        connection.execute(f"CREATE TEMP VIEW told AS {query}")
        [(self.count,)] = connection.execute(f"SELECT count(*) FROM {source}").fetchall()  # noqa: S608

    def batches(self) -> Iterator[Any]:
        """Yield the rows; a table that is in order is not sorted.

        Raises:
            StorageError: The table was written meanwhile.
        """
        self._connection.execute("SET preserve_insertion_order = true")
        query = "SELECT * FROM told"
        if not self._is_in_order():
            self._connection.execute("SET preserve_insertion_order = false")
            query += f" ORDER BY {_ORDER}"
        last = None
        for batch in self._read(query):
            uris = batch.column("uri")
            once = _differs_from_last(uris, last)
            self.repeated += len(uris) - once.true_count
            rows = batch if once.true_count == len(uris) else batch.filter(once)
            if rows.num_rows:
                if not _is_rising(rows.column("uri"), last):
                    raise StorageError("the table was written while it was read")
                yield rows
            last = uris[-1].as_py()

    def _read(self, query: str) -> Iterator[Any]:
        reader = self._connection.sql(query).to_arrow_reader(_READ)
        return (batch for batch in reader if batch.num_rows)

    def _is_in_order(self) -> bool:
        """True if each URI is greater than the one before."""
        last = None
        for batch in self._read("SELECT uri FROM told"):
            uris = batch.column("uri")
            if not _is_rising(uris, last):
                return False
            last = uris[-1].as_py()
        return True


class _TableImport:
    """One import.

    Args:
        connection: A connection of its own for small queries.
        supplied: The rows of the new table.
        fault: The check of a resource.
    """

    def __init__(self, connection: Any, supplied: _SuppliedRows, fault: Fault) -> None:
        self._connection = connection
        self._supplied = supplied
        self._fault = fault
        self._most = max(_FEW, min(_MOST, supplied.count // _SHARE))
        self._rows = self._refused = 0
        self._faults: list[tuple[str, str]] = []
        self._kinds = dict.fromkeys(Differences._fields, 0)

    def write(self, files: ImportFiles) -> ImportCounts:
        """Write the table and the changes."""
        old = iter(()) if files.before is None else read_batches(files.before, FIELDS)
        with ExitStack() as stack:

            def writer(path: Path, schema: Any) -> RowGroupWriter:
                stream = stack.enter_context(atomic_write(path))
                return stack.enter_context(RowGroupWriter(stream, schema))

            table, changed = writer(files.into, _schema()), None
            for earlier, present in _windows(old, self._supplied.batches()):
                rows, removed, added = self._accept(earlier, present)
                self._rows += rows.num_rows
                table.add(rows)
                if files.before is None or not (removed.num_rows or added.num_rows):
                    continue
                found = self._compare(removed, added)
                if found.num_rows:
                    changed = changed or writer(files.changes, found.schema)
                    changed.add(found)
        return ImportCounts(
            rows=self._rows,
            refused=self._refused,
            repeated=self._supplied.repeated,
            faults=tuple(self._faults),
            differences=Differences(**self._kinds),
        )

    def _accept(self, earlier: Any, present: Any) -> tuple[Any, Any, Any]:
        """Return the rows of a window that are published, and those that differ: old and new."""
        import pyarrow  # noqa: PLC0415, ICN001 - an extra, and seldom needed
        from pyarrow import compute  # noqa: PLC0415 - the same

        removed, added = _differing(earlier, present)
        refused = self._find_refused(added)
        rows = present.select(FIELDS)
        if not refused:
            return rows, removed, added.select(FIELDS)
        uris = pyarrow.array(refused)

        def has_fault(table: Any) -> Any:
            return compute.is_in(table.column("uri"), value_set=uris)

        retained = removed.filter(has_fault(removed))
        accepted = rows.filter(compute.invert(has_fault(rows)))
        both = pyarrow.Table.from_batches([accepted, retained], _schema()).sort_by("uri")
        rows = _one_batch(both)
        removed, added = (
            table.filter(compute.invert(has_fault(table))) for table in (removed, added)
        )
        return rows, removed, added.select(FIELDS)

    def _find_refused(self, rows: Any) -> list[str]:
        """Return the URIs of rows that cannot be published.

        Raises:
            ConfigurationError: There are too many.
        """
        if not rows.num_rows:
            return []
        refused = []
        for row in self._query(UNSURE, candidates=rows).to_pylist():
            fault = row["fault"] or self._fault_of(row)
            if fault:
                refused.append(row["uri"])
                if len(self._faults) < _SHOWN:
                    self._faults.append((row["uri"], fault))
        self._refused += len(refused)
        if self._refused > self._most:
            raise self._too_many_error()
        return refused

    def _compare(self, removed: Any, added: Any) -> Any:
        """Count the differences of a window; return the changes."""
        from pyarrow import compute  # noqa: PLC0415 - an extra, and seldom needed

        found = _one_batch(self._query(DIFFERENCES, earlier=removed, candidates=added))
        kinds = found.column("kind")
        for item in compute.value_counts(kinds).to_pylist():
            self._kinds[item["values"]] += item["counts"]
        return found.filter(compute.not_equal(kinds, "touched"))

    def _query(self, query: str, **tables: Any) -> Any:
        import pyarrow  # noqa: PLC0415, ICN001 - an extra, and seldom needed

        for name, batch in tables.items():
            self._connection.register(name, pyarrow.Table.from_batches([batch]))
        return self._connection.sql(query).to_arrow_table()

    def _fault_of(self, row: Mapping[str, Any]) -> str:
        moment = row["lastmod"]
        return self._fault(
            Resource(
                uri=row["uri"],
                lastmod=None if moment is None else from_microseconds(moment),
                length=row["length"],
                digests=parse_digests(row["hash"]),
                media_type=row["type"],
            )
        )

    def _too_many_error(self) -> ConfigurationError:
        uri, fault = self._faults[0]
        return ConfigurationError(
            f"more than {self._most:,} of {self._supplied.count:,} rows cannot be published",
            evidence=(("first", f"{uri[:200]}: {fault}"), ("kept", "what was published before")),
            hint="check the names of the columns",
            remedy=Remedy("set-option", value="uri=COLUMN"),
            code="many-refused",
        )


def _schema() -> Any:
    import pyarrow  # noqa: PLC0415, ICN001 - an extra, and seldom needed

    text, number = pyarrow.string(), pyarrow.int64()
    return pyarrow.schema(list(zip(FIELDS, (text, number, number, text, text), strict=True)))


def _windows(old: Iterator[Any], new: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the rows of two tables in URI order, those of the same URIs together."""
    import pyarrow  # noqa: PLC0415, ICN001 - an extra, and seldom needed

    fields = _schema()
    nothing = pyarrow.RecordBatch.from_pylist([], fields.append(pyarrow.field("fault", "string")))
    before, after = next(old, None), next(new, None)
    while before is not None or after is not None:
        lasts = [batch.column("uri")[-1].as_py() for batch in (before, after) if batch is not None]
        end = min(lasts)
        first, second = _rows_to(before, end), _rows_to(after, end)
        yield (
            nothing.select(FIELDS) if before is None else before.slice(0, first),
            nothing if after is None else after.slice(0, second),
        )
        before, after = _rest(before, first, old), _rest(after, second, new)


def _rows_to(batch: Any, uri: str) -> int:
    """Return the number of rows up to a URI."""
    if batch is None:
        return 0
    uris = batch.column("uri")
    return bisect_right(range(len(uris)), uri, key=lambda row: uris[row].as_py())


def _rest(batch: Any, rows: int, stream: Iterator[Any]) -> Any:
    if batch is None or rows < batch.num_rows:
        return batch if batch is None else batch.slice(rows)
    return next(stream, None)


def _differing(old: Any, new: Any) -> tuple[Any, Any]:
    """Return the rows of two tables that the other has not, or that have a fault."""
    from pyarrow import compute  # noqa: PLC0415 - an extra, and seldom needed

    if not old.num_rows or not new.num_rows:
        return old, new
    uris, others = old.column("uri"), new.column("uri")
    if uris.equals(others):
        return _unequal_rows(old, new)
    in_new = compute.is_in(uris, value_set=others)
    in_old = compute.is_in(others, value_set=uris)
    removed, added = _unequal_rows(old.filter(in_new), new.filter(in_old))
    gone, created = old.filter(compute.invert(in_new)), new.filter(compute.invert(in_old))
    return _joined(removed, gone), _joined(added, created)


def _unequal_rows(left: Any, right: Any) -> tuple[Any, Any]:
    """Return the rows of the same URIs that differ, or that have a fault."""
    from pyarrow import compute  # noqa: PLC0415 - an extra, and seldom needed

    masks = [_unequal(left.column(name), right.column(name)) for name in FIELDS[1:]]
    differs = reduce(compute.or_, masks, compute.not_equal(right.column("fault"), ""))
    return left.filter(differs), right.filter(differs)


def _unequal(old: Any, new: Any) -> Any:
    """Return where two columns differ; null equals null."""
    from pyarrow import compute  # noqa: PLC0415 - an extra, and seldom needed

    differs = compute.not_equal(old, new)
    if differs.null_count:
        differs = differs.fill_null(False)  # noqa: FBT003 - the function of pyarrow
        differs = compute.or_(differs, compute.xor(old.is_null(), new.is_null()))
    return differs


def _joined(*batches: Any) -> Any:
    import pyarrow  # noqa: PLC0415, ICN001 - an extra, and seldom needed

    return _one_batch(pyarrow.Table.from_batches(batches))


def _one_batch(table: Any) -> Any:
    """Return a small table as one batch."""
    import pyarrow  # noqa: PLC0415, ICN001 - an extra, and seldom needed

    found = table.combine_chunks().to_batches()
    return found[0] if found else pyarrow.RecordBatch.from_pylist([], table.schema)


def _differs_from_last(uris: Any, last: str | None) -> Any:
    """Return where a text differs from the one before."""
    import pyarrow  # noqa: PLC0415, ICN001 - an extra, and seldom needed
    from pyarrow import compute  # noqa: PLC0415 - the same

    differs = compute.not_equal(uris.slice(1), uris.slice(0, len(uris) - 1))
    return pyarrow.concat_arrays([pyarrow.array([uris[0].as_py() != last]), differs])


def _is_rising(uris: Any, last: str | None) -> bool:
    """True if each text is greater than the one before."""
    from pyarrow import compute  # noqa: PLC0415 - an extra, and seldom needed

    if last is not None and uris[0].as_py() <= last:
        return False
    rising = compute.greater(uris.slice(1), uris.slice(0, len(uris) - 1))
    return bool(compute.all(rising, min_count=0).as_py())
