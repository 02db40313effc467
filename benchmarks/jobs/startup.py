"""How long a user waits for the help screen."""

import functools
import sys
from collections.abc import Iterator

from benchmarks import ours, peers
from benchmarks.bench import Bench, Skipped
from benchmarks.results import Contender, JobResult, interleave


def run(bench: Bench) -> Iterator[JobResult]:
    """Measure ``--help``."""
    if not ours.installed():
        raise Skipped("the resourcesync command is not installed")
    contenders = [
        Contender(
            name="resourcesync --help",
            role="ours",
            items=1,
            once=lambda: bench.once(ours.help_screen()),
        )
    ]
    sync = peers.script("resync-sync")
    if sync:
        contenders.append(
            Contender(
                name="resync-sync --help",
                role="peer",
                items=1,
                once=lambda: bench.once([sync, "--help"]),
            )
        )
    for name, code in (("python", "pass"), ("python, import click", "import click")):
        command = [sys.executable, "-c", code]
        contenders.append(
            Contender(name=name, role="floor", items=1, once=functools.partial(bench.once, command))
        )
    rows = interleave(contenders, max(bench.runs, 5))
    yield JobResult(
        name="startup",
        title="print the help screen",
        rows=rows,
        notes=["an annex with a command, such as the simulator, adds importlib.metadata: 20 ms"],
    )
