"""Shares jobs among processes of their own, one for each processor."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from tests.support.preloaded import Preloaded

Host = TypeVar("Host", bound=Preloaded)
Job = TypeVar("Job")
Done = TypeVar("Done")


def share(
    start: Callable[[Path], Host],
    home: Path,
    jobs: Iterable[Job],
    work: Callable[[Host, Job], Done],
) -> Iterator[tuple[Job, Done]]:
    """Let each job be done by a host that has nothing to do; yield them in their order."""
    idle = SimpleQueue[Host]()

    def one(job: Job) -> Done:
        host = idle.get()
        try:
            return work(host, job)
        finally:
            idle.put(host)

    many = os.cpu_count() or 1
    with ExitStack() as held, ThreadPoolExecutor(many) as pool:
        for number in range(many):
            host = start(home / f"{number}")
            held.enter_context(host)
            idle.put(host)
        listed = list(jobs)
        yield from zip(listed, pool.map(one, listed), strict=True)
