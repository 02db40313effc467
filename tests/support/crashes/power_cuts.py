"""Starts the process in which power cuts are tried, and gives it work."""

from dataclasses import dataclass
from pathlib import Path

from tests.support.crashes.preloaded import Preloaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What was found when the power was cut in a run.

    Attributes:
        operations: What the run did to the disk.
        states: How many states of the disk there were, no two of them the same.
        judged: How many of them said what no other one says: these were given to the next run.
        wrong: What was wrong in the first bad one.
    """

    operations: int
    states: int
    judged: int
    wrong: list[str]


class PowerCuts(Preloaded):
    """Cuts the power, as often as asked.

    Args:
        home: A folder to make, in memory at best.
    """

    def __init__(self, home: Path) -> None:
        super().__init__(
            home, "tests/support/crashes/write_order.c", "tests.support.crashes.power_loss"
        )

    def cut(
        self, scene: str, seed: int, *, most: int, mutant: str = "", twice: bool = False
    ) -> Cut:
        """Record a run and try states of its disk, until one is bad.

        Args:
            scene: ``pull`` or ``publish``.
            seed: What all choices follow from.
            most: States at most.
            mutant: What is done wrong; nothing when empty.
            twice: Whether the power is cut once before: the run is the one that mends this.
        """
        operations, states, judged, wrong = self.ask(scene, seed, mutant, most, twice)
        return Cut(operations=operations, states=states, judged=judged, wrong=wrong)
