"""Programs that read events on their stdin."""

import os
import selectors
import signal
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from threading import Event
from typing import Final

from resourcesync.errors import ConfigurationError
from resourcesync.ports import CancelToken

_POLL_SECONDS: Final = 0.1
END_CHECKS: Final = 50
"""Number of checks whether a program that was asked to end has ended: five seconds."""


def run_program(command: Sequence[str], lines: Iterable[bytes], cancel: CancelToken) -> int:
    """Run a program and write lines to it; return its exit code, negative for a signal.

    The program need not read. Its output goes to our stderr. No shell is used.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - the operator's own command, and no shell
            list(command), stdin=subprocess.PIPE, stdout=2, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"cannot run {command[0][:200]}: {getattr(error, 'strerror', None) or error}",
            hint="give the full path of a program that this user may run",
        ) from error
    try:
        with suppress(BrokenPipeError):
            _write(process, lines, cancel)
        return _wait(process, cancel)
    finally:
        _end(process)


def _write(process: "subprocess.Popen[bytes]", lines: Iterable[bytes], cancel: CancelToken) -> None:
    assert process.stdin is not None
    pipe = process.stdin.fileno()
    os.set_blocking(pipe, False)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_WRITE)
        for line in lines:
            left = memoryview(line)
            while left:
                cancel.raise_if_cancelled()
                if selector.select(_POLL_SECONDS):
                    with suppress(BlockingIOError):
                        left = left[os.write(pipe, left) :]
    process.stdin.close()


def _wait(process: "subprocess.Popen[bytes]", cancel: CancelToken) -> int:
    while True:
        try:
            return process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            cancel.raise_if_cancelled()


def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    if process.poll() is not None:
        return
    _signal(process, signal.SIGTERM)
    pause = Event()
    for _ in range(END_CHECKS):
        if process.poll() is not None and not _signal(process, 0):
            return
        pause.wait(_POLL_SECONDS)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: "subprocess.Popen[bytes]", number: int) -> bool:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
