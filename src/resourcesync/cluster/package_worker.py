"""Worker's part for one package of a dump: install the needed members (§11)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from resourcesync.cluster.units import PackageUnit, SliceOutcome, listed_of
from resourcesync.cluster.worker import (
    FencedCopies,
    PlanClock,
    UnitAttempt,
    WorkerTools,
    failed_outcome,
    results_of,
    selection_of,
)
from resourcesync.destination.cursor import Cursor
from resourcesync.destination.dumps.dump_transfer import DumpTransfer
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.lists.manifests import (
    new_fetch_sorter,
    new_manifest_sorter,
    read_manifest,
)
from resourcesync.destination.lists.packages import DumpPackage
from resourcesync.destination.options import Dependencies, PullOptions
from resourcesync.destination.planner import Absence, Fetch, decide
from resourcesync.destination.reports import Mode, PlanSummary
from resourcesync.destination.session import SyncSession
from resourcesync.destination.sync_state import cursor_note
from resourcesync.errors import ResourceSyncError
from resourcesync.ports.engines import UnitOutcome
from resourcesync.ports.mirror import MirrorStateStore, StateTransaction
from resourcesync.ports.tables import DoneRow, WorkRow

if TYPE_CHECKING:
    from resourcesync.documents.packages.reader import PackageReader

WANTED: Final = "wanted/"
"""Prefix of the names of slices that packages may contain."""
INDEX: Final = "wanted.json"
"""The slices' names, each with its first URI, in order."""
MATCHED: Final = ".matched"
"""Suffix of the file with the rows that a package may install, written before it does."""
PERMIT: Final = ".permit"
"""Suffix of the file that permits the unit to install copies, as long as it exists."""
_GROUP: Final = 1_000


def pairs_of(name: str, attempt: str) -> str:
    """Return the name of the file with the rows that an attempt at a package installed."""
    return f"{name}.{attempt}.pairs"


def unpack(unit: PackageUnit, tools: WorkerTools) -> UnitOutcome:
    """Install the needed members of a package, and write the outcome to a file."""
    try:
        return _unpack(unit, tools)
    except ResourceSyncError as error:
        return failed_outcome(unit.name, error, tools)


def _unpack(unit: PackageUnit, tools: WorkerTools) -> UnitOutcome:
    attempt = UnitAttempt(unit.name, f"{unit.name}{PERMIT}", tools)
    names = pairs_of(unit.name, attempt.number), results_of(unit.name, attempt.number)
    work, done = map(tools.file, names)
    with tools.memory() as state:
        package = _PackageFetch(_pull(unit, tools, state, attempt), unit, tools)
        package.fetch_package()
        count = tools.tables.write_work(work, (row for row, _ in package.fetched()))
        tools.tables.write_done(done, (row for _, row in package.fetched()))
    attempt.check()
    tools.exchange.send(names[0], work)
    tools.exchange.send(names[1], done)
    requests, received = tools.traffic()
    result = SliceOutcome(
        tally=package.tally, requests=requests, received=received, attempt=attempt.number
    )
    return UnitOutcome(unit.name, count, wait=tools.wait(), details=msgspec.json.encode(result))


def _pull(
    unit: PackageUnit, tools: WorkerTools, state: MirrorStateStore, attempt: UnitAttempt
) -> SyncSession:
    """Return a session whose mirror is as large as the package's members."""
    terms = unit.options
    state.commit(StateTransaction(notes=cursor_note(Cursor(generation=terms.generation - 1))))
    dependencies = Dependencies(
        folder=unit.name,
        fetcher=tools.fetcher,
        copies=FencedCopies(tools, attempt, is_begun=True),
        state=state,
        clock=PlanClock(terms, tools.clock),
        cancel=tools.cancel,
        report=lambda _event, _fields: None,
        scratch=tools.scratch,
        check_folder=lambda: None,
        purge=lambda _: None,
        traffic=tools.traffic,
    )
    options = PullOptions(
        dumps="always",
        verify="lenient" if terms.lenient else "strict",
        own_algorithm=terms.own_algorithm,
    )
    return SyncSession(dependencies, options, unit.found, selection_of(terms, tools.mappers))


class _PackageFetch(DumpTransfer):
    """One package, and its needed members."""

    def __init__(self, pull: SyncSession, unit: PackageUnit, tools: WorkerTools) -> None:
        super().__init__(pull, PlanSummary(mode=Mode.BASELINE), lambda: (), unit.options.at)
        self._unit = unit
        self._tools = tools
        self._matched: list[WorkRow] = []

    def fetch_package(self) -> None:
        """Fetch the package and install the needed members; any fault of it is recorded."""
        with new_fetch_sorter(self._open_temporary) as nothing:
            self._fetch_package(self._unit.offered, None, nothing)
        self.tally = self._commit_batch.tally

    def _unpack(
        self, offered: DumpPackage, reader: "PackageReader", wanted: ExternalSorter[Fetch]
    ) -> None:
        """Determine the needed members, then install them."""
        del wanted
        self._match(offered, reader)
        policy = self._pull.decision_policy(Absence.UNPROVEN)
        with new_fetch_sorter(self._open_temporary) as found:
            for row in self._matched:
                decision = decide(row.copy, listed_of(row.listed), None, policy)
                # Where lists contradict each other, the Source itself decides.
                if isinstance(decision, Fetch) and not decision.listed.undated:
                    found.add(decision)
            super()._unpack(offered, reader, found)

    def _match(self, offered: DumpPackage, reader: "PackageReader") -> None:
        """Record the needed rows of the manifest; the coordinator may have to suspect them."""
        manifest = reader.manifest()
        with new_manifest_sorter(self._open_temporary) as listing:
            for member in read_manifest(manifest, 0, self._trust_of(offered, manifest.header)):
                listing.add(member)
            uris = dict.fromkeys(member.uri for member in listing)
        ordered = list(uris)
        if ordered:
            rows = self._wanted_rows(ordered[0], ordered[-1])
            self._matched = [row for row in rows if row.listed.uri in uris]
        copies = [row.copy for row in self._matched if row.copy is not None]
        for start in range(0, len(copies), _GROUP):
            self._pull.state.commit(StateTransaction(suspect=copies[start : start + _GROUP]))
        name = f"{self._unit.name}{MATCHED}"
        file = self._tools.file(name)
        self._tools.tables.write_work(file, self._matched)
        self._tools.exchange.send(name, file)

    def _wanted_rows(self, first: str, last: str) -> Iterator[WorkRow]:
        exchange = self._tools.exchange
        file = exchange.receive(INDEX)
        if file is None:
            return
        with open(file, "rb") as stream:  # noqa: PTH123 - paths are plain text here
            slices = msgspec.json.decode(stream.read(), type=list[tuple[str, str]])
        ends = [begins for _, begins in slices[1:]]
        for (name, begins), end in zip(slices, [*ends, None], strict=True):
            if begins > last or (end is not None and end <= first):
                continue
            slice_ = exchange.receive(name)
            if slice_ is not None:
                yield from self._tools.tables.read_work(slice_)

    def fetched(self) -> Iterator[tuple[WorkRow, DoneRow]]:
        """Yield the rows that are installed now, with the needed ones."""
        state = self._pull.state
        for row in self._matched:
            copy = state.copy(row.listed.uri)
            if copy is not None and copy != row.copy:
                yield row, DoneRow(row.listed.uri, copy, None)
