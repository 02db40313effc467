"""Plan of a run: its decisions are counted, reported, recorded for the review, and executed."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import Final, Self

import msgspec
from msgspec import structs

from resourcesync.destination import planner
from resourcesync.destination.external_sort import ExternalSorter
from resourcesync.destination.removal.deletion import plan_deletions
from resourcesync.destination.reports import DeletionResult, Mode, PlanSummary, TransferTally
from resourcesync.destination.session import SyncOutcome, SyncSession
from resourcesync.destination.transfers.transfer import ResourceTransfer


class RecordedPlan:
    """Plan of one run.

    The decisions are recorded in a temporary file, and only if there is a review: so it is shown
    what was counted, and nothing is decided again for it. Resources for which nothing is done, most
    of a large mirror, are only counted.
    """

    def __init__(self, pull: SyncSession) -> None:
        self._pull = pull
        self._decisions: ExternalSorter[planner.ReviewedDecision] = ExternalSorter(
            key=uri_of,
            dump=_encode_decision,
            load=_decode_decision,
            spill=pull.dependencies.scratch,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._decisions.close()

    def count(self, decisions: Iterable[planner.Decision], mode: Mode) -> planner.DecisionCounts:
        """Count the decisions, in any order, and record them."""
        if self._pull.options.review is not None:
            decisions = self._record(decisions)
        if not self._pull.options.dry_run:
            return planner.count_decisions(decisions, mode)
        absent: list[planner.Decision] = []
        counts = planner.count_decisions(self._collect_absent(decisions, absent), mode)
        return counts._replace(plan=structs.replace(counts.plan, absent=len(absent)))

    def _collect_absent(
        self, decisions: Iterable[planner.Decision], absent: list[planner.Decision]
    ) -> Iterator[planner.Decision]:
        """Yield the decisions; collect the fetches of what was not served before, if accepted."""
        accepted = self._pull.sync_state.accepts
        for decision in decisions:
            if isinstance(decision, planner.Fetch):
                task = self._pull.state.pending_of(decision.listed.uri)
                if task is not None and accepted(task.code):
                    absent.append(decision)
            yield decision

    def report(self, counts: planner.DecisionCounts) -> DeletionResult:
        """Report the plan, and pass the decisions to the review; return the held deletions."""
        foreseen, review = self._report(counts.plan), self._pull.options.review
        if review is not None:
            review(counts.plan.mode, self._recorded, counts.plan.same)
        return foreseen

    def _report(self, plan: PlanSummary) -> DeletionResult:
        pull, limit = self._pull, self._pull.options.max_delete
        untold = plan.delete if pull.selection.refusals.count else plan.unsignalled
        foreseen = plan_deletions(pull.state, limit, pull.state.count(), plan.delete, untold)
        fields = {name: getattr(plan, name) for name in _REPORTED}
        fields |= {"held": foreseen.held, "held_of": foreseen.held_of, "limit": str(limit)}
        pull.dependencies.report("plan", fields | {"bytes": plan.size})
        return foreseen

    def _record(self, decisions: Iterable[planner.Decision]) -> Iterator[planner.Decision]:
        for decision in decisions:
            if not isinstance(decision, planner.UpToDate | planner.Postponed):
                self._decisions.add(decision)
            yield decision

    def _recorded(self) -> Iterator[planner.ReviewedDecision]:
        return self._pull.dependencies.cancel.checked(iter(self._decisions))


def fetch_planned(
    pull: SyncSession,
    done: SyncOutcome,
    fetches: Callable[[], Generator[planner.Fetch, None, None]],
    *,
    at: int,
    wanted: Callable[[], Iterable[planner.Fetch]] | None = None,
    changes_first: bool = False,
) -> None:
    """Fetch what is planned, from dumps and then singly."""
    plan, transfer, brought = done.plan, ResourceTransfer(pull, at), TransferTally()
    dumps = (pull.found.resource_dump, pull.found.change_dump)
    if any(dumps):
        from resourcesync.destination.dumps.dump_transfer import DumpTransfer  # noqa: PLC0415 - lazy

        from_dumps = DumpTransfer(pull, plan, wanted or fetches, at)
        brought = from_dumps.fetch_from_dumps(dumps[::-1] if changes_first else dumps)
    total, size = plan.create + plan.update - brought.done, plan.size - brought.useful
    with closing(fetches()) as planned:
        fetched = transfer.execute(planned, total=total, size=max(0, size))
    # What failed from a dump was requested singly.
    done.tally = fetched.plus(structs.replace(brought, failures=[]), without="failed")
    done.is_complete = not transfer.stopped
    done.spent = pull.budget.spent


_REPORTED: Final = ("mode", "same", "create", "update", "delete", "unsized", "absent")
_KINDS: Final = (planner.Fetch, planner.Delete, planner.Retain)
_DECODERS: Final[tuple[msgspec.msgpack.Decoder[planner.ReviewedDecision], ...]] = tuple(
    map(msgspec.msgpack.Decoder, _KINDS)
)
_encode: Final = msgspec.msgpack.Encoder().encode


def uri_of(decision: planner.ReviewedDecision) -> str:
    """Return the normalised URI of a decision's resource."""
    return decision.listed.uri if isinstance(decision, planner.Fetch) else decision.copy.uri


def _encode_decision(decision: planner.ReviewedDecision) -> bytes:
    return bytes([_KINDS.index(type(decision))]) + _encode(decision)


def _decode_decision(data: bytes) -> planner.ReviewedDecision:
    return _DECODERS[data[0]].decode(data[1:])
