"""Starts the process in which power cuts are tried, and gives it work."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.support.commands import environment

ROOT: Final = Path(__file__).parents[2]
_CODE: Final = Path(__file__).with_name("write_order.c")


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


class PowerCuts:
    """Cuts the power, as often as asked.

    Args:
        home: A folder to make, in memory at best.
    """

    def __init__(self, home: Path) -> None:
        library, work = home / "write_order.so", home / "work"
        work.mkdir(parents=True)
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", library, _CODE, "-ldl", "-lpthread"],
            check=True,
            timeout=60,
        )
        more = {
            "LD_PRELOAD": str(library),
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "PYTHONHASHSEED": "0",  # the same seed, the same states
        }
        kept = {k: v for k, v in environment(home).items() if not k.startswith("COVERAGE")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.power_loss", str(library), str(work)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**kept, **more},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=60)

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
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([scene, seed, mutant, most, twice]) + "\n")
        self._process.stdin.flush()
        told = self._process.stdout.readline()
        assert told, f"the process ended: {scene}, seed {seed}, {mutant or 'no mutant'}"
        operations, states, judged, wrong = json.loads(told)
        return Cut(operations=operations, states=states, judged=judged, wrong=wrong)


def has_compiler() -> bool:
    """Whether the library can be made that records."""
    return shutil.which("cc") is not None and sys.platform == "linux"
