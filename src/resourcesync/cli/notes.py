"""A screen for work that nobody looks at: what it is told is kept for later."""

from collections.abc import Mapping

from resourcesync.cli.output import Outcome, Problem


class Notes:
    """A screen that shows nothing and keeps what it was told."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.mirrors: list[Mapping[str, object]] = []

    def start(self, fields: Mapping[str, object]) -> None:
        """Show nothing."""

    def report(self, event: str, fields: Mapping[str, object]) -> None:
        """Keep a mirror."""
        if event == "mirror":
            self.mirrors.append(fields)

    def problem(self, problem: Problem) -> None:
        """Keep an error."""
        self.problems.append(problem)

    def end(self, outcome: Outcome) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Have nothing to give back."""
