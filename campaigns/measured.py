"""Runs our command and watches its memory; kills it when told to."""

import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import ours
from tests.support.commands.run import script

_EVERY = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a command did and cost."""

    code: int
    seconds: float
    cpu: float
    peak_mib: float
    said: str


def command(*words: str | Path, home: Path, until: Callable[[], bool] = lambda: False) -> Measured:
    """Run our command to its end, or kill it as soon as ``until`` says so."""
    said = home / "said.txt"
    began, peak, used = time.monotonic(), 0.0, _used()
    with (
        said.open("wb") as out,
        subprocess.Popen(
            [str(word) for word in (script("resourcesync"), *words)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**ours.environment(home), **_same_code()},
        ) as process,
    ):
        while process.poll() is None:
            peak = max(peak, _peak(process.pid))
            if until():
                process.send_signal(signal.SIGKILL)
                process.wait()
                break
            time.sleep(_EVERY)
    return Measured(
        code=process.returncode,
        seconds=time.monotonic() - began,
        cpu=_used() - used,
        peak_mib=peak,
        said=said.read_text(errors="replace"),
    )


def _used() -> float:
    """Return the processor time of all processes that were started here and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _same_code() -> dict[str, str]:
    path = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": path} if path else {}


def _peak(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0")
    return int(line.split()[1]) / 1024
