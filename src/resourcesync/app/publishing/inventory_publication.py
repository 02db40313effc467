"""Publication of one table: a plan is written first, then its units write the lists (ADR 0066).

A worker needs this Python with the extra ``tables``, the folder of the table, and the folder or
the store of the documents.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync.adapters.inventory import (
    Differences,
    ImportCounts,
    InventoryFolder,
    read_changes,
    read_file,
    read_resources,
    write_file,
)
from resourcesync.app import engines
from resourcesync.app.publishing import document_stores
from resourcesync.app.publishing.inventory_tables import (
    SourceTable,
    TableUpdate,
    import_inventory_table,
)
from resourcesync.errors import EngineError, Remedy, StateError, StorageError
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import Clock
from resourcesync.ports.cancellation import CancelToken
from resourcesync.ports.catalogue import DocumentStore, Omission
from resourcesync.ports.engines import HostShare, UnitOutcome
from resourcesync.settings.publication import PublicationSettings
from resourcesync.source import garbage
from resourcesync.source.clock_guard import check_silence, is_behind
from resourcesync.source.document_writer import DocumentWriter, WrittenDocument
from resourcesync.source.inventory import (
    ChangeRows,
    Inventory,
    PendingPublication,
    RowDocument,
    conclude,
    is_rebase_worthwhile,
    row_ranges,
    write_changes,
    write_heads,
    write_pages,
)
from resourcesync.source.naming import SourceNaming
from resourcesync.source.paging import PageLimits
from resourcesync.source.plan import PublicationPlan, PublicationStep, is_rebase_due
from resourcesync.source.publication_options import (
    PublicationResult,
    PublishRequest,
    limits_of,
    publication_policy,
)
from resourcesync.source.publisher import Publication
from resourcesync.source.scan import ScanReport

_MAX_LOCAL_ROWS: Final = 100_000
"""Most rows for this process where no engine was named: starting processes takes longer."""
_RETRY_HINT: Final = "try again: it continues with the missing lists"


class ListUnit(msgspec.Struct, frozen=True, kw_only=True):
    """Some rows that become lists: one, as a rule.

    Attributes:
        name: Its name.
        file: The file of the rows.
        start, stop: The rows, from 0, without the last.
        at: Time of a Resource List, in microseconds.
        changes: Kind of the rows, where they are changes; ``None`` for resources.
        place: The place of the documents: a folder of all workers, or the address of a store.
        base_uri: The URI of the resources' root.
        limits: The most that a document holds.
        outcome: The file with the result; it is written last.
        host: Empty: no requests are sent.
    """

    name: str
    file: str
    start: int
    stop: int
    at: int
    changes: ChangeRows | None
    place: str
    base_uri: str
    limits: PageLimits
    outcome: str
    host: str = ""


def write_lists(unit: ListUnit, share: HostShare) -> UnitOutcome:
    """Write the lists of a unit, unless that was done.

    Raises:
        ResourceSyncError: The lists cannot be written.
    """
    del share  # no requests are sent
    if read_outcome(unit) is None:
        writer = DocumentWriter(
            document_stores.shared_documents_at(unit.place),
            SourceNaming(base_uri=unit.base_uri),
            {},
        )
        sheets = _write_sheets(unit, writer)
        write_file(Path(unit.outcome), msgspec.json.encode(sheets))
    return UnitOutcome(name=unit.name, rows=unit.stop - unit.start)


def _write_sheets(unit: ListUnit, writer: DocumentWriter) -> list[RowDocument]:
    path = Path(unit.file)
    if unit.changes is None:
        rows = read_resources(path, unit.start, unit.stop)
        return write_pages(writer, rows, path.name, unit.start, at=unit.at, limits=unit.limits)
    told = read_changes(path, unit.start, unit.stop)
    return write_changes(writer, told, unit.changes, unit.start, limits=unit.limits)


def read_outcome(unit: ListUnit) -> list[RowDocument] | None:
    """Return the documents of a unit; ``None`` when it was not done.

    Raises:
        StateError: Its result is damaged.
        StorageError: It cannot be read.
    """
    content = read_file(Path(unit.outcome))
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=list[RowDocument])
    except msgspec.MsgspecError as error:
        raise StateError(
            f"{unit.outcome} is damaged", hint="remove it, and publish again"
        ) from error


def run_units(
    units: Sequence[ListUnit], store: DocumentStore, engine: str, clock: Clock
) -> list[RowDocument]:
    """Run the units that were not done yet; return the documents of all, in their order.

    Args:
        units: The units.
        store: The store of the documents.
        engine: The address of the engine; empty for processes of this machine.
        clock: Time.

    Raises:
        EngineError: The engine cannot be used, or a unit failed. Finished units stay.
        StorageError: A result cannot be read.
    """
    left = [unit for unit in units if not _confirm_done(unit, store)]
    if left:
        _run_units(left, engine, clock)
    sheets: list[RowDocument] = []
    for unit in units:
        found = read_outcome(unit)
        if found is None:
            raise EngineError(f"the unit {unit.name} was done but is missing", hint=_RETRY_HINT)
        sheets += found
    return sheets


def _confirm_done(unit: ListUnit, store: DocumentStore) -> bool:
    """Return whether a unit was done and its documents exist; otherwise forget its outcome."""
    found = read_outcome(unit)
    if found is None:
        return False
    if all(store.signature(document.name) == document.known.signature for document in found):
        return True
    Path(unit.outcome).unlink(missing_ok=True)
    return False


def _run_units(units: Sequence[ListUnit], engine: str, clock: Clock) -> None:
    if not engine and sum(unit.stop - unit.start for unit in units) <= _MAX_LOCAL_ROWS:
        for unit in units:
            write_lists(unit, HostShare())
        return
    from resourcesync.cluster.politeness import HostLimits  # noqa: PLC0415 - few are so large
    from resourcesync.cluster.unit_runner import run_units  # noqa: PLC0415 - the same

    with engines.open_engine(engine or "processes") as opened:
        outcomes = run_units(
            opened, write_lists, units, limits=HostLimits(), cancel=CancelToken(clock)
        )
        failed = [
            (outcome.name, outcome.failed[1]) for outcome in outcomes if outcome.failed is not None
        ]
    if failed:
        name, why = failed[0]
        raise EngineError(
            f"{len(failed):,} of {len(units):,} lists were not written",
            evidence=(
                ("first", f"{name}: {why}"),
                ("kept", "the lists that were written, and what was published before"),
            ),
            hint=_RETRY_HINT,
        )


_SECOND: Final = 1_000_000
_REPAIR: Final = "mending"


class PublicationTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a table's publication.

    Attributes:
        folder: The folder of its state.
        address: Address of the store, for workers: a folder of all of them, or an address.
        engine: The address of the engine; empty for processes of this machine.
    """

    folder: InventoryFolder
    store: DocumentStore
    address: str
    engine: str


class TablePublication:
    """Publishes a table.

    Args:
        inventory: The state.
        clock: Time.
    """

    def __init__(
        self,
        place: PublicationTarget,
        settings: PublicationSettings,
        inventory: Inventory,
        clock: Clock,
    ) -> None:
        self._place = place
        self._settings = settings
        self._inventory = self._stored = inventory
        self._clock = clock
        self._naming = SourceNaming(base_uri=settings.url)
        self._written: list[WrittenDocument] = []
        self._counts = Differences()

    def resume(self, step: PublicationStep) -> None:
        """Finish what was begun, and write altered documents again.

        Where the lists start over, neither is done.

        Args:
            step: The step that follows.

        Raises:
            EngineError: Some lists were not written.
            StorageError: Something could not be read or written.
        """
        is_anew = step is PublicationStep.INITIALISE
        if is_anew:
            self._inventory = replace(self._inventory, under_way=None)
        elif self._inventory.under_way is not None:
            self._run_task(self._inventory.under_way)
        self._place.folder.clear(self._inventory.files)
        if self._inventory.plan is not None and not is_anew:
            self._repair(self._inventory.plan)

    def publish(self, table: SourceTable, asked: PublishRequest) -> PublicationResult:
        """Publish the present content of the table.

        Raises:
            ConfigurationError: Too many rows cannot be published, or most of the known resources
                are gone.
            EngineError: Some lists were not written.
            StorageError: The table cannot be read, or a document cannot be written.
        """
        is_first = self._inventory.plan is None
        now = self._clock.now()
        step, floor = self._step(now, asked.step)
        begins = is_first or step is PublicationStep.INITIALISE
        asked = replace(asked, step=step)
        found = import_inventory_table(
            table, self._inventory, self._place.folder, to_microseconds(now), asked
        )
        task = self._task(found, table, max(to_microseconds(now), floor), begins=begins)
        rebases = begins or step is PublicationStep.REBASE or not self._inventory.pages
        task = replace(
            task, rebases=rebases or (step is PublicationStep.DUE and self._is_due(task))
        )
        settings = msgspec.json.encode(self._settings).decode()
        self._inventory = replace(self._inventory, settings=settings)
        if task.rebases or task.changes is not None:
            self._remember(replace(self._inventory, under_way=task))
            self._run_task(task)
        else:
            self._record_unchanged(found, task)
        return self._report(found.imported, is_first=is_first)

    def _step(self, now: datetime, step: PublicationStep) -> tuple[PublicationStep, int]:
        """Return the step, and the moment that all new times are later than."""
        if self._inventory.plan is None:
            return step, 0
        latest = from_microseconds(self._inventory.latest)
        is_meant = step in (PublicationStep.REBASE, PublicationStep.INITIALISE)
        if is_behind(latest, now, is_meant=is_meant):
            return PublicationStep.INITIALISE, 0
        if not is_meant:
            check_silence(latest, now)
        return step, self._inventory.latest + 1

    def _task(
        self, found: TableUpdate, table: SourceTable, at: int, *, begins: bool
    ) -> PendingPublication:
        changes, differences = None, found.differences
        plan = self._inventory.plan
        if found.change_count and plan is not None and not begins:
            at = max(at, plan.open.reached + found.change_count)
            changes = ChangeRows(
                file=found.changes,
                count=found.change_count,
                before=plan.open.last,
                since=plan.open.start,
                at=at,
            )
        return PendingPublication(
            name=str(found.stamp),
            at=at,
            table=found.table,
            rows=found.imported.rows,
            told=table.signature,
            changes=changes,
            created=differences.created if changes else 0,
            updated=differences.updated if changes else 0,
            deleted=differences.deleted if changes else 0,
            rebases=False,
            begins=begins,
            base_uri=self._naming.base_uri,
            limits=limits_of(self._settings),
            keep=int(self._settings.keep * _SECOND),
            described_by=self._settings.described_by,
        )

    def _is_due(self, task: PendingPublication) -> bool:
        plan = self._inventory.plan
        if plan is None or is_rebase_due(plan, publication_policy(self._settings), task.at):
            return True
        changed = 0 if task.changes is None else task.changes.count
        return changed > 0 and is_rebase_worthwhile(plan, task.rows, changed)

    def _run_task(self, task: PendingPublication) -> None:
        folder = self._place.folder
        folder.make(task.name)
        sheets = tuple(self._sheets(self._units(task), task.table))
        after = conclude(
            self._inventory,
            task,
            sheets,
            SourceNaming(base_uri=task.base_uri).documents_uri,
            to_microseconds(self._clock.now()),
        )
        self._conclude(after, task.base_uri, task.described_by)
        self._counts = Differences(
            *(sum(pair) for pair in zip(self._counts[:3], _counts_of(task), strict=True))
        )

    def _record_unchanged(self, found: TableUpdate, task: PendingPublication) -> None:
        """Record that there is nothing to list; attributes of unchanged bytes may be new."""
        keeps = not found.differences.touched
        after = replace(
            self._inventory,
            table=self._inventory.table if keeps else found.table,
            rows=task.rows,
            told=task.told,
        )
        self._conclude(after, task.base_uri, task.described_by)

    def _conclude(self, after: Inventory, base_uri: str, described_by: str) -> None:
        """Write the documents above the lists, store the state, and remove obsolete files."""
        store, now = self._place.store, to_microseconds(self._clock.now())
        writer = DocumentWriter(store, SourceNaming(base_uri=base_uri), after.documents)
        heads = write_heads(writer, after, described_by)
        self._written += writer.written
        listed = {document.name for document in (*after.pages, *after.lists)}
        known = {**self._inventory.documents, **writer.known}
        found = garbage.find_orphans(store, listed | heads, known, after.orphans, now)
        after = replace(
            after,
            heads={name: writer.known[name] for name in sorted(heads)},
            orphans=garbage.remove_orphans(store, found, now),
        )
        if after != self._stored:
            self._remember(after)
        self._place.folder.clear(after.files)

    def _remember(self, inventory: Inventory) -> None:
        self._place.folder.write(msgspec.json.encode(inventory))
        self._inventory = self._stored = inventory

    def _units(self, task: PendingPublication) -> list[ListUnit]:
        units = []
        if task.rebases:
            units = [
                self._unit(task, f"list-{start}", task.table, (start, stop), None)
                for start, stop in row_ranges(task.rows, task.limits)
            ]
        if task.changes is not None:
            units += [
                self._unit(task, f"changes-{start}", task.changes.file, (start, stop), task.changes)
                for start, stop in row_ranges(task.changes.count, task.limits)
            ]
        return units

    def _unit(
        self,
        task: PendingPublication,
        name: str,
        file: str,
        rows: tuple[int, int],
        changes: ChangeRows | None,
    ) -> ListUnit:
        folder = self._place.folder
        return ListUnit(
            name=name,
            file=str(folder.rows(file).absolute()),
            start=rows[0],
            stop=rows[1],
            at=task.at,
            changes=changes,
            place=self._place.address,
            base_uri=task.base_uri,
            limits=task.limits,
            outcome=str(folder.outcome(task.name, name).absolute()),
        )

    def _sheets(self, units: Sequence[ListUnit], table: str) -> list[RowDocument]:
        place = self._place
        sheets = run_units(units, place.store, place.engine, self._clock)
        for sheet in sheets:
            is_page = sheet.file == table
            kind = Capability.RESOURCE_LIST if is_page else Capability.CHANGE_LIST
            self._written.append(
                WrittenDocument(
                    name=sheet.name,
                    uri=self._naming.uri(sheet.name),
                    capability=kind,
                    entries=sheet.known.entries,
                    bytes=sheet.known.size,
                )
            )
        return sheets

    def _repair(self, plan: PublicationPlan) -> None:
        """Write altered or removed documents again, as they were.

        When that is impossible because the table is gone, a new Resource List is written.
        """
        inventory = self._inventory
        writer = DocumentWriter(self._place.store, self._naming, inventory.documents)
        sheets = (*inventory.pages, *inventory.lists)
        harmed = [sheet for sheet in sheets if not writer.confirm_unharmed(sheet.name)]
        rows = {change.file: change for change in inventory.changes}
        ours = {inventory.table, *rows}
        units = [
            self._repair_unit(plan, number, document, rows.get(document.file))
            for number, document in enumerate(harmed)
            if document.file in ours
        ]
        self._place.folder.make(_REPAIR if units else "")
        mended = {sheet.name: sheet.known for sheet in self._sheets(units, inventory.table)}
        lost = {document.name for document in harmed} - mended.keys()
        if any(document.name in lost for document in inventory.lists):
            raise StorageError(
                "an altered Change List cannot be written again",
                evidence=(("kept", "all others"),),
                hint="start the lists over once",
                code="read-back",
                remedy=Remedy("initialise"),
            )
        known = {**writer.known, **mended}
        self._inventory = replace(
            inventory,
            pages=()
            if any(page.name in lost for page in inventory.pages)
            else tuple(replace(page, known=known[page.name]) for page in inventory.pages),
            lists=tuple(
                replace(document, known=known[document.name]) for document in inventory.lists
            ),
        )

    def _repair_unit(
        self, plan: PublicationPlan, number: int, sheet: RowDocument, changes: ChangeRows | None
    ) -> ListUnit:
        """Return the unit that writes one document again."""
        folder, name = self._place.folder, f"{number}"
        return ListUnit(
            name=name,
            file=str(folder.rows(sheet.file).absolute()),
            start=sheet.start,
            stop=sheet.start + sheet.rows,
            at=plan.at,
            changes=changes,
            place=self._place.address,
            base_uri=plan.base_uri,
            limits=PageLimits(),
            outcome=str(folder.outcome(_REPAIR, name).absolute()),
        )

    def _report(self, counts: ImportCounts, *, is_first: bool) -> PublicationResult:
        created, updated, deleted, _ = self._counts
        omissions = [Omission(name=uri[:300], reason=fault) for uri, fault in counts.faults]
        if counts.repeated:
            message = f"{counts.repeated:,} rows have a URI of another row: the newest row counts"
            omissions.append(Omission(name="the table", reason=message))
        return PublicationResult(
            settings=self._settings,
            scan=ScanReport(files=self._inventory.rows, omitted=counts.refused + counts.repeated),
            publication=Publication(
                written=tuple(self._written),
                created=created,
                updated=updated,
                deleted=deleted,
                first=is_first,
            ),
            omissions=tuple(omissions),
        )


def _counts_of(task: PendingPublication) -> tuple[int, int, int]:
    return task.created, task.updated, task.deleted
