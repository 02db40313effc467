"""Tables of resources that are too many for a catalogue: Parquet, by DuckDB and pyarrow."""

from resourcesync.adapters.inventory.columns import COLUMN_NAMES
from resourcesync.adapters.inventory.differences import Differences, compare_tables
from resourcesync.adapters.inventory.engine import check_installed, open_duckdb
from resourcesync.adapters.inventory.memory import InventoryFolder, read_file, write_file
from resourcesync.adapters.inventory.rows import read_changes, read_resources
from resourcesync.adapters.inventory.taking import ImportCounts, SuppliedTable, import_table

__all__ = [
    "COLUMN_NAMES",
    "Differences",
    "ImportCounts",
    "InventoryFolder",
    "SuppliedTable",
    "check_installed",
    "compare_tables",
    "import_table",
    "open_duckdb",
    "read_changes",
    "read_file",
    "read_resources",
    "write_file",
]
