"""The optional import of PyArrow, with a clear error if it is missing."""

from typing import Any

from resourcesync.errors import ConfigurationError


def _missing() -> ConfigurationError:
    return ConfigurationError(
        "tables need other packages", hint="pip install 'resourcesync[tables]'"
    )


try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError as error:
    raise _missing() from error


def import_duckdb() -> Any:  # an optional module, which workers do not need
    """Return DuckDB.

    Raises:
        ConfigurationError: DuckDB is not installed.
    """
    try:
        import duckdb as module  # noqa: PLC0415 - the coordinator's alone
    except ImportError as error:
        raise _missing() from error
    return module


__all__ = ["import_duckdb", "pa", "pc", "pq"]
