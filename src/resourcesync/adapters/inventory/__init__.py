"""Tables of resources that are too many for a catalogue: Parquet, by DuckDB and pyarrow."""

from resourcesync.adapters.inventory.columns import KEYS
from resourcesync.adapters.inventory.differences import Differences, compare
from resourcesync.adapters.inventory.engine import check_installed, opened
from resourcesync.adapters.inventory.memory import InventoryFolder, read_whole, write_whole
from resourcesync.adapters.inventory.rows import read_changes, read_resources
from resourcesync.adapters.inventory.taking import ImportCounts, SuppliedTable, import_table

__all__ = [
    "KEYS",
    "Differences",
    "ImportCounts",
    "InventoryFolder",
    "SuppliedTable",
    "check_installed",
    "compare",
    "import_table",
    "opened",
    "read_changes",
    "read_resources",
    "read_whole",
    "write_whole",
]
