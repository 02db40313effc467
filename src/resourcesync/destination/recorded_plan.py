"""Plan of a run: its decisions are counted, reported, and recorded for the review of the run."""

import marshal
from collections.abc import Iterable, Iterator
from typing import Final, Self

from msgspec.structs import replace

from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.planner import (
    Decision,
    DecisionCounts,
    Delete,
    Fetch,
    ListedEntry,
    Postponed,
    Retain,
    ReviewedDecision,
    UpToDate,
    count_decisions,
)
from resourcesync.destination.removal.deletion import DeletionResult
from resourcesync.destination.reports import Mode
from resourcesync.destination.session import SyncSession
from resourcesync.destination.transfers.budget import check_cancelled
from resourcesync.mirror_state.rows import Copy


class RecordedPlan:
    """Plan of one run.

    The decisions are recorded in a temporary file, and only if there is a review: so it is shown
    what was counted, and nothing is decided again for it. Resources for which nothing is done, most
    of a large mirror, are only counted.
    """

    def __init__(self, pull: SyncSession) -> None:
        self._pull = pull
        self._decisions: ExternalSorter[ReviewedDecision] = ExternalSorter(
            key=uri_of,
            dump=_encode_decision,
            load=_decode_decision,
            spill=pull.dependencies.scratch,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._decisions.close()

    def count(self, decisions: Iterable[Decision], mode: Mode) -> DecisionCounts:
        """Count the decisions, in any order, and record them."""
        if self._pull.options.review is not None:
            decisions = self._record(decisions)
        if not self._pull.options.dry_run:
            return count_decisions(decisions, mode)
        absent: list[Decision] = []
        counts = count_decisions(self._collect_absent(decisions, absent), mode)
        return counts._replace(plan=replace(counts.plan, absent=len(absent)))

    def _collect_absent(
        self, decisions: Iterable[Decision], absent: list[Decision]
    ) -> Iterator[Decision]:
        """Yield the decisions; collect the fetches of what was not served before, if accepted."""
        accepted = self._pull.sync_state.accepts
        for decision in decisions:
            if isinstance(decision, Fetch):
                task = self._pull.state.pending_of(decision.listed.uri)
                if task is not None and accepted(task.code):
                    absent.append(decision)
            yield decision

    def report(self, counts: DecisionCounts) -> DeletionResult:
        """Report the plan, and pass the decisions to the review; return the held deletions."""
        foreseen = self._pull.report_plan(counts.plan)
        review = self._pull.options.review
        if review is not None:
            review(counts.plan.mode, self._recorded, counts.plan.same)
        return foreseen

    def _record(self, decisions: Iterable[Decision]) -> Iterator[Decision]:
        for decision in decisions:
            if not isinstance(decision, UpToDate | Postponed):
                self._decisions.add(decision)
            yield decision

    def _recorded(self) -> Iterator[ReviewedDecision]:
        return check_cancelled(iter(self._decisions), self._pull.dependencies.cancel)


_COPY_DECISIONS: Final = (Delete, Retain)


def uri_of(decision: ReviewedDecision) -> str:
    """Return the normalised URI of a decision's resource."""
    return decision.listed.uri if isinstance(decision, Fetch) else decision.copy.uri


def _encode_decision(decision: ReviewedDecision) -> bytes:
    """Return a decision as bytes; named tuples and enums are encoded as plain values."""
    if isinstance(decision, Fetch):
        listed, before, *how = decision
        listed = listed._replace(change=str(listed.change))
        encoded = None if before is None else tuple(before)
        return marshal.dumps((-1, tuple(listed), encoded, *how))
    return marshal.dumps(
        (_COPY_DECISIONS.index(type(decision)), tuple(decision.copy), *decision[1:])
    )


def _decode_decision(data: bytes) -> ReviewedDecision:
    kind, first, *rest = marshal.loads(data)  # noqa: S302 - a temporary file of our own
    if kind < 0:
        before, *how = rest
        return Fetch(ListedEntry._make(first), None if before is None else Copy._make(before), *how)
    made: ReviewedDecision = _COPY_DECISIONS[kind](Copy._make(first), *rest)
    return made
