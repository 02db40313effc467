"""Python and our command in processes of their own."""

import subprocess
import sys
from pathlib import Path

from tests.support.commands.run import environment
from tests.support.commands.started import Started


def python(
    code: str, *arguments: str, home: Path, measured: bool = True, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own."""
    kept = environment(home).items()
    # What is imported, and how fast, is asked of us alone: coverage would be measured with us.
    unmeasured = {k: v for k, v in kept if measured or not k.startswith("COVERAGE")}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**unmeasured, **more},
    )


def command(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, which begins with all imported."""
    with Started(*arguments, cwd=Path.cwd(), env=environment(home)) as process:
        out, err = process.communicate(60)
    assert process.returncode is not None
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)
