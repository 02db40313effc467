"""DuckDB within a memory limit; its failures become errors of this package."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from resourcesync.errors import (
    ConfigurationError,
    DiskFullError,
    Remedy,
    ResourceSyncError,
    StorageError,
)

_THREADS: Final = """
SELECT greatest(1, least(
    current_setting('threads'), parse_formatted_bytes(current_setting('memory_limit')) // 268435456
))
"""
"""One for each 256 MiB: a thread has some 80 MiB that the limit does not count."""


@contextmanager
def open_duckdb(folder: Path, memory: str) -> Iterator[Any]:
    """Open DuckDB for some queries.

    Args:
        folder: The folder to spill to; DuckDB empties it.
        memory: The memory limit, such as ``1GB``.

    Raises:
        ConfigurationError: DuckDB is not installed, or the limit is invalid.
        DiskFullError: No space is left.
        StorageError: A query failed.
    """
    duckdb = _imported()
    try:
        connection = duckdb.connect()
        connection.execute(f"SET temp_directory = {sql_literal(str(folder))}")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET TimeZone = 'UTC'")
    except duckdb.Error as error:
        raise StorageError(f"DuckDB cannot be opened: {_first_line(error)}") from error
    try:
        _limit(connection, memory, duckdb.Error)
        yield connection
    except ResourceSyncError:
        raise
    except duckdb.Error as error:
        raise _failed(error) from error
    except OSError as error:  # raised by Arrow while it reads from DuckDB, or writes
        raise _failed(error) from error
    finally:
        connection.close()


def sql_literal(value: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def sql_identifier(value: str) -> str:
    """Return a quoted SQL identifier."""
    return '"' + value.replace('"', '""') + '"'


def check_installed() -> None:
    """Check that the packages that read tables are installed.

    Raises:
        ConfigurationError: One is not installed.
    """
    _imported()


def _imported() -> Any:
    try:
        import duckdb  # noqa: PLC0415 - an extra, and seldom needed
        import pyarrow.parquet  # noqa: F401, PLC0415 - the same
    except ImportError as error:
        raise ConfigurationError(
            "tables need other packages", hint="pip install 'resourcesync[tables]'"
        ) from error
    return duckdb


def _limit(connection: Any, memory: str, failed: type[Exception]) -> None:
    try:
        connection.execute(f"SET memory_limit = {sql_literal(memory)}")
    except failed as error:
        raise ConfigurationError(
            f"memory={memory!r:.100} is not a memory limit",
            hint="write it such as 1GB",
            remedy=Remedy("set-option", value="memory=1GB"),
        ) from error
    [(threads,)] = connection.execute(_THREADS).fetchall()
    connection.execute(f"SET threads = {threads}")


def _failed(error: Exception) -> StorageError:
    kept = (("kept", "what was published before"),)
    told = _first_line(error)
    if "No space left" in told:
        return DiskFullError(f"no space left: {told}", evidence=kept)
    if "Out of Memory" in told or "OutOfMemory" in type(error).__name__:
        return StorageError(
            f"the memory limit is too low: {told}",
            evidence=kept,
            hint="raise it by the option memory",
            remedy=Remedy("set-option", value="memory=2GB"),
        )
    return StorageError(f"the tables cannot be read: {told}", evidence=kept)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:500]
