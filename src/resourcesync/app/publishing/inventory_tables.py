"""Import of a table into our form, and its comparison with the previous import."""

from collections.abc import Callable
from itertools import count
from typing import Final

import msgspec

from resourcesync.adapters.inventory import (
    Differences,
    ImportCounts,
    ImportFiles,
    InventoryFolder,
    SuppliedTable,
    import_table,
)
from resourcesync.errors import ConfigurationError, Remedy, StorageError
from resourcesync.model.resources import Resource
from resourcesync.source.inventory import Inventory
from resourcesync.source.plan import PublicationStep
from resourcesync.source.publication_options import PublishRequest
from resourcesync.source.round_trip import check_resource, find_fault

_FEW_GONE: Final = 10


class SourceTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that is imported.

    Attributes:
        source: Its files and columns.
        signature: Signature of its content.
        read_signature: Returns its present signature.
        memory: The most memory for sorting and joining.
    """

    source: SuppliedTable
    signature: str
    read_signature: Callable[[], str]
    memory: str


class TableUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """The imported table, compared with the one before.

    Attributes:
        stamp: Part of the names of its files.
        table: Its file.
        imported: Counts of its rows.
    """

    stamp: int
    table: str
    imported: ImportCounts

    @property
    def differences(self) -> Differences:
        """Return the numbers of rows that differ from the table before."""
        return self.imported.differences

    @property
    def changes(self) -> str:
        """The file of the changes, where there are any."""
        return _changes_of(self.stamp)

    @property
    def change_count(self) -> int:
        """Number of changes to list."""
        differences = self.differences
        return differences.created + differences.updated + differences.deleted


def import_inventory_table(
    table: SourceTable,
    inventory: Inventory,
    folder: InventoryFolder,
    now: int,
    asked: PublishRequest,
) -> TableUpdate:
    """Import the table, unless it is the published one, and compare it with that.

    Args:
        table: The table.
        inventory: The state.
        folder: The folder for the files.
        now: The present moment, in microseconds.
        asked: True if all resources may be gone; where the lists start over, nothing is compared.

    Raises:
        ConfigurationError: Too many rows cannot be published, or most known resources are gone.
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
    files = ImportFiles(last, into, folder.rows(_changes_of(stamp)), folder.spill)
    imported = import_table(table.source, files, memory=table.memory, fault=_fault)
    if table.read_signature() != table.signature:
        raise StorageError(
            "the table was written while it was read",
            evidence=(("kept", "what was published before"),),
            hint="try again once it is complete",
        )
    if not imported.rows and not asked.allow_empty:
        raise ConfigurationError(
            "the table has no resource",
            evidence=(("kept", "what was published before"),),
            hint="if it is really empty, allow that",
            code="empty-account",
            remedy=Remedy("allow-empty"),
        )
    found = imported.differences
    if not asked.allow_empty and found.deleted > max(_FEW_GONE, inventory.rows // 2):
        raise _too_many_gone_error(found.deleted, inventory.rows)
    return TableUpdate(stamp=stamp, table=into.name, imported=imported)


def _table_of(stamp: int) -> str:
    return f"table-{stamp}.parquet"


def _changes_of(stamp: int) -> str:
    return f"changes-{stamp}.parquet"


def _fault(resource: Resource) -> str:
    """Return the reason why a resource cannot be published; empty when it can."""
    try:
        check_resource(resource)
    except ConfigurationError as error:
        return error.message
    return find_fault([resource])


def _too_many_gone_error(gone: int, known: int) -> ConfigurationError:
    return ConfigurationError(
        f"{gone:,} of {known:,} resources are gone at once",
        evidence=(("kept", "what was published before"),),
        hint="if they are really gone, allow that",
        code="many-gone",
        remedy=Remedy("allow-empty"),
    )
