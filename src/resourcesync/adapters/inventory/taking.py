"""A table of resources as it is told becomes one of ours: checked, each URI once, in URI order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from resourcesync.adapters.inventory import columns
from resourcesync.adapters.inventory.engine import sql_literal
from resourcesync.adapters.inventory.files import RowGroupWriter, atomic_write
from resourcesync.errors import ConfigurationError
from resourcesync.model.digests import parse_digests
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import from_microseconds

_BATCH: Final = 100_000
_FEW: Final = 100
_SHARE: Final = 100
_MOST: Final = 100_000
_SHOWN: Final = 100

Fault = Callable[[Resource], str]
"""Says why a resource cannot be published; empty when it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppliedTable:
    """A table as others wrote it.

    Attributes:
        files: Its Parquet files.
        columns: Which column says what, by the keys of ``columns.KEYS``; others are found by name.
    """

    files: Sequence[Path]
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCounts:
    """What became of the rows of a table.

    Attributes:
        rows: How many there are now, each with a URI of its own.
        refused: How many cannot be published.
        repeated: How many told of a URI that another row tells of too; of these, the one with the
            newest ``lastmod`` counts.
        faults: The first of those refused: their URIs, and why.
    """

    rows: int
    refused: int = 0
    repeated: int = 0
    faults: tuple[tuple[str, str], ...] = ()


def import_table(
    connection: Any, told: SuppliedTable, before: Path | None, into: Path, *, fault: Fault
) -> ImportCounts:
    """Write a table in our form, in URI order (by code points).

    A row that cannot be published is left out; what the table before says of its URI stays.

    Args:
        connection: What ``opened`` gives.
        told: The table.
        before: The table that was published; ``None`` for none.
        into: The file that is written, whole or not at all.
        fault: Judges the rows that a glance does not clear.

    Raises:
        ConfigurationError: A column is missing, or more than 1 % of the rows, or 100,000, cannot
            be published (code ``many-refused``).
        StorageError: It could not be read or written.
    """
    taking = _TableImport(connection, told, fault)
    taking.find_faults()
    return taking.write(before, into)


class _TableImport:
    def __init__(self, connection: Any, told: SuppliedTable, fault: Fault) -> None:
        self._connection = connection
        self._fault = fault
        self._refused: list[tuple[str, int, str]] = []
        self._faults: list[tuple[str, str]] = []
        names = ", ".join(sql_literal(str(file)) for file in told.files)
        source = (
            f"read_parquet([{names}], filename = '{columns.FILE_COLUMN}', file_row_number = true,"
            " hive_partitioning = false, union_by_name = true)"
        )
        described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()  # noqa: S608
        found = {row[0]: row[1] for row in described}
        for own in (columns.FILE_COLUMN, columns.ROW_COLUMN):
            found.pop(own, None)
        query = columns.normalizing_query(found, told.columns, source)
        connection.execute(f"CREATE TEMP VIEW told AS {query}")
        [(self._count,)] = connection.execute(f"SELECT count(*) FROM {source}").fetchall()  # noqa: S608

    def find_faults(self) -> None:
        """Find the rows that cannot be published."""
        query = (
            "SELECT file, place, uri, lastmod, length, hash, type, fault FROM told WHERE NOT sure"
        )
        most = max(_FEW, min(_MOST, self._count // _SHARE))
        for batch in self._connection.sql(query).to_arrow_reader(_BATCH):
            for row in batch.to_pylist():
                fault = row["fault"] or self._fault_of(row)
                if fault:
                    self._refuse(row, fault)
            if len(self._refused) > most:
                raise self._too_many(most)

    def write(self, before: Path | None, into: Path) -> ImportCounts:
        """Write the others, sorted, each URI once."""
        reader = self._connection.sql(self._ordered(before)).to_arrow_reader(_BATCH)
        schema = reader.schema.remove(reader.schema.get_field_index("kept"))
        rows, last, repeated = 0, None, 0
        with atomic_write(into) as stream:
            writer = RowGroupWriter(stream, schema)
            for batch in reader:
                if batch.num_rows:
                    once, more = _deduplicate(batch, last)
                    last = batch.column("uri")[-1]
                    writer.add(once.select(schema.names))
                    rows, repeated = rows + once.num_rows, repeated + more
            writer.close()
        return ImportCounts(
            rows=rows,
            refused=len(self._refused),
            repeated=repeated,
            faults=tuple(self._faults),
        )

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

    def _refuse(self, row: Mapping[str, Any], fault: str) -> None:
        self._refused.append((row["file"], row["place"], row["uri"]))
        if len(self._faults) < _SHOWN:
            self._faults.append((row["uri"], fault))

    def _too_many(self, most: int) -> ConfigurationError:
        uri, fault = self._faults[0]
        return ConfigurationError(
            f"more than {most:,} of {self._count:,} rows cannot be published",
            evidence=(
                ("first", f"{uri[:200]}: {fault}"),
                ("kept", "what was published before"),
            ),
            hint="see that the right columns are named: --with uri=COLUMN",
            code="many-refused",
        )

    def _ordered(self, before: Path | None) -> str:
        wanted = "uri, lastmod, length, hash, type"
        query = f"SELECT {wanted}, false AS kept FROM told"  # noqa: S608 - our own names
        if self._refused:
            files, places, uris = zip(*self._refused, strict=True)
            self._connection.register("refused", _table(files, places, uris))
            query += " ANTI JOIN refused USING (file, place)"
            if before is not None:
                old = f"read_parquet({sql_literal(str(before))})"
                query += (
                    f" UNION ALL SELECT {wanted}, true AS kept FROM {old}"  # noqa: S608 - quoted
                    " WHERE uri IN (SELECT uri FROM refused)"
                )
        # All columns: of several rows of one URI, the same one comes first in every run.
        return f"{query} ORDER BY uri, kept, lastmod DESC NULLS LAST, hash, length, type"


def _table(files: Sequence[str], places: Sequence[int], uris: Sequence[str]) -> Any:
    import pyarrow  # noqa: PLC0415, ICN001 - an extra, and seldom needed

    return pyarrow.table({"file": files, "place": places, "uri": uris})


def _deduplicate(batch: Any, last: Any) -> tuple[Any, int]:
    """Return a batch without the rows whose URI the row before has; and how many were told."""
    import pyarrow  # noqa: PLC0415, ICN001 - an extra, and seldom needed
    from pyarrow import compute  # noqa: PLC0415 - the same

    uris = batch.column("uri")
    first = last is None or last.as_py() != uris[0].as_py()
    differs = compute.not_equal(uris.slice(1), uris.slice(0, len(uris) - 1))
    mask = pyarrow.concat_arrays([pyarrow.array([first]), differs])
    if compute.all(mask).as_py():
        return batch, 0
    told_again = compute.and_not(compute.invert(mask), batch.column("kept"))
    return batch.filter(mask), compute.sum(told_again).as_py() or 0
