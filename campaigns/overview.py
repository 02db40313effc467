"""The pages, figures and status of many mirrors: what each costs while ``watch`` waits.

The mirrors are copies of two: one in sync, and one whose Source is down, for every twentieth. The
service has nothing to pull, so what it uses is the cost of the answers.
"""

import contextlib
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.app.serving.applications import find_tree
from resourcesync.server.uvicorn_server import ServerThread
from tests.support.commands.run import environment, free_port

_FILES: Final = 5
_FAILING: Final = 20
_PATIENCE: Final = 300.0
_SETTLED: Final = 3.0
"""A state that was written just now is read each time, as its next version may look the same."""
_PATHS: Final = (
    "",
    "?sort=-lag&page=2",
    "?q=m7&state=failing",
    "events",
    "metrics",
    "api/status.json",
)
_MOST_SECONDS: Final = 0.3
"""CPU of a page of a thousand mirrors; it grows with their number, and no faster."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def run(asked: Asked) -> Outcome:
    """Make the mirrors, let a service watch them, and measure its answers."""
    folder, outcome = asked.folder, Outcome()
    _make_mirrors(folder, asked.size)
    time.sleep(_SETTLED)
    with _watching(folder) as (process, base):
        first = {path: _measure(process, base + path)[0] for path in _PATHS}
        time.sleep(_SETTLED)
        for path in _PATHS:
            _, size = _measure(process, base + path)
            again = min(_measure(process, base + path)[0] for _ in range(3))
            outcome.add(f"/{path}: CPU, first", f"{first[path] * 1_000:,.0f} ms")
            outcome.add(f"/{path}: CPU, again", f"{again * 1_000:,.0f} ms, {size / 1_000:,.0f} kB")
            most = _MOST_SECONDS * max(asked.size / 1_000, 1.0)
            outcome.require(again <= most, f"/{path} takes {again:.2f} s of CPU")
        outcome.add("memory of watch", f"{_memory(process) / 1_000:,.0f} MB")
    seconds = _status(folder)
    outcome.add("resourcesync status: CPU", f"{seconds:.2f} s")
    return outcome


def _make_mirrors(folder: Path, size: int) -> None:
    tree = folder / "tree"
    tree.mkdir()
    for number in range(_FILES):
        (tree / f"{number}.txt").write_text(f"{number}\n" * 100)
    port = free_port()
    base = f"http://127.0.0.1:{port}/"
    publish_tree(tree, {"url": base}, clock=SystemClock())
    with ServerThread(find_tree(tree).application(SystemClock()), port=port):
        for name in ("good", "down"):
            _command(folder, "pull", base, name)
    _command(folder, "pull", "down", is_good=False)
    tables = ['[defaults]\nevery = "30d"\n']
    for number in range(size):
        kind = "good" if number % _FAILING else "down"
        shutil.copytree(folder / kind, folder / "mirrors" / f"m{number}")
        dest = f"mirrors/m{number}"
        tables.append(f'[mirror.m{number}]\nsource = "{base}"\ndest = "{dest}"\n')
    (folder / "resourcesync.toml").write_text("".join(tables))


def _command(folder: Path, *words: str, is_good: bool = True) -> None:
    command = [sys.executable, "-m", "resourcesync", *words, "-qq"]
    done = subprocess.run(command, cwd=folder, env=environment(folder), check=False)
    if (done.returncode == 0) != is_good:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}")


@contextlib.contextmanager
def _watching(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = free_port()
    command = [sys.executable, "-m", "resourcesync", "watch", "--admin", f"127.0.0.1:{port}"]
    with (folder / "watch.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(folder), stdout=log, stderr=log
        )
        try:
            _wait_until_ready(f"http://127.0.0.1:{port}/readyz", folder / "watch.log")
            yield process, f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()
            process.wait(_PATIENCE)


def _wait_until_ready(address: str, log: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        with contextlib.suppress(URLError, OSError), urlopen(address, timeout=10):
            if b"Watching" in log.read_bytes():
                return
        time.sleep(0.05)
    raise RuntimeError(f"the service does not start: {log.read_text()}")


def _measure(process: "subprocess.Popen[bytes]", address: str) -> tuple[float, int]:
    """Return the CPU seconds of one answer, and its size."""
    before = _cpu(process)
    with urlopen(address, timeout=_PATIENCE) as answer:
        size = len(answer.read())
    return _cpu(process) - before, size


def _cpu(process: "subprocess.Popen[bytes]") -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory(process: "subprocess.Popen[bytes]") -> int:
    """Return the memory of a process in kB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def _status(folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "resourcesync", "status"]
    subprocess.run(
        command, cwd=folder, env=environment(folder), stdout=subprocess.DEVNULL, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


CAMPAIGN: Final = Campaign(run=run, size=1_000, unit="mirrors")
