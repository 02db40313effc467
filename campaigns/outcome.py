"""What a campaign found: rows of a short table, and what was violated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_SHOWN: Final = 10


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The result of one campaign: rows of what was counted or measured, and each violation.

    ``again`` is the seed and the size that repeat the first violation, if not those of the whole
    run; ``missing`` is why the campaign cannot run here.
    """

    rows: list[tuple[str, object]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    again: tuple[int, int] | None = None
    tried: int | None = None
    missing: str = ""

    def add(self, label: str, value: object) -> None:
        """Add a row."""
        self.rows.append((label, value))

    def require(
        self, holds: object, otherwise: str, *, again: tuple[int, int] | None = None
    ) -> None:
        """Note a violation unless something holds; ``again``: the seed and size that show it."""
        if holds:
            return
        if not self.violations:
            self.again = again
        self.violations.append(otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a campaign is asked to do."""

    size: int
    seed: int
    folder: Path
    kills: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A campaign; ``size`` counts ``unit``.

    ``exact``: a seed fixes all that happens. Else it fixes the choices, and not when real processes
    get their turn.
    """

    run: Callable[[Asked], Outcome]
    size: int
    unit: str
    least: int = 1
    most: int | None = None
    exact: bool = False

    @property
    def bounds(self) -> str:
        """The bounds of ``size`` in words."""
        return (
            f"{self.least:,} or more" if self.most is None else f"{self.least:,} to {self.most:,}"
        )


def table(title: str, outcome: Outcome) -> Sequence[str]:
    """Return an outcome as the lines of a table."""
    width = max((len(label) for label, _ in outcome.rows), default=0)
    lines = [title, *(f"  {label:<{width}}  {_figure(value)}" for label, value in outcome.rows)]
    if outcome.missing:
        lines.append(f"  NOT RUN  {outcome.missing}")
    lines += [f"  VIOLATED  {text}" for text in outcome.violations[:_SHOWN]]
    more = len(outcome.violations) - _SHOWN
    return [*lines, f"  and {more} more"] if more > 0 else lines


def line(name: str, campaign: Campaign, asked: Asked, outcome: Outcome, seconds: float) -> str:
    """Return the one line of a campaign: what was tried, what was violated, how to see it again."""
    many = len(outcome.violations)
    tried = asked.size if outcome.tried is None else outcome.tried
    told = (
        f"{name}: {tried:,} {campaign.unit}, seed {asked.seed}: {many} violations, {seconds:.1f} s"
    )
    if not many:
        return told
    seed, size = outcome.again or (asked.seed, asked.size)
    how = "the first again" if campaign.exact else "with the same choices, as chance has it"
    return f"{told}; {how}: python -m campaigns {name} --seed {seed} --size {size}"


def _figure(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
