"""The packages of a Resource Dump as units: before slices, where much is wanted (§11)."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import msgspec

from resourcesync.destination.choosing import ResourceCount, is_dump_worth_checking
from resourcesync.destination.landing import TransferTally
from resourcesync.destination.packages import DumpPackage
from resourcesync.destination.pulling import SyncSession
from resourcesync.distributed.crew import WorkerContext
from resourcesync.distributed.lists import host_of
from resourcesync.distributed.package_work import INDEX, PERMIT, WANTED
from resourcesync.distributed.slices import PACKAGE_PREFIX, SliceQueue, SliceResults, closable
from resourcesync.distributed.units import PackageUnit, UnitOptions
from resourcesync.distributed.work import write_file
from resourcesync.errors import BudgetError, DocumentError, SourceError
from resourcesync.ports.tables import JoinResult, WorkSlice


class PackageFetcher:
    """The packages of the Resource Dump of a pull.

    Args:
        pull: What the pull works with.
        crew: Workers and tables.
        slices: Takes what workers did.
    """

    def __init__(self, pull: SyncSession, crew: WorkerContext, slices: SliceQueue) -> None:
        self._pull = pull
        self._workers = crew
        self._slices = slices

    def fetch(self, joined: JoinResult, terms: UnitOptions) -> SliceResults | None:
        """Have packages unpacked; ``None`` when that is not worth it, or nothing offers any.

        All packages are taken or none: their manifests are not looked at before. So it is worth
        it when most of what the Source has is wanted, or the operator says so.

        Args:
            joined: What is wanted.
            terms: Of the pull.
        """
        uri, policy = self._pull.found.resource_dump, self._pull.options.dumps
        wanted = joined.create + joined.update
        is_most = policy == "always" or wanted > joined.same
        if (
            uri is None
            or not is_most
            or not is_dump_worth_checking(ResourceCount(count=wanted), policy)
        ):
            return None
        try:
            packages = self._pull.packages.packages_at(uri)
        except (SourceError, DocumentError) as error:
            self._pull.warn("bad-dump", f"the dump at {uri} is of no use: {error.message}")
            return None
        self._send_wanted(joined.slices)
        try:
            return self._unpack_all(packages, terms)
        finally:
            for name in (INDEX, *self._workers.exchange.names(WANTED)):
                self._workers.exchange.remove(name)

    def _send_wanted(self, slices: Sequence[WorkSlice]) -> None:
        """Let workers see what is wanted."""
        index: list[tuple[str, str]] = []
        for number, one in enumerate(slices):
            name = f"{WANTED}{number:06}"
            first = next(iter(self._workers.tables.read_work(one.file)))
            self._workers.exchange.send(name, one.file)
            index.append((name, first.listed.uri))
        file = f"{self._workers.folder()}/index"
        write_file(file, msgspec.json.encode(index))
        self._workers.exchange.send(INDEX, file)

    def _unpack_all(self, packages: Iterable[DumpPackage], terms: UnitOptions) -> SliceResults:
        ended, waiting = SliceResults(TransferTally()), dict[str, int | None]()
        units = self._units(packages, terms, waiting)
        try:
            with closing(closable(self._workers.unpack(units))) as outcomes:
                for outcome in outcomes:
                    self._pull.budget.release(waiting.pop(outcome.name, None))
                    if outcome.failed is None:
                        self._slices.accept_package(outcome.name)
                        ended = ended.plus(self._slices.decode_outcome(outcome))
                    else:
                        message = f"a package is of no use: {outcome.failed[1]}"
                        self._pull.warn("bad-package", message)
                        self._slices.discard_package(outcome.name)
        except BudgetError:
            self._pull.budget.expire()
        for name in waiting:
            self._slices.discard_package(name)
        return ended

    def _units(
        self, packages: Iterable[DumpPackage], terms: UnitOptions, waiting: dict[str, int | None]
    ) -> Iterator[PackageUnit]:
        token = f"{self._workers.folder()}/token"
        write_file(token, b"wanted")
        for number, offered in enumerate(packages):
            if not self._pull.budget.reserve(offered.entry.length):
                return
            name = f"{PACKAGE_PREFIX}{terms.run}-{number:06}"
            self._workers.exchange.send(f"{name}{PERMIT}", token)
            waiting[name] = offered.entry.length
            host, found = host_of(offered.uri), self._pull.discovered
            yield PackageUnit(name=name, host=host, offered=offered, found=found, options=terms)
