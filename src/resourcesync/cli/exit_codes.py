"""Exit codes: one table for every command; and the signals that end one.

A rerun helps for 3, 4, 10, 130 and 143; later for 9; after a decision of the operator for 7. Treat
an unknown code as a failure.

Signals that stop a command: the first raises in the main thread at any point: every step of this
package is safe to be interrupted there. C callbacks may swallow an exception that is raised inside
them, so it is raised again until it propagates. Further signals meanwhile are ignored: a terminal
and a process group often deliver the same signal twice.
"""

import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum, unique
from types import FrameType
from typing import TYPE_CHECKING, Final, Self

from resourcesync import errors
from resourcesync.errors import is_propagating

if TYPE_CHECKING:
    from resourcesync.destination.reports import RunReport


@unique
class ExitCode(IntEnum):
    """The result of a command."""

    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> Self:
        """Return a member that knows its meaning."""
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member

    OK = 0, "success; for pull: the mirror is in sync"
    FINDINGS = 1, "completed with findings (audit, validate, status, config check)"
    USAGE = 2, "bad option or configuration; nothing was attempted"
    PARTIAL = 3, "completed, but some resources failed; the others are in place"
    UNREACHABLE = 4, "the Source does not answer now"
    UNUSABLE = 5, "the Source answers but offers no usable list"
    REFUSED = 6, "401, 403, robots.txt, TLS or policy"
    STOPPED = 7, "a safety limit was reached; nothing beyond it was deleted"
    LOCAL = 8, "this machine: disk full, permissions, damaged state"
    LOCKED = 9, "another run has locked this mirror or this tree"
    BUDGET = 10, "a budget was reached; consistent, run again to continue"
    BUG = 70, "a bug in resourcesync; the message names a crash report"
    INTERRUPTED = 130, "Ctrl-C; consistent, run again to continue"
    PIPE = 141, "the reader of the output is gone; consistent, run again to continue"
    TERMINATED = 143, "SIGTERM or SIGHUP; consistent, run again to continue"


_WORST_FIRST: Final = (143, 130, 141, 70, 8, 7, 6, 5, 4, 3, 2, 10, 9, 1, 0)
"""Signals, bugs, this machine, limits, the Source, options, what a rerun completes, findings."""


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the worst of the codes of several mirrors; ``OK`` for none."""
    return min(codes, key=_WORST_FIRST.index, default=ExitCode.OK)


CUT: Final = (errors.TruncatedDocumentError, errors.TruncatedPackageError)
_BAD_LINE: Final = "ndjson"  # input of the operator's own program, not of a Source
_BY_ERROR: Final[dict[type[errors.ResourceSyncError], ExitCode]] = {
    errors.ResourceSyncError: ExitCode.BUG,
    errors.ConfigurationError: ExitCode.USAGE,
    errors.StoppedError: ExitCode.INTERRUPTED,
    errors.BudgetError: ExitCode.BUDGET,
    errors.DocumentError: ExitCode.UNUSABLE,
    errors.PackageError: ExitCode.UNUSABLE,
    errors.PackedMemberError: ExitCode.PARTIAL,
    errors.PatchError: ExitCode.PARTIAL,
    errors.SourceError: ExitCode.UNUSABLE,
    errors.SourceUnavailableError: ExitCode.UNREACHABLE,
    errors.SourceRefusedError: ExitCode.REFUSED,
    errors.VerificationError: ExitCode.PARTIAL,
    errors.SyncError: ExitCode.STOPPED,
    errors.OutOfScopeError: ExitCode.REFUSED,
    errors.StorageError: ExitCode.LOCAL,
    errors.OriginalChangedError: ExitCode.PARTIAL,
    errors.LockedError: ExitCode.LOCKED,
}
"""Exit codes by error class; a class that is not in it has the code of its nearest base."""


def exit_code_for(error: errors.ResourceSyncError) -> ExitCode:
    """Return the exit code of a command that this error ended."""
    if isinstance(error, CUT) and errors.is_local(error.uri):
        return ExitCode.UNUSABLE  # a later read of a file on this machine gives no more of it
    if isinstance(error, errors.DocumentError) and error.code == _BAD_LINE:
        return ExitCode.USAGE
    return next(_BY_ERROR[kind] for kind in type(error).__mro__ if kind in _BY_ERROR)


def exit_code_of_kind(name: str) -> ExitCode | None:
    """Return the exit code for the name of an error class; ``None`` for an unknown name."""
    kind = getattr(errors, name, None) if name else None
    if not (isinstance(kind, type) and issubclass(kind, errors.ResourceSyncError)):
        return None
    return next(_BY_ERROR[base] for base in kind.__mro__ if base in _BY_ERROR)


def exit_code_of_pull(report: "RunReport") -> ExitCode:
    """Return the exit code of a pull's report; that of a dry run is as far as the lists tell."""
    from resourcesync.destination.reports import MirrorState  # noqa: PLC0415 - help stays quick

    if report.state is MirrorState.STOPPED:
        return ExitCode.STOPPED
    if report.spent:
        return ExitCode.BUDGET
    return ExitCode.OK if report.state is MirrorState.IN_SYNC else ExitCode.PARTIAL


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
