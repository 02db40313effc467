"""What happens while a command runs in this process, until a signal ends it."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 20.0


@contextmanager
def meanwhile(*steps: Callable[[], object]) -> Iterator[None]:
    failed: list[str] = []
    over = threading.Event()

    def act() -> None:
        try:
            for number, step in enumerate(steps):
                until = time.monotonic() + PATIENCE
                while not over.is_set() and not step():
                    if time.monotonic() > until:
                        failed.append(f"step {number} never came true")
                        break
                    time.sleep(0.02)
        except Exception as error:  # noqa: BLE001 - any step, whatever it raises
            failed.append(f"a step failed: {error!r}")
        finally:  # else the command would wait for ever
            if not over.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        over.set()  # what ended before its time gets no signal
        thread.join()
    assert not failed, failed
