"""Starts the process in which the disk fails, and gives it work."""

from dataclasses import dataclass
from pathlib import Path

from tests.support.crashes.preloaded import Preloaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """What was found when operations failed in a run.

    Attributes:
        points: Where, how and with which error the run may fail.
        tried: How many of these were tried.
        compound: After how many of them the run after it failed as well.
        hits: Operations that failed, in all.
        wrong: What was wrong after the first bad one.
    """

    points: int
    tried: int
    compound: int
    hits: int
    wrong: list[str]


class CrashRuns(Preloaded):
    """Lets the disk fail, as often as asked.

    Args:
        home: A folder to make, in memory at best.
    """

    def __init__(self, home: Path) -> None:
        super().__init__(
            home, "tests/support/crashes/failing.c", "tests.support.crashes.crash_points"
        )

    def fail(self, scene: str, seed: int, *, most: int) -> Failed:
        """Let a run fail at each of its operations, until one end of it is bad.

        Args:
            scene: One of ``power_scenes.SCENES``.
            seed: What all choices follow from.
            most: How many points at most; they are then chosen by chance.
        """
        points, tried, compound, hits, wrong = self.ask(scene, seed, most)
        return Failed(points=points, tried=tried, compound=compound, hits=hits, wrong=wrong)
