"""What was measured: samples, and rows of the table."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["ours", "peer", "floor"]
"""Ours; a peer that does the same work; a floor that shows what the machine can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One run of one contender. ``problem`` says why it does not count."""

    seconds: float
    cpu: float = 0.0
    peak_mib: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Something that can do the job once, and how many items that one run has."""

    name: str
    role: Role
    items: int
    once: Callable[[], Sample]
    note: str = ""


@dataclass(slots=True, kw_only=True)
class Row:
    """A contender and all its samples."""

    name: str
    role: Role
    items: int
    note: str = ""
    samples: list[Sample] = field(default_factory=list)

    @property
    def good(self) -> list[Sample]:
        """The samples that count."""
        return [sample for sample in self.samples if not sample.problem]

    @property
    def problem(self) -> str:
        """Why there is nothing to count, or what went wrong in some of the runs."""
        return next((sample.problem for sample in self.samples if sample.problem), "")

    @property
    def seconds(self) -> float | None:
        """The median wall time of one run."""
        return statistics.median(s.seconds for s in self.good) if self.good else None

    @property
    def cpu(self) -> float | None:
        """The median CPU time of one run."""
        return statistics.median(s.cpu for s in self.good) if self.good else None

    @property
    def peak_mib(self) -> float | None:
        """The largest peak of memory."""
        return max(s.peak_mib for s in self.good) if self.good else None

    @property
    def rate(self) -> float | None:
        """Items in a second."""
        seconds = self.seconds
        return self.items / seconds if seconds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """The rows of one job."""

    name: str
    title: str
    rows: Sequence[Row]
    notes: Sequence[str] = ()


def interleave(contenders: Sequence[Contender], runs: int) -> list[Row]:
    """Run A B C, A B C, ...: what else the machine does falls on all of them alike."""
    rows = [Row(name=c.name, role=c.role, items=c.items, note=c.note) for c in contenders]
    for _ in range(runs):
        for contender, row in zip(contenders, rows, strict=True):
            if len(row.samples) > len(row.good):
                continue  # it failed once; a median of the rest would flatter it
            row.samples.append(contender.once())
    return rows
