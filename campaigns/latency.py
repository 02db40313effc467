"""From a file that is written to its copy in place: a Source, its hub, and a mirror that watches.

The Source publishes after each write, two a second; one delivery in twenty is lost on its way.
Three programs as anybody runs them: ``serve --hub``, ``watch`` with ``push = true``, and this one.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Final

from campaigns.lossy import LossyWay
from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from tests.support.commands.run import environment, free_port

_RATE: Final = 2.0
_LOSS: Final = 0.05
_BEGIN: Final = 60.0
_PATIENCE: Final = 60.0
_LOOK: Final = 0.002


def run(asked: Asked) -> Outcome:
    """Write, publish, and see when each copy is there."""
    outcome = Outcome()
    root, copy = asked.folder / "public", asked.folder / "copy"
    root.mkdir()
    (root / "first.txt").write_text("first\n")
    port, listen = free_port(), free_port()
    base = f"http://127.0.0.1:{port}/"
    chosen = {"url": base, "hubs": (f"{base}hub",), "notify": True}
    publish_tree(root, chosen, clock=SystemClock())
    with LossyWay(listen, _LOSS, asked.seed) as way, contextlib.ExitStack() as stack:
        _configure(asked.folder, base, copy, listen, way.port)
        words = ["serve", str(root), "--bind", f"127.0.0.1:{port}", "--hub", "--private-callbacks"]
        stack.enter_context(_program(asked.folder, "serve", words))
        stack.enter_context(_program(asked.folder, "watch", ["watch", "--config", "watch.toml"]))
        if not _subscribed(root, copy):
            outcome.violations.append("the mirror did not subscribe")
            return outcome
        took: list[float] = []
        written, seen = _write(root, copy, asked.size, took)
        outcome.add("of which published and told, ms, median", round(median(took) * 1000))
        _tell(outcome, written, seen)
        outcome.add("deliveries that arrived", way.passed)
        outcome.add("deliveries that were lost", way.lost)
        outcome.require(way.lost or asked.size < 100, "none was lost: nothing was proven")
    return outcome


def _configure(folder: Path, base: str, copy: Path, listen: int, way: int) -> None:
    folder.joinpath("watch.toml").write_text(
        f'[mirror.copy]\nsource = "{base}"\ndest = "{copy}"\nevery = "30s"\npush = true\n'
        f'[watch]\ncallback = "http://127.0.0.1:{way}/push/"\nlisten = "127.0.0.1:{listen}"\n'
        f'state = "{folder / "state"}"\n'
    )


@contextlib.contextmanager
def _program(folder: Path, name: str, words: list[str]) -> Iterator[None]:
    code = "from resourcesync.cli.main import main; main()"
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words],
            cwd=folder,
            env={**environment(folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=log,
            stderr=log,
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def _subscribed(root: Path, copy: Path) -> bool:
    """Wait for the first pull; then change something until a change comes by push."""
    _await(copy / "first.txt", _BEGIN)
    for number in range(20):
        name = f"warm-{number}.txt"
        (root / name).write_text(f"{number}\n")
        publish_tree(root, {}, clock=SystemClock())
        if _await(copy / name, 1.5):
            return True
    return False


def _write(
    root: Path, copy: Path, size: int, took: list[float]
) -> tuple[dict[str, float], Mapping[str, float]]:
    """Write files at their rate; return when each was written, and when its copy was there."""
    written: dict[str, float] = {}
    seen: dict[str, float] = {}
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set() or len(seen) < len(written):
            for name in [name for name in list(written) if name not in seen]:
                if (copy / name).exists():
                    seen[name] = time.monotonic()
            if is_over.is_set() and time.monotonic() > ended + _PATIENCE:
                return
            time.sleep(_LOOK)

    ended = 0.0
    looking = threading.Thread(target=look)
    looking.start()
    began = time.monotonic()
    for number in range(size):
        time.sleep(max(0.0, began + number / _RATE - time.monotonic()))
        name = f"{number:05d}.txt"
        (root / name).write_text(f"{number}\n")
        written[name] = time.monotonic()
        publish_tree(root, {}, clock=SystemClock())
        took.append(time.monotonic() - written[name])
    ended = time.monotonic()
    is_over.set()
    looking.join()
    return written, seen


def _await(path: Path, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK)
    return True


def _tell(outcome: Outcome, written: dict[str, float], seen: Mapping[str, float]) -> None:
    lost = [name for name in written if name not in seen]
    outcome.add("changes", len(written))
    outcome.add("changes whose copy never came", len(lost))
    outcome.require(not lost, f"{len(lost)} changes never arrived")
    ordered = sorted((seen[name] - written[name]) * 1000 for name in seen)
    for label, share in (("median", 0.5), ("p95", 0.95), ("p99", 0.99)):
        at = min(len(ordered) - 1, int(share * len(ordered)))
        outcome.add(f"written to copy in place, ms, {label}", round(ordered[at]))
    outcome.add("written to copy in place, ms, slowest", round(ordered[-1]))
    outcome.require(ordered[len(ordered) // 2] < 1000, "the median is over a second")


CAMPAIGN: Final = Campaign(run=run, size=1_000, unit="changes")
