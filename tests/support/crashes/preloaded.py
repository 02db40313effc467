"""A process in which a C library of ours stands before the system's, and to which jobs are sent."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.support.commands.run import environment

ROOT: Final = Path(__file__).parents[3]


class Preloaded:
    """A module that works off lines of JSON, with a library preloaded.

    Args:
        home: A folder to make, in memory at best.
        code: What the library is made of.
        module: The module to run: its arguments are the library and an empty folder.
    """

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=60)

    def ask(self, *job: object) -> Any:
        """Let a job be done; return what is told of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        told = self._process.stdout.readline()
        assert told, f"the process ended: {job}"
        return json.loads(told)


def has_compiler() -> bool:
    """Whether such a library can be made."""
    return shutil.which("cc") is not None and sys.platform == "linux"


def in_memory(folder: Path) -> Path:
    """Return a folder in memory where there is such a disk, else the other one: much is written."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else folder
