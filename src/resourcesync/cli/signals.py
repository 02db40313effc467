"""Signals that ask a command to stop, and how they get through.

The first signal raises in the main thread, wherever it stands: every step of this package is safe
to be cut there. C callbacks may swallow what is raised inside them, so a signal knocks again until
its exception is on its way up. Further signals while that happens change nothing: a terminal and a
process group often deliver the same wish twice.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from resourcesync.cli.exit_codes import ExitCode

REPEAT_SECONDS: Final = 0.5
"""Seconds after which a swallowed stop is raised again."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """SIGINT.

    A class of its own: after a plain ``KeyboardInterrupt`` has left an ``exec`` (dataclasses use
    it), the interpreter ends by the signal, though it was handled, and the exit code is lost.
    """


class Terminated(KeyboardInterrupt):
    """SIGTERM, or SIGHUP from a terminal that closed."""


def acknowledge_stop(stop: KeyboardInterrupt) -> ExitCode:
    """Take note of a stop, so that it does not knock again; return how the command ends.

    To be called while ``stop`` is being handled.
    """
    signal.setitimer(signal.ITIMER_REAL, 0)
    return ExitCode.TERMINATED if isinstance(stop, Terminated) else ExitCode.INTERRUPTED


class _StopRepeater:
    """Raises a stop, and raises it again if it got lost."""

    def __init__(self) -> None:
        self._stop: KeyboardInterrupt | None = None
        self._unraisable_hook = sys.unraisablehook

    def stop(self, number: int, _frame: FrameType | None) -> None:
        """Take a signal; the first one counts."""
        if self._stop is not None:
            return
        self._stop = Interrupted() if number == signal.SIGINT else Terminated()
        signal.setitimer(signal.ITIMER_REAL, REPEAT_SECONDS, REPEAT_SECONDS)
        raise self._stop

    def ignore_lost_stop(self, lost: "sys.UnraisableHookArgs") -> None:
        """Say nothing of a stop that got lost in a callback: it knocks again."""
        if self._stop is None or lost.exc_value is not self._stop:
            self._unraisable_hook(lost)

    def raise_again(self, _number: int, _frame: FrameType | None) -> None:
        """Raise the stop again unless somebody is dealing with it right now."""
        if self._stop is not None and not _is_propagating(self._stop):
            raise self._stop


def _is_propagating(stop: BaseException) -> bool:
    """Whether a ``finally``, an ``except`` or a ``with`` above us is passing it on."""
    current = sys.exception()
    seen = set()
    while current is not None and id(current) not in seen:
        if current is stop:
            return True
        seen.add(id(current))
        current = current.__context__
    return False


@contextmanager
def signals_raise(*, for_good: bool = False) -> Iterator[None]:
    """While the block runs, SIGINT raises ``Interrupted``, SIGTERM and SIGHUP ``Terminated``.

    A signal that the process was started to ignore (``nohup``, a background job) stays ignored.

    Args:
        for_good: The process ends after the block: what comes then is ignored, so that the exit
            code is the one that was told.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    knocker = _StopRepeater()
    wanted = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, knocker.stop) for number in wanted}
    alarm = signal.signal(signal.SIGALRM, knocker.raise_again)
    tell_lost, sys.unraisablehook = sys.unraisablehook, knocker.ignore_lost_stop
    try:
        yield
    finally:
        sys.unraisablehook = tell_lost
        if knocker._stop is not None:  # noqa: SLF001 - one class, one function
            signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if for_good else handler)
