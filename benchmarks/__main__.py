"""``python -m benchmarks``: one command, one table."""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks import machine, ours, peers, table
from benchmarks.bench import Bench, Skipped
from benchmarks.jobs import catalogue, documents, keep, memory, publish, pull, startup
from benchmarks.results import JobResult

_JOBS: Mapping[str, Callable[[Bench], Iterator[JobResult]]] = {
    "startup": startup.run,
    "documents": documents.run,
    "publish": publish.run,
    "pull-memory": pull.into_memory,
    "pull-disk": pull.onto_disk,
    "pull-250ms": pull.over_distant_line,
    "no-change": keep.no_change,
    "audit": keep.audit,
}
_LONG: Mapping[str, Callable[[Bench], Iterator[JobResult]]] = {"catalogue": catalogue.run}
"""Only when they are named in full."""
_MEMORY = Path("/dev/shm")


def main() -> int:
    """Measure, and print the table."""
    asked = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the folders are removed
    if not asked.no_install:
        peers.install(peers.missing())
    facts = machine.describe()
    print("machine   " + "  ".join(f"{k} {v}" for k, v in facts.items()))
    for name in peers.missing():
        print(f"skipped   {name}: not installed")
    with tempfile.TemporaryDirectory(prefix="rs-bench-", dir=asked.disk) as disk:
        memory_folder = _memory_folder()
        try:
            bench = Bench(runs=asked.runs, quick=asked.quick, disk=Path(disk), memory=memory_folder)
            bench.once(ours.warm_up())
            for result in _measure(bench, asked):
                print("\n" + "\n".join(table.job(result)), flush=True)
        finally:
            if memory_folder:
                shutil.rmtree(memory_folder, ignore_errors=True)
    return 0


def _measure(bench: Bench, asked: argparse.Namespace) -> Iterator[JobResult]:
    jobs = {"memory": memory.run} if asked.memory else {**_JOBS, **(_LONG if asked.only else {})}
    for name, job in jobs.items():
        if asked.only and not any(_is_wanted(name, wanted) for wanted in asked.only):
            continue
        print(f"... {name}", file=sys.stderr, flush=True)
        try:
            yield from job(bench)
        except Skipped as reason:
            print(f"\n{name}: skipped: {reason}", flush=True)


def _is_wanted(name: str, wanted: str) -> bool:
    return name == wanted if name in _LONG else name.startswith(wanted)


def _memory_folder() -> Path | None:
    if not _MEMORY.is_dir():
        return None
    return Path(tempfile.mkdtemp(prefix="rs-bench-", dir=_MEMORY))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller inputs, under two minutes")
    parser.add_argument(
        "--only", action="append", metavar="JOB", help=f"of {', '.join((*_JOBS, *_LONG))}"
    )
    parser.add_argument("--runs", type=int, default=3, help="runs of each contender (3)")
    parser.add_argument("--memory", action="store_true", help="measure peak memory instead")
    parser.add_argument("--disk", type=Path, metavar="DIR", help="a folder on the disk to measure")
    parser.add_argument("--no-install", action="store_true", help="install no missing peer")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
