"""The ``SecondProcess`` port by a fork."""

import gc
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, NoReturn, final

_BLOCK: Final = 1 << 16


def can_fork() -> bool:
    """True if a copy of this process can be made now, and another processor is there for it.

    A process with several threads is not copied: what the other threads have locked would stay
    locked in the copy.
    """
    return (
        sys.platform == "linux"
        and len(os.sched_getaffinity(0)) > 1
        and threading.active_count() == 1
    )


@final
class ForkedProcess:
    """A copy of this process, made by a fork for each function.

    It ends with this process, however that ends: it holds one end of a pipe that nobody writes to,
    and whose other end the system closes.
    """

    def __init__(self) -> None:
        self._process = 0
        self._result = self._life = -1

    def start(self, function: Callable[[], Any]) -> None:
        """Start a function; see `SecondProcess.start`."""
        result, writing = os.pipe()
        living, life = os.pipe()
        try:
            process = os.fork()
        except OSError:  # too many processes
            process = -1
        if process == 0:
            os.close(result)
            os.close(life)
            _run(function, writing, living)
        os.close(writing)
        os.close(living)
        self._process, self._result, self._life = process, result, life

    def result(self) -> Any:
        """Wait for the result; see `SecondProcess.result`."""
        data = bytearray()
        while block := os.read(self._result, _BLOCK):
            data += block
        is_done = self._end() == 0
        return pickle.loads(data) if is_done else None  # noqa: S301 - from a copy of this process

    def stop(self) -> None:
        """End the function; see `SecondProcess.stop`."""
        if self._process:
            self._end()

    def _end(self) -> int:
        process, self._process = self._process, 0
        os.close(self._result)
        os.close(self._life)
        if process < 0:
            return 1
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _run(function: Callable[[], Any], writing: int, living: int) -> NoReturn:
    code = 1
    try:
        gc.freeze()  # what the first process has open is not to be closed here
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
        signal.signal(signal.SIGTERM, _on_terminate)
        threading.Thread(target=_end_with, args=(living,), daemon=True).start()
        data = memoryview(pickle.dumps(function()))
        while data:
            data = data[os.write(writing, data) :]
        code = 0
    finally:
        os._exit(code)


def _end_with(living: int) -> None:
    os.read(living, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _on_terminate(_number: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit
