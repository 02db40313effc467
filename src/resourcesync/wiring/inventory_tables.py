"""The table as it is told now becomes one in our form, and is compared with the one before."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from resourcesync.adapters.inventory import (
    Differences,
    ImportCounts,
    InventoryFolder,
    SuppliedTable,
    compare_tables,
    import_table,
    open_duckdb,
)
from resourcesync.errors import ConfigurationError, StorageError
from resourcesync.model.resources import Resource
from resourcesync.source.inventory import Inventory
from resourcesync.source.plan import PublicationStep
from resourcesync.source.round_trip import find_fault
from resourcesync.wiring import catalogues
from resourcesync.wiring.publishing import PublishRequest

_FEW_GONE: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """The table as it is told now.

    Attributes:
        told: Its files and columns.
        signature: Stands for their content.
        look: Returns what stands for it now.
        memory: The most memory for sorting and joining.
    """

    source: SuppliedTable
    signature: str
    read_signature: Callable[[], str]
    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUpdate:
    """The table in our form, compared with the one before.

    Attributes:
        stamp: What the names of its files have in them.
        table: Its file.
        taken: What became of its rows.
        differences: How many differ from the one before.
    """

    stamp: int
    table: str
    imported: ImportCounts
    differences: Differences = field(default_factory=Differences)

    @property
    def changes(self) -> str:
        """The file of the changes, where there are any."""
        return _changes_of(self.stamp)

    @property
    def change_count(self) -> int:
        """How many changes are to be listed."""
        differences = self.differences
        return differences.created + differences.updated + differences.deleted


def import_inventory_table(
    table: SourceTable,
    inventory: Inventory,
    folder: InventoryFolder,
    now: int,
    asked: PublishRequest,
) -> TableUpdate:
    """Take the table, unless it is the one that was published, and compare it with that.

    Args:
        table: The table.
        inventory: What is remembered.
        folder: Takes the files.
        now: The present moment, in microseconds.
        asked: True if all may be gone; where the lists start over, nothing is compared.

    Raises:
        ConfigurationError: Too many rows cannot be published, or most of what was known is gone.
        StorageError: The table cannot be read, or was written meanwhile.
    """
    used = inventory.files
    stamp = next(number for number in count(now) if _table_of(number) not in used)
    is_anew = asked.step is PublicationStep.INITIALISE
    if table.signature == inventory.told and inventory.plan is not None and not is_anew:
        return TableUpdate(
            stamp=stamp, table=inventory.table, imported=ImportCounts(rows=inventory.rows)
        )
    into = folder.rows(_table_of(stamp))
    last = folder.rows(inventory.table) if inventory.table and not is_anew else None
    with open_duckdb(folder.spill, table.memory) as connection:
        taken = import_table(connection, table.source, last, into, fault=_fault)
        if table.read_signature() != table.signature:
            raise _modified_error()
        if not taken.rows and not asked.allow_empty:
            raise _empty_table_error()
        if last is None:
            return TableUpdate(stamp=stamp, table=into.name, imported=taken)
        found = compare_tables(connection, last, into, folder.rows(_changes_of(stamp)))
    if not asked.allow_empty and found.deleted > max(_FEW_GONE, inventory.rows // 2):
        raise _too_many_gone_error(found.deleted, inventory.rows)
    return TableUpdate(stamp=stamp, table=into.name, imported=taken, differences=found)


def _table_of(stamp: int) -> str:
    return f"table-{stamp}.parquet"


def _changes_of(stamp: int) -> str:
    return f"changes-{stamp}.parquet"


def _fault(resource: Resource) -> str:
    """Return why a resource cannot be published; empty when it can."""
    try:
        catalogues.check_resource(resource)
    except ConfigurationError as error:
        return error.message
    return find_fault([resource])


def _modified_error() -> StorageError:
    return StorageError(
        "the table was written while it was read",
        evidence=(("kept", "what was published before"),),
        hint="run the same command once it is complete",
    )


def _empty_table_error() -> ConfigurationError:
    return ConfigurationError(
        "the table tells of no resource at all",
        evidence=(("kept", "what was published before"),),
        hint="if there are none indeed: --allow-empty",
        code="empty-account",
    )


def _too_many_gone_error(gone: int, known: int) -> ConfigurationError:
    return ConfigurationError(
        f"{gone:,} of {known:,} resources are gone at once",
        evidence=(("kept", "what was published before"),),
        hint="if they are gone indeed: --allow-empty",
        code="many-gone",
    )
