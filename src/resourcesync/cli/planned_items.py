"""What a dry run shows of each resource: the items that the real run would tell of."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from resourcesync.ports import Reporter

if TYPE_CHECKING:
    from resourcesync.destination.options import Review
    from resourcesync.destination.planner import Decision
    from resourcesync.destination.reports import Mode


def item_review(report: Reporter) -> "Review":
    """Return what tells of each decided action as an ``item``; what stays as it is is no action.

    Args:
        report: Takes the events.
    """

    def review(mode: "Mode", decide: "Callable[[], Iterator[Decision]]", same: int) -> None:
        del mode, same
        for decision in decide():
            fields = _planned_item(decision)
            if fields:
                report("item", {"status": "ok", **fields, "dry_run": True})

    return review


def _planned_item(decision: "Decision") -> Mapping[str, object]:
    from resourcesync.destination.planner import Delete, Fetch  # noqa: PLC0415 - help stays quick

    match decision:
        case Fetch(row):
            action = "create" if decision.creates else "update"
            return {"action": action, "uri": row.loc, "path": row.path, "bytes": row.length}
        case Delete(copy, reason):
            found = {"uri": copy.uri, "path": copy.path, "bytes": max(copy.length, 0)}
            return {"action": "delete", **found, "reason": reason}
        case _:
            return {}
