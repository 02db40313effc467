"""The units of a published table: each writes the lists of some rows, wherever it runs (ADR 0066).

A worker needs this Python with the extra ``tables``, the folder of the table, and the folder or
the store of the documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from resourcesync.adapters.inventory import (
    read_changes,
    read_file,
    read_resources,
    write_file,
)
from resourcesync.errors import EngineError, StateError
from resourcesync.ports import Clock, DocumentStore
from resourcesync.ports.engines import HostShare, UnitOutcome
from resourcesync.source.document_writer import DocumentWriter
from resourcesync.source.inventory import ChangeRows, RowDocument, write_changes, write_pages
from resourcesync.source.naming import SourceNaming
from resourcesync.source.paging import PageLimits
from resourcesync.wiring import documents, engines

_MAX_LOCAL_ROWS: Final = 100_000
"""So many rows are written here where no engine was named: to start processes takes longer."""
_RETRY_HINT: Final = "run the same command: it goes on with what is missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListUnit:
    """Some rows that become lists: one, as a rule.

    Attributes:
        name: What it is called.
        file: The file of the rows.
        start, stop: The rows, from 0, without the last.
        at: The moment that a Resource List is of, in microseconds.
        changes: What the rows are, where they are changes; ``None`` for resources.
        place: Where the documents go: a folder of all workers, or the address of a store.
        base_uri: The URI of the resources' root.
        limits: The most that a document holds.
        outcome: The file that says what was done; it is written last.
        host: Nobody is asked.
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
        ResourceSyncError: It cannot be done.
    """
    del share  # nobody is asked
    if read_outcome(unit) is None:
        shelf = DocumentWriter(
            documents.shared_documents_at(unit.place), SourceNaming(base_uri=unit.base_uri), {}
        )
        sheets = _write_sheets(unit, shelf)
        write_file(Path(unit.outcome), msgspec.json.encode(sheets))
    return UnitOutcome(name=unit.name, rows=unit.stop - unit.start)


def _write_sheets(unit: ListUnit, shelf: DocumentWriter) -> list[RowDocument]:
    path = Path(unit.file)
    if unit.changes is None:
        rows = read_resources(path, unit.start, unit.stop)
        return write_pages(shelf, rows, path.name, unit.start, at=unit.at, limits=unit.limits)
    told = read_changes(path, unit.start, unit.stop)
    return write_changes(shelf, told, unit.changes, unit.start, limits=unit.limits)


def read_outcome(unit: ListUnit) -> list[RowDocument] | None:
    """Return the documents of a unit; ``None`` when it was not done.

    Raises:
        StateError: What it said is damaged.
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
    """Do the units that were not done yet; return the documents of all, in their order.

    Args:
        units: The units.
        store: Has the documents.
        engine: The address of the engine; empty for processes of this machine.
        clock: Time.

    Raises:
        EngineError: The engine cannot be used, or a unit was not done. Those that were are kept.
        StorageError: What they said cannot be read.
    """
    left = [unit for unit in units if not _is_done(unit, store)]
    if left:
        _run_units(left, engine, clock)
    sheets: list[RowDocument] = []
    for unit in units:
        found = read_outcome(unit)
        if found is None:
            raise EngineError(f"the unit {unit.name} was done and is not there", hint=_RETRY_HINT)
        sheets += found
    return sheets


def _is_done(unit: ListUnit, store: DocumentStore) -> bool:
    """Whether a unit was done and its documents are there; otherwise it is done again."""
    found = read_outcome(unit)
    if found is None:
        return False
    if all(store.signature(it.name) == it.known.signature for it in found):
        return True
    Path(unit.outcome).unlink(missing_ok=True)
    return False


def _run_units(units: Sequence[ListUnit], engine: str, clock: Clock) -> None:
    if not engine and sum(unit.stop - unit.start for unit in units) <= _MAX_LOCAL_ROWS:
        for unit in units:
            write_lists(unit, HostShare())
        return
    from resourcesync.distributed.politeness import HostLimits  # noqa: PLC0415 - few are so large
    from resourcesync.distributed.unit_runner import run_units  # noqa: PLC0415 - the same

    with engines.open_engine(engine or "processes") as opened:
        outcomes = run_units(opened, write_lists, units, manners=HostLimits(), clock=clock)
        failed = [(it.name, it.failed[1]) for it in outcomes if it.failed is not None]
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
