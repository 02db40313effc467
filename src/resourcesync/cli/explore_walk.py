"""A walk through a Source that goes on in a thread of its own, for ``explore --tui``.

Steps are handed over in a short queue, so memory is bounded by what was taken from it.
"""

import threading
from collections.abc import Generator, Iterator
from queue import Empty, Full, Queue
from typing import Final

from resourcesync.discovery.tree import PartsTotal, SourceNode

_QUEUE_SIZE: Final = 1_000
_BATCH_SIZE: Final = 500
"""Steps that are taken before the keyboard is asked again."""
_PUT_SECONDS: Final = 0.1

Step = SourceNode | PartsTotal


class BackgroundWalk:
    """A walk through a Source in a thread of its own.

    Args:
        steps: The walk; it is run in the thread and nowhere else.
    """

    def __init__(self, steps: Iterator[Step]) -> None:
        self._steps = steps
        self._queue: Queue[Step | None] = Queue(_QUEUE_SIZE)
        self._cancelled = threading.Event()
        # A request that is on its way must not keep the command from ending.
        self._thread = threading.Thread(target=self._run, name="explore", daemon=True)
        self.error: Exception | None = None
        self.is_over = False

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def cancel(self) -> None:
        """Let the thread end at its next step."""
        self._cancelled.set()

    def poll(self) -> Iterator[Step]:
        """Yield the steps that wait, some hundred at most; sets ``is_over`` after the last."""
        for _ in range(_BATCH_SIZE):
            try:
                step = self._queue.get_nowait()
            except Empty:
                return
            if step is None:
                self.is_over = True
                return
            yield step

    def _run(self) -> None:
        try:
            for step in self._steps:
                if not self._put(step):
                    return
        except Exception as error:  # noqa: BLE001 - a thread's edge: it is raised by who waits
            self.error = error
        finally:
            if isinstance(self._steps, Generator):
                self._steps.close()  # here, where it was run
        self._put(None)

    def _put(self, step: Step | None) -> bool:
        while not self._cancelled.is_set():
            try:
                self._queue.put(step, timeout=_PUT_SECONDS)
            except Full:
                continue
            return True
        return False
