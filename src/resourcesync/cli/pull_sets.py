"""``resourcesync pull`` of several sets: a mirror for each, and how they ended together."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from resourcesync.cli.output import CommandOutcome, Screen, problem_of
from resourcesync.cli.pull_many import BatchResult, combine_outcomes, report_failure
from resourcesync.errors import ResourceSyncError
from resourcesync.ports import Reporter

if TYPE_CHECKING:
    from resourcesync.wiring.sets import SetMirror, SetPlan


class SetTarget(NamedTuple):
    """What is pulled: the Source's address, the mirror's folder, the set."""

    address: str
    folder: Path
    uri: str


PullSet = Callable[[SetTarget, Reporter], CommandOutcome]
"""Pulls one mirror; raises ``ResourceSyncError``."""


def pull_all_sets(
    plan: "SetPlan", pull_one: PullSet, screen: Screen, *, dry_run: bool
) -> CommandOutcome:
    """Pull the mirror of each set; one that fails does not keep the others back.

    Raises:
        StorageError: The sets cannot be remembered.
    """
    unasked = "" if plan.failure is None else plan.failure.message
    screen.report(
        "sets", {"source": plan.source, "sets": len(plan.mirrors), "not_asked_anew": unasked}
    )
    if not dry_run:
        plan.remember()
    try:
        outcomes = [_pull_set(plan, mirror, pull_one, screen) for mirror in plan.mirrors]
    finally:
        plan.remove_if_empty()
    ended = (
        BatchResult(str(it.folder), {"mirror": str(it.folder), "set": it.uri}, outcome)
        for it, outcome in zip(plan.mirrors, outcomes, strict=True)
    )
    return combine_outcomes(ended, "set")


def _pull_set(
    plan: "SetPlan", mirror: "SetMirror", pull_one: PullSet, screen: Screen
) -> CommandOutcome:
    where = {"mirror": str(mirror.folder)}

    def report(event: str, fields: Mapping[str, object]) -> None:
        screen.report(event, {**where, **fields})

    screen.report("mirror", {**where, "set": mirror.uri, "offered": mirror.offered})
    try:
        return pull_one(SetTarget(plan.source, mirror.folder, mirror.uri), report)
    except ResourceSyncError as error:
        return report_failure(problem_of(error), str(mirror.folder), screen)
