"""Runs commands for measurement, each under a fresh small starter."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results import Sample

_STARTER = Path(__file__).with_name("child.py")
LIMIT = 300.0
"""Seconds that a command may take, unless a job says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one command did and cost."""

    exit: int
    sample: Sample
    stdout: str
    stderr: str


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    limit: float = LIMIT,
) -> Outcome:
    """Run ``command`` to its end and measure it; whatever goes wrong is in the sample."""
    with tempfile.TemporaryDirectory(prefix="rs-bench-run-") as folder:
        report, out, err = (Path(folder, name) for name in ("report", "out", "err"))
        starter = [sys.executable, "-I", "-S", _STARTER, report, out, err, *command]
        with subprocess.Popen(
            [str(word) for word in starter],
            cwd=cwd,
            env=None if env is None else dict(env),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
        ) as process:
            try:
                process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return _failed(f"stopped after {limit:.0f} s")
        if not report.exists():
            return _failed(f"{Path(command[0]).name} could not be started")
        told = json.loads(report.read_text())
        stdout, stderr = (path.read_text(errors="replace") for path in (out, err))
    problem = "" if told["exit"] == 0 else f"exit {told['exit']}: {_last_line(stderr or stdout)}"
    sample = Sample(
        seconds=told["seconds"], cpu=told["cpu"], peak_mib=told["peak_kib"] / 1024, problem=problem
    )
    return Outcome(exit=told["exit"], sample=sample, stdout=stdout, stderr=stderr)


def _failed(problem: str) -> Outcome:
    return Outcome(exit=-1, sample=Sample(seconds=0.0, problem=problem), stdout="", stderr="")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:160] if lines else ""
