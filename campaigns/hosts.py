"""Shares jobs among processes of their own, one for each processor."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from tests.support.crashes.preloaded import Preloaded

Host = TypeVar("Host", bound=Preloaded)
Job = TypeVar("Job")
Done = TypeVar("Done")


def share(
    start: Callable[[Path], Host],
    home: Path,
    jobs: Iterable[Job],
    work: Callable[[Host, Job], Done],
) -> Iterator[tuple[Job, Done]]:
    """Let each job be done by a host that has nothing to do; yield them in their order.

    The next job is asked for when one has been yielded: whoever makes them may look at what the
    others have led to, and be the same every time.
    """
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
        going: deque[tuple[Job, Future[Done]]] = deque()
        for job in jobs:
            going.append((job, pool.submit(one, job)))
            if len(going) > many:
                first, done = going.popleft()
                yield first, done.result()
        for job, done in going:
            yield job, done.result()
