"""Processes in which a C library of ours stands before the system's, and to which jobs are sent."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from tests.support.commands.run import environment

ROOT: Final = Path(__file__).parents[3]


class Preloaded:
    def __init__(self, home: Path, code: str, module: str) -> None:
        library, work = home / "preloaded.so", home / "work"
        work.mkdir(parents=True)
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", library, ROOT / code, "-ldl", "-lpthread"],
            check=True,
            timeout=60,
        )
        more = {
            "LD_PRELOAD": str(library),
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "PYTHONHASHSEED": "0",  # the same seed, the same states
        }
        # What is noted or fails are our own operations, not those of who measures our coverage.
        kept = {k: v for k, v in environment(home).items() if not k.startswith("COVERAGE")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(library), str(work)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**kept, **more},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.communicate(timeout=60)

    def ask(self, *job: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        told = self._process.stdout.readline()
        assert told, f"the process ended: {job}"
        return json.loads(told)


def has_compiler() -> bool:
    return shutil.which("cc") is not None and sys.platform == "linux"


def in_memory(folder: Path) -> Path:
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    points: int  # where, how and with which error the run may fail
    tried: int  # how many of these were tried
    compound: int  # after how many of them the run after it failed as well
    hits: int  # operations that failed, in all
    wrong: list[str]  # what was wrong after the first bad one


class CrashRuns(Preloaded):
    def __init__(self, home: Path) -> None:
        super().__init__(
            home, "tests/support/crashes/failing.c", "tests.support.crashes.crash_points"
        )

    def fail(self, scene: str, seed: int, *, most: int) -> Failed:
        points, tried, compound, hits, wrong = self.ask(scene, seed, most)
        return Failed(points=points, tried=tried, compound=compound, hits=hits, wrong=wrong)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    operations: int  # what the run did to the disk
    states: int  # how many states of the disk there were, no two of them the same
    judged: int  # how many of them said what no other one says: these were given to the next run
    wrong: list[str]  # what was wrong in the first bad one


class PowerCuts(Preloaded):
    def __init__(self, home: Path) -> None:
        super().__init__(
            home, "tests/support/crashes/write_order.c", "tests.support.crashes.power_loss"
        )

    def cut(
        self, scene: str, seed: int, *, most: int, mutant: str = "", twice: bool = False
    ) -> Cut:
        operations, states, judged, wrong = self.ask(scene, seed, mutant, most, twice)
        return Cut(operations=operations, states=states, judged=judged, wrong=wrong)
