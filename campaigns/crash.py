"""Runs in which the nth operation on the disk fails: for each n, once and from then on."""

import errno
from typing import Final

from campaigns.outcome import Asked, Campaign, Outcome
from tests.support.failing import KINDS, SCENES, Point, Scenes, has_compiler, scenes


def run(asked: Asked) -> Outcome:
    """Try every operation, or as many as ``size`` allows, evenly spread."""
    outcome = Outcome()
    if not has_compiler():
        outcome.violations.append("no C compiler on Linux: operations cannot be made to fail")
        return outcome
    with scenes(asked.folder) as prepared:
        points = list(_points(prepared))
        step = max(1, -(-len(points) // asked.size))
        tried = points[asked.seed % step :: step]
        for point in tried:
            outcome.violations += [f"{point}: {wrong}" for wrong in prepared.trial(point)]
    for scene in SCENES:
        outcome.add(f"{scene}: points", sum(point.scene == scene for point in points))
        outcome.add(f"{scene}: tried", sum(point.scene == scene for point in tried))
    outcome.add("errors", ", ".join(errno.errorcode[error] for error in KINDS))
    outcome.require(tried, "nothing was tried")
    return outcome


def _points(prepared: Scenes) -> list[Point]:
    return [
        Point(scene, nth, error, persistent)
        for scene in SCENES
        for error in KINDS
        for nth in range(prepared.operations(scene, error))
        for persistent in (False, True)
    ]


CAMPAIGN: Final = Campaign(run=run, size=10_000, unit="points at most")
