"""Dry runs: each planned action of a pull or repair, reported as an ``item``."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from resourcesync.destination.options import Review
from resourcesync.destination.planner import Delete, Fetch, ReviewedDecision
from resourcesync.destination.reports import Mode
from resourcesync.ports import Reporter


def item_review(report: Reporter, folder: Path) -> Review:
    """Return a review that reports each planned action as an ``item``."""

    def review(mode: Mode, decide: Callable[[], Iterator[ReviewedDecision]], same: int) -> None:
        del mode, same
        in_the_way = 0
        for decision in decide():
            fields = _planned_item(decision)
            if fields:
                report("item", {"status": "ok", **fields, "dry_run": True})
            if fields.get("action") == "create":
                in_the_way += os.path.lexists(folder / str(fields["path"]))
        if in_the_way:
            report("warning", _quarantine_warning(in_the_way))

    return review


def _quarantine_warning(files: int) -> Mapping[str, object]:
    are = "file is" if files == 1 else "files are"
    moved = "those whose content differs will be moved to .resourcesync/quarantine"
    message = f"{files:,} {are} at the paths of resources: {moved}"
    return {"code": "set-aside", "message": message}


def _planned_item(decision: ReviewedDecision) -> Mapping[str, object]:
    match decision:
        case Fetch(row):
            action = "create" if decision.creates else "update"
            return {"action": action, "uri": row.loc, "path": row.path, "bytes": row.length}
        case Delete(copy, reason):
            found = {"uri": copy.uri, "path": copy.path, "bytes": max(copy.length, 0)}
            return {"action": "delete", **found, "reason": reason}
        case _:
            return {}
