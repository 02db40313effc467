"""Programs that read events on their stdin."""

import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from threading import Event
from typing import Final

from resourcesync.errors import ConfigurationError, StoppedError

_POLL_SECONDS: Final = 0.1
_PATIENCE: Final = 50
"""How often it is looked whether a program that was asked to end has ended: five seconds."""


def run_program(
    command: Sequence[str], lines: Iterable[bytes], is_stopped: Callable[[], bool]
) -> int:
    """Run a program and give it lines; return its exit code, negative for a signal.

    A program that reads nothing is fine. What it writes goes to our stderr. No shell is used.

    Args:
        command: The program and its arguments.
        lines: What it gets on stdin, each ended by a line break.
        is_stopped: Asked many times a second; then the program is asked to end, with all that it
            began, and made to after five seconds.

    Raises:
        ConfigurationError: There is no such program, or it may not be run.
        StoppedError: ``is_stopped`` said so; the program has ended.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - the operator's own command, and no shell
            list(command), stdin=subprocess.PIPE, stdout=2, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"cannot run {command[0][:200]}: {getattr(error, 'strerror', None) or error}",
            hint="name a program that this user may run, by its whole path",
        ) from error
    try:
        with suppress(BrokenPipeError):
            _write(process, lines, is_stopped)
        return _wait(process, is_stopped)
    finally:
        _end(process)


def _write(
    process: "subprocess.Popen[bytes]", lines: Iterable[bytes], is_stopped: Callable[[], bool]
) -> None:
    assert process.stdin is not None
    pipe = process.stdin.fileno()
    os.set_blocking(pipe, False)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_WRITE)
        for line in lines:
            left = memoryview(line)
            while left:
                _check(is_stopped)
                if selector.select(_POLL_SECONDS):
                    with suppress(BlockingIOError):
                        left = left[os.write(pipe, left) :]
    process.stdin.close()


def _wait(process: "subprocess.Popen[bytes]", is_stopped: Callable[[], bool]) -> int:
    while True:
        try:
            return process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            _check(is_stopped)


def _check(is_stopped: Callable[[], bool]) -> None:
    if is_stopped():
        raise StoppedError(
            "the program was stopped before it had taken all changes",
            evidence=(("kept", "it is told of them again"),),
        )


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a program that has not ended by itself, with all that it began."""
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    if process.poll() is not None:
        return
    _signal(process, signal.SIGTERM)
    pause = Event()
    for _ in range(_PATIENCE):
        if process.poll() is not None and not _signal(process, 0):
            return
        pause.wait(_POLL_SECONDS)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: "subprocess.Popen[bytes]", number: int) -> bool:
    """Send a signal to a program and to all that it began, which share its session.

    Returns:
        Whether any of them is left.
    """
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
