"""The queries over a table of resources: import, and comparison with the table before.

An import maps columns to fields, checks the rows, and stores each URI once, in URI order. A
comparison is one join, out of core.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from resourcesync.adapters.inventory.duckdb_engine import sql_identifier, sql_literal
from resourcesync.adapters.inventory.table_files import RowGroupWriter, atomic_write
from resourcesync.errors import ConfigurationError, Remedy
from resourcesync.model.digests import parse_digests
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import from_microseconds

COLUMN_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "uri": ("uri", "loc", "url"),
    "lastmod": ("lastmod",),
    "length": ("length",),
    "hash": ("hash", "digests"),
    "sha256": ("sha256",),
    "md5": ("md5",),
    "type": ("type", "media_type"),
}
"""The fields of a resource, and the column names that are recognised for each."""
FILE_COLUMN: Final = "resourcesync file"
ROW_COLUMN: Final = "file_row_number"
"""The column with the row number that DuckDB adds. Archives have columns named ``filename``."""

_HOST: Final = r"(?:[a-z0-9-]{1,30}\.){0,6}[a-z][a-z0-9-]{0,30}"
_PATH: Final = r"/(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[2-9A-Fa-f][0-9A-Fa-f])*"
_URI: Final = rf"https?://{_HOST}(?::[1-9][0-9]{{0,3}})?{_PATH}"
_HASH: Final = r"(?:|sha-256:[0-9a-f]{64}|md5:[0-9a-f]{32}|sha-1:[0-9a-f]{40})"
_TYPE: Final = r"[!-~]{0,200}"
_EARLIEST: Final = -62_135_596_800_000_000
_LATEST: Final = 253_402_300_799_999_999


def normalizing_query(found: Mapping[str, str], given: Mapping[str, str], source: str) -> str:
    """Return the query that reads a table in our schema.

    Its columns are ``file``, ``place``, ``uri``, ``lastmod`` (microseconds), ``length``, ``hash``,
    ``type``, ``fault`` (a sentence for a certain fault, else empty) and ``sure`` (whether the row
    can be published without a further check).

    Args:
        found: The table's columns and their types.
        given: The column of each field, as the operator chose.
        source: The table to read, as SQL.

    Raises:
        ConfigurationError: A column is missing, or its type does not fit its field.
    """
    chosen = _select_columns(found, given)
    moment, wrong_moment = _moment(chosen.get("lastmod"), found)
    length, wrong_length = _length(chosen.get("length"))
    media = (
        f"coalesce(CAST({sql_identifier(chosen['type'])} AS VARCHAR), '')"
        if "type" in chosen
        else "''"
    )
    uri = f"coalesce(CAST({sql_identifier(chosen['uri'])} AS VARCHAR), '')"
    return f"""
    SELECT *, fault = '' AND length(uri) <= 2000 AND NOT contains(uri, '/.')
        AND NOT contains(lower(uri), '%2e') AND regexp_full_match(uri, {_quoted(_URI)})
        AND regexp_full_match(hash, '{_HASH}') AND regexp_full_match(type, '{_TYPE}') AS sure
    FROM (
        SELECT "{FILE_COLUMN}" AS file, {ROW_COLUMN} AS place, {uri} AS uri, {moment} AS lastmod,
            {length} AS length, {_hash(chosen, found)} AS hash, {media} AS type,
            CASE WHEN {wrong_moment} THEN 'its lastmod is no time'
                WHEN {wrong_length} THEN 'its length is none' ELSE '' END AS fault
        FROM {source}
    )"""  # noqa: S608 - names and texts are quoted


def _select_columns(found: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    chosen = {}
    for key, usual in COLUMN_NAMES.items():
        column = given.get(key) or next((name for name in usual if name in found), None)
        if column is not None and column not in found:
            raise ConfigurationError(
                f"the table has no column {column!r:.100}",
                evidence=(("columns", ", ".join(found)[:500]),),
                hint=f"name the column by the option {key}",
                remedy=Remedy("set-option", value=f"{key}=COLUMN"),
            )
        if column is not None:
            chosen[key] = column
    if "uri" not in chosen:
        raise ConfigurationError(
            "no column of URIs is given",
            evidence=(("columns", ", ".join(found)[:500]),),
            hint="name the column by the option uri",
            remedy=Remedy("set-option", value="uri=COLUMN"),
        )
    return chosen


def _moment(column: str | None, found: Mapping[str, str]) -> tuple[str, str]:
    """Return SQL for a column's microseconds, and for the condition that it is no time."""
    if column is None:
        return "CAST(NULL AS BIGINT)", "false"
    kind, name = found[column], sql_identifier(column)
    if kind.startswith("TIMESTAMP WITH") or kind == "DATE":
        read = f"epoch_us({name})"
    elif kind.startswith("TIMESTAMP"):
        read = f"epoch_us(CAST({name} AS TIMESTAMP))"
    elif kind == "VARCHAR":
        name = f"nullif(trim({name}), '')"
        read = f"epoch_us(TRY_CAST({name} AS TIMESTAMPTZ))"
    elif kind.endswith(("INT", "INTEGER")):
        read = f"TRY_CAST({name} AS BIGINT)"
    else:
        raise ConfigurationError(
            f"the column {column!r} is of the type {kind}, which is no time",
            hint="a timestamp, a date, a text such as 2026-01-02T03:04:05Z, or microseconds",
        )
    return (
        read,
        f"{name} IS NOT NULL AND coalesce({read} NOT BETWEEN {_EARLIEST} AND {_LATEST}, true)",
    )


def _length(column: str | None) -> tuple[str, str]:
    if column is None:
        return "CAST(NULL AS BIGINT)", "false"
    read = f"TRY_CAST({sql_identifier(column)} AS BIGINT)"
    return read, f"{sql_identifier(column)} IS NOT NULL AND coalesce({read} < 0, true)"


def _hash(chosen: Mapping[str, str], found: Mapping[str, str]) -> str:
    if "hash" in chosen:
        return f"coalesce(trim(CAST({sql_identifier(chosen['hash'])} AS VARCHAR)), '')"
    for key, algorithm in (("sha256", "sha-256"), ("md5", "md5")):
        if key in chosen:
            name = sql_identifier(chosen[key])
            read = f"hex({name})" if found[chosen[key]] == "BLOB" else f"CAST({name} AS VARCHAR)"
            return f"coalesce('{algorithm}:' || lower(nullif(trim({read}), '')), '')"
    return "''"


def _quoted(pattern: str) -> str:
    return "'" + pattern.replace("'", "''") + "'"


_BATCH: Final = 100_000
_FEW: Final = 100
_SHARE: Final = 100
_MOST: Final = 100_000
_SHOWN: Final = 100

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


class ImportCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of an import.

    Attributes:
        rows: Number of rows now, each with a URI of its own.
        refused: Number of rows that cannot be published.
        repeated: Number of further rows of the same URI; the one with the newest ``lastmod``
            counts.
        faults: The first refused rows: their URIs, and reasons.
    """

    rows: int
    refused: int = 0
    repeated: int = 0
    faults: tuple[tuple[str, str], ...] = ()


def import_table(
    connection: Any, told: SuppliedTable, before: Path | None, into: Path, *, fault: Fault
) -> ImportCounts:
    """Write a table in our schema, in URI order (by code points).

    A row that cannot be published is left out; the row of its URI in the table before stays.

    Args:
        connection: A connection of ``open_duckdb``.
        told: The table to import.
        before: The last published table; ``None`` for none.
        into: The file to write, whole or not at all.
        fault: Checks the rows that the query does not clear.

    Raises:
        ConfigurationError: A column is missing, or more than 1 % of the rows, or 100,000, cannot
            be published (code ``many-refused``).
        StorageError: The table could not be read or written.
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
            f"read_parquet([{names}], filename = '{FILE_COLUMN}', file_row_number = true,"
            " hive_partitioning = false, union_by_name = true)"
        )
        described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()  # noqa: S608
        found = {row[0]: row[1] for row in described}
        for own in (FILE_COLUMN, ROW_COLUMN):
            found.pop(own, None)
        query = normalizing_query(found, told.columns, source)
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
                    self._refused.append((row["file"], row["place"], row["uri"]))
                    if len(self._faults) < _SHOWN:
                        self._faults.append((row["uri"], fault))
            if len(self._refused) > most:
                raise self._too_many(most)

    def write(self, before: Path | None, into: Path) -> ImportCounts:
        """Write the valid rows, sorted, each URI once."""
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
            rows=rows, refused=len(self._refused), repeated=repeated, faults=tuple(self._faults)
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

    def _too_many(self, most: int) -> ConfigurationError:
        uri, fault = self._faults[0]
        return ConfigurationError(
            f"more than {most:,} of {self._count:,} rows cannot be published",
            evidence=(("first", f"{uri[:200]}: {fault}"), ("kept", "what was published before")),
            hint="check the names of the columns",
            remedy=Remedy("set-option", value="uri=COLUMN"),
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
        # Sort by all columns: of several rows of one URI, the same comes first in every run.
        return f"{query} ORDER BY uri, kept, lastmod DESC NULLS LAST, hash, length, type"


def _table(files: Sequence[str], places: Sequence[int], uris: Sequence[str]) -> Any:
    import pyarrow  # noqa: PLC0415, ICN001 - an extra, and seldom needed

    return pyarrow.table({"file": files, "place": places, "uri": uris})


def _deduplicate(batch: Any, last: Any) -> tuple[Any, int]:
    """Return a batch without rows that repeat the URI before, and the number of removed rows."""
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


class Differences(NamedTuple):
    """Numbers of resources that differ. Touched ones have other metadata for the same bytes."""

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
    """Compare two tables of ``import_table``; write the changes in URI order.

    A resource is updated if its hash or its length differs, or its ``lastmod`` if there is no
    hash. Of a deleted one only the URI is written.

    Args:
        connection: A connection of ``open_duckdb``.
        before: The last published table.
        after: The next one.
        into: The file of the changes; not written if there are none.

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
