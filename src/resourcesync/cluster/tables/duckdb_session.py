"""A DuckDB session: an in-memory database of its own, which spills to a folder.

The folder is removed at the end. DuckDB reads Parquet, sorts and joins; the results come back as
batches of columns, and are written by ``parquet``.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from resourcesync.cluster.tables import arrow
from resourcesync.cluster.tables.arrow import pa
from resourcesync.cluster.tables.parquet import GROUP, check_footers, guard_writing
from resourcesync.errors import DiskFullError, StorageError

DEFAULT_MEMORY: Final = 5 << 27
"""640 MiB: the process has up to 650 MiB more, for rows in Python and PyArrow and for threads."""
_PER_THREAD: Final = 256 << 20
_FULL: Final = ("no space left", "max_temp_directory_size", "disk quota")


class DuckDbSession:
    """A DuckDB database for one piece of work.

    Args:
        database: DuckDB's connection.
        files: All files to read, to name a damaged one.
        scratch: The folder to spill to.
    """

    def __init__(self, database: Any, files: Sequence[str], scratch: str) -> None:
        self._database, self._files, self._scratch = database, files, scratch

    def run(self, statement: str) -> None:
        """Run a statement without a result."""
        with self._guarded():
            self._database.execute(statement)

    def value(self, query: str) -> Any:
        """Return the single value of a query."""
        with self._guarded():
            [(value,)] = self._database.execute(query).fetchall()
            return value

    def batches(self, query: str) -> Iterator[Any]:
        """Yield the rows of a query as batches of columns."""
        with self._guarded():
            reader = self._database.sql(query).to_arrow_reader(GROUP)
        while True:
            with self._guarded():
                batch = next(reader, None)
            if batch is None:
                return
            yield batch

    def _guarded(self) -> AbstractContextManager[None]:
        return guard_duckdb(self._files, self._scratch)


@contextmanager
def guard_duckdb(files: Sequence[str], scratch: str) -> Iterator[None]:
    """Translate DuckDB's errors into errors of this package.

    Raises:
        StateError: One of the files is damaged; it is named.
        DiskFullError: There is no space to spill to.
        StorageError: Anything else.
    """
    try:
        yield
    except (arrow.import_duckdb().Error, pa.ArrowException, OSError) as error:
        check_footers(files)
        is_full = any(word in str(error).lower() for word in _FULL)
        raise (DiskFullError if is_full else StorageError)(
            f"the tables could not be joined: {str(error).partition(chr(10))[0][:300]}",
            evidence=(("folder", scratch), ("kept", "the tables as they were")),
            hint="free disk space there, or give more memory; then try again",
        ) from error


@contextmanager
def open_session(
    folder: Path, files: Sequence[str], memory: int | None, threads: int | None
) -> Iterator[DuckDbSession]:
    """Open a session that spills to a new folder in ``folder``.

    Raises:
        ConfigurationError: DuckDB is not installed.
        StorageError: The folder cannot be used.
    """
    duckdb = arrow.import_duckdb()
    limit = DEFAULT_MEMORY if memory is None else memory
    workers = threads or max(1, min(os.cpu_count() or 1, limit // _PER_THREAD))
    with guard_writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(dir=folder, prefix="join-")
    with scratch:
        settings = {
            "autoinstall_known_extensions": False,  # nothing is ever downloaded
            "autoload_known_extensions": False,
            "enable_external_file_cache": False,
            "memory_limit": f"{limit >> 10}KiB",
            "preserve_insertion_order": False,
            "temp_directory": scratch.name,
            "threads": workers,
        }
        with guard_duckdb(files, scratch.name):
            database = duckdb.connect(":memory:", config=settings)
            database.execute("SET enable_progress_bar = false")  # it would be printed
        try:
            yield DuckDbSession(database, files, scratch.name)
        finally:
            with suppress(duckdb.Error):
                database.close()


def scan_query(files: Sequence[str], schema: Any) -> str:
    """Return a query for all rows of files, with ``n``, which numbers them in their order."""
    if not files:
        nulls = ", ".join(f'NULL::{_sql(field.type)} AS "{field.name}"' for field in schema)
        return f"SELECT {nulls}, 0::BIGINT AS n WHERE false"
    names = ", ".join(literal(file) for file in files)
    columns = ", ".join(f'"{name}"' for name in schema.names)
    number = "(file_index::BIGINT << 32) + file_row_number AS n"
    return f"SELECT {columns}, {number} FROM read_parquet([{names}])"  # noqa: S608 - quoted


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _sql(kind: Any) -> str:
    if pa.types.is_timestamp(kind):
        return "TIMESTAMPTZ"
    return "BIGINT" if pa.types.is_integer(kind) else "VARCHAR"
