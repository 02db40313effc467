"""Tables of resources too large for a catalogue: Parquet, by DuckDB and pyarrow."""

from resourcesync.adapters.inventory.duckdb_engine import check_installed, open_duckdb
from resourcesync.adapters.inventory.table_files import (
    InventoryFolder,
    read_changes,
    read_file,
    read_resources,
    write_file,
)
from resourcesync.adapters.inventory.table_import import (
    Differences,
    ImportCounts,
    ImportFiles,
    SuppliedTable,
    import_table,
)
from resourcesync.adapters.inventory.table_queries import COLUMN_NAMES

__all__ = [
    "COLUMN_NAMES",
    "Differences",
    "ImportCounts",
    "ImportFiles",
    "InventoryFolder",
    "SuppliedTable",
    "check_installed",
    "import_table",
    "open_duckdb",
    "read_changes",
    "read_file",
    "read_resources",
    "write_file",
]
