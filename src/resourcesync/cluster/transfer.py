"""Transfer by workers: a plan is cut into slices, which workers fetch within the run's budget."""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import Final
from urllib.parse import urlsplit

from resourcesync.cluster.rows import write_rows
from resourcesync.cluster.slices import DONE_PREFIX, WORK_PREFIX, SliceResults
from resourcesync.cluster.units import SliceUnit, WorkerContext, unit_options
from resourcesync.destination.planner import Fetch, without_patch
from resourcesync.destination.transfers.budget import Budget
from resourcesync.destination.transfers.commit import TransferPolicy, TransferTally
from resourcesync.errors import BudgetError
from resourcesync.ports import Clock, Reporter
from resourcesync.ports.engines import UnitOutcome

_LEAST_ROWS: Final = 500
_SLICES: Final = 64
_SAMPLE: Final = 100
_MOST_FAILURES: Final = 1_000


class SharedTransfer:
    """Executor of fetches by workers; each result is recorded as it arrives.

    Args:
        context: Workers and their exchange.
        policy: Strictness and limits.
        clock: Time.
        report: Receives events.
    """

    def __init__(
        self, context: WorkerContext, policy: TransferPolicy, clock: Clock, report: Reporter
    ) -> None:
        self._workers = context
        self._policy = policy
        self._report = report
        self._options = unit_options(policy, context)
        self._results = SliceResults(context, clock, report)
        self._waiting: dict[str, SliceUnit] = {}
        self._tally = TransferTally()
        self._is_complete = True

    @property
    def stopped(self) -> bool:
        """True if a slice was not fetched, or the run reached a limit."""
        return not self._is_complete or bool(self._policy.budget.spent)

    def execute(self, fetches: Iterable[Fetch], *, total: int, size: int) -> TransferTally:
        """Execute the fetches; return their counts.

        Args:
            fetches: Fetches; read lazily.
            total: Their number.
            size: Bytes to fetch as far as known, for progress.

        Raises:
            EngineError: The engine failed; complete results are recorded.
            StorageError: The mirror cannot be written; the same holds.
        """
        budget = self._policy.budget
        rows = min(self._workers.slice_rows, max(_LEAST_ROWS, total // _SLICES))
        units = self._units(iter(fetches), rows)
        try:
            with closing(_closable(self._workers.fetch(units))) as outcomes:
                for outcome in outcomes:
                    unit = self._waiting.pop(outcome.name)
                    budget.release(unit.size)
                    self._accept(unit, outcome)
                    self._report_progress(total, size)
                    if self._policy.fail_fast and self._tally.failed:
                        self._is_complete = False
                        break
        except BudgetError:
            budget.expire()
        for unit in self._waiting.values():
            self._is_complete = False
            self._results.abandon(unit.work)
        return self._tally

    def _accept(self, unit: SliceUnit, outcome: UnitOutcome) -> None:
        tally = self._results.accept(unit, outcome)
        if tally is None:
            self._is_complete = False
        else:
            self._tally = _sum(self._tally, tally)

    def _units(self, fetches: Iterator[Fetch], rows: int) -> Iterator[SliceUnit]:
        """Yield slices while the budget allows, of so many rows at most."""
        budget, number = self._policy.budget, 0
        while group := list(islice(fetches, rows)):
            fitting = fit_to_budget(group, budget)
            size = _size_of(fitting)
            if not budget.reserve(size):
                return
            if len(fitting) < len(group):
                budget.spent = budget.spent or "bytes"
            yield self._unit(f"{self._options.run}-{number:06}", fitting, size)
            number += 1

    def _unit(self, name: str, fetches: list[Fetch], size: int) -> SliceUnit:
        """Put a slice into the exchange, and return its unit."""
        work, file = f"{WORK_PREFIX}{name}", f"{self._workers.folder}/slice"
        plain = (fetch._replace(listed=without_patch(fetch.listed)) for fetch in fetches)
        write_rows(file, plain)
        self._workers.exchange.send(work, file)
        hosts = Counter(_host_of(fetch.listed.loc) for fetch in fetches[:_SAMPLE])
        unit = SliceUnit(
            name=f"{DONE_PREFIX}{name}",
            host=hosts.most_common(1)[0][0],
            work=work,
            rows=len(fetches),
            size=size,
            options=self._options,
        )
        self._waiting[unit.name] = unit
        return unit

    def _report_progress(self, total: int, size: int) -> None:
        self._report(
            "progress",
            {
                "done": self._tally.done,
                "total": total,
                "bytes_done": self._tally.useful,
                "bytes_total": size,
                "failed": self._tally.failed,
            },
        )


def fit_to_budget(fetches: list[Fetch], budget: Budget) -> list[Fetch]:
    """Return fetches, or the first of them when the budget does not allow all; at least one."""
    size = 0
    for number, fetch in enumerate(fetches):
        size += fetch.listed.length or 0
        if number and not budget.fits(size):
            return fetches[:number]
    return fetches


def _size_of(fetches: list[Fetch]) -> int:
    return sum(fetch.listed.length or 0 for fetch in fetches)


def _host_of(uri: str) -> str:
    """Return the host of a URI, with its port."""
    return urlsplit(uri).netloc.rpartition("@")[2].lower()


def _closable(outcomes: Iterator[UnitOutcome]) -> Generator[UnitOutcome, None, None]:
    """Return outcomes whose generator can be closed."""
    yield from outcomes


def _sum(tally: TransferTally, other: TransferTally) -> TransferTally:
    fixity = Counter(tally.fixity)
    fixity.update(other.fixity)
    return TransferTally(
        created=tally.created + other.created,
        updated=tally.updated + other.updated,
        same=tally.same + other.same,
        refetched=tally.refetched + other.refetched,
        failed=tally.failed + other.failed,
        open_dates=tally.open_dates + other.open_dates,
        absent=tally.absent + other.absent,
        skipped=tally.skipped + other.skipped,
        gone=tally.gone + other.gone,
        undecided=tally.undecided + other.undecided,
        useful=tally.useful + other.useful,
        contradicting=tally.contradicting + other.contradicting,
        fixity=dict(fixity),
        failures=[*tally.failures, *other.failures][:_MOST_FAILURES],
    )
