"""A screen for work that nobody looks at: what it is told is kept for later."""

from collections.abc import Mapping
from typing import Final

from resourcesync.cli.output import CommandOutcome, Problem

_MOST_WARNINGS: Final = 100


class CollectingScreen:
    """A screen that shows nothing and keeps what it was told."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.mirrors: list[Mapping[str, object]] = []
        self.warnings: list[Mapping[str, object]] = []

    def start(self, fields: Mapping[str, object]) -> None:
        """Show nothing."""

    def report(self, event: str, fields: Mapping[str, object]) -> None:
        """Keep a mirror, or a warning; of many warnings the first."""
        if event == "mirror":
            self.mirrors.append(fields)
        elif event == "warning" and len(self.warnings) < _MOST_WARNINGS:
            self.warnings.append(fields)

    def problem(self, problem: Problem) -> None:
        """Keep an error."""
        self.problems.append(problem)

    def end(self, outcome: CommandOutcome) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Have nothing to give back."""
