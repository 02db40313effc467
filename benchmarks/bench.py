"""What every job is given: sizes, folders, and a way to run commands in them."""

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import ours, processes
from benchmarks.results import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The settings of one run of the benchmarks."""

    runs: int
    quick: bool
    disk: Path
    memory: Path | None
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def size(self, full: int, quick: int) -> int:
        """Return the size of an input."""
        return quick if self.quick else full

    @property
    def fast(self) -> Path:
        """The folder in memory, or the disk when there is none."""
        return self.memory or self.disk

    @contextmanager
    def folder(self, parent: Path | None = None) -> Iterator[Path]:
        """Give an empty folder while the block runs."""
        path = (parent or self.disk) / f"{next(self._numbers):04d}"
        path.mkdir()
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def environment(self) -> Mapping[str, str]:
        """Return the environment of every measured command."""
        home = self.disk / "home"
        home.mkdir(exist_ok=True)
        return ours.environment(home)

    def run(
        self,
        command: Sequence[str | Path],
        cwd: Path | None = None,
        *,
        limit: float = processes.LIMIT,
    ) -> processes.Outcome:
        """Run a command, measured, for ``limit`` seconds at most."""
        return processes.run(command, cwd=cwd or self.disk, env=self.environment(), limit=limit)

    def once(self, command: Sequence[str | Path], cwd: Path | None = None) -> Sample:
        """Run a command; return what it cost."""
        return self.run(command, cwd).sample

    def must(self, command: Sequence[str | Path]) -> None:
        """Run a command that prepares a measurement."""
        outcome = self.run(command)
        if outcome.sample.problem:
            raise Skipped(f"{Path(command[0]).name}: {outcome.sample.problem}")


class Skipped(Exception):  # noqa: N818 - it is no error that something cannot be measured here
    """A job that cannot be measured here, and why."""


def settle() -> None:
    """Write out what earlier runs left in the page cache, so that no later run pays for it."""
    os.sync()


def count_files(folder: Path) -> int:
    """Return the number of generated files below a folder, without walking in Python."""
    listed = subprocess.run(
        ["find", folder, "-type", "f", "-path", "*/shelf-*/object-*.txt", "-printf", "."],
        check=True,
        capture_output=True,
    )
    return len(listed.stdout)
