"""Signals that stop a command.

The first signal raises in the main thread at any point: every step of this package is safe to be
interrupted there. C callbacks may swallow an exception that is raised inside them, so it is raised
again until it propagates. Further signals meanwhile are ignored: a terminal and a process group
often deliver the same signal twice.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from resourcesync.cli.exit_codes import ExitCode
from resourcesync.errors import is_propagating

REPEAT_SECONDS: Final = 0.5
"""Seconds after which a swallowed stop is raised again."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """SIGINT.

    A class of its own: after a plain ``KeyboardInterrupt`` has left an ``exec`` (imports use
    it), the interpreter ends by the signal, though it was handled, and the exit code is lost.
    """


class Terminated(KeyboardInterrupt):
    """SIGTERM, or SIGHUP from a terminal that closed."""


def acknowledge_stop(stop: KeyboardInterrupt) -> ExitCode:
    """Acknowledge a stop, so that it is not raised again; return the exit code.

    Call it while ``stop`` is being handled.
    """
    signal.setitimer(signal.ITIMER_REAL, 0)
    return ExitCode.TERMINATED if isinstance(stop, Terminated) else ExitCode.INTERRUPTED


class _StopRepeater:
    """A signal handler that raises a stop, and raises it again if it was swallowed."""

    def __init__(self) -> None:
        self._stop: KeyboardInterrupt | None = None
        self._unraisable_hook = sys.unraisablehook

    def stop(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal; only the first one counts."""
        if self._stop is not None:
            return
        self._stop = Interrupted() if number == signal.SIGINT else Terminated()
        signal.setitimer(signal.ITIMER_REAL, REPEAT_SECONDS, REPEAT_SECONDS)
        raise self._stop

    def ignore_lost_stop(self, lost: "sys.UnraisableHookArgs") -> None:
        """Write nothing about a stop that a callback swallowed: it is raised again."""
        if self._stop is None or lost.exc_value is not self._stop:
            self._unraisable_hook(lost)

    def raise_again(self, _number: int, _frame: FrameType | None) -> None:
        """Raise the stop again unless it is being handled."""
        if self._stop is not None and not is_propagating(self._stop):
            raise self._stop


@contextmanager
def signals_raise(*, for_good: bool = False) -> Iterator[None]:
    """Raise ``Interrupted`` at SIGINT, ``Terminated`` at SIGTERM and SIGHUP, within the block.

    A signal that the process was started to ignore (``nohup``, a background job) stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    repeater = _StopRepeater()
    wanted = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, repeater.stop) for number in wanted}
    alarm = signal.signal(signal.SIGALRM, repeater.raise_again)
    former_hook, sys.unraisablehook = sys.unraisablehook, repeater.ignore_lost_stop
    try:
        yield
    finally:
        sys.unraisablehook = former_hook
        if repeater._stop is not None:  # noqa: SLF001 - one class, one function
            signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if for_good else handler)
