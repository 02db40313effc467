"""Exit codes: one table for every command.

A rerun helps for 3, 4, 10, 130 and 143, later for 9, after a look for 7. Treat a code that is not
in this table as a failure.
"""

from collections.abc import Iterable
from enum import IntEnum, unique
from typing import Final

from resourcesync import errors


@unique
class ExitCode(IntEnum):
    """How a command ended."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    PARTIAL = 3
    UNREACHABLE = 4
    UNUSABLE = 5
    REFUSED = 6
    STOPPED = 7
    LOCAL = 8
    LOCKED = 9
    BUDGET = 10
    BUG = 70
    INTERRUPTED = 130
    PIPE = 141
    TERMINATED = 143

    @property
    def meaning(self) -> str:
        """What the code says, in a sentence."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    ExitCode.OK: "did what was asked; for pull: the mirror is in sync",
    ExitCode.FINDINGS: "ran to the end and the answer is no (audit, diff, validate, status)",
    ExitCode.USAGE: "bad option or configuration; nothing was attempted",
    ExitCode.PARTIAL: "ran to the end; some resources failed; the good ones are kept",
    ExitCode.UNREACHABLE: "the Source does not answer now",
    ExitCode.UNUSABLE: "the Source answers but offers no usable list",
    ExitCode.REFUSED: "401, 403, robots.txt, TLS or policy",
    ExitCode.STOPPED: "a safety limit tripped; nothing was deleted",
    ExitCode.LOCAL: "this machine: disk full, permissions, damaged state",
    ExitCode.LOCKED: "another run holds this mirror or this tree",
    ExitCode.BUDGET: "a budget was reached; consistent, run again to go on",
    ExitCode.BUG: "our fault; the message names a crash report",
    ExitCode.INTERRUPTED: "Ctrl-C; consistent, run again to go on",
    ExitCode.PIPE: "nobody reads the output any more; consistent, run again to go on",
    ExitCode.TERMINATED: "SIGTERM or SIGHUP; consistent, run again to go on",
}

_WORST_FIRST: Final = (
    ExitCode.TERMINATED,
    ExitCode.INTERRUPTED,
    ExitCode.PIPE,
    ExitCode.BUG,
    ExitCode.LOCAL,
    ExitCode.STOPPED,
    ExitCode.REFUSED,
    ExitCode.UNUSABLE,
    ExitCode.UNREACHABLE,
    ExitCode.PARTIAL,
    ExitCode.USAGE,
    ExitCode.BUDGET,
    ExitCode.LOCKED,
    ExitCode.FINDINGS,
    ExitCode.OK,
)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the code that speaks for several mirrors: the worst of theirs, ``OK`` for none."""
    return min(codes, key=_WORST_FIRST.index, default=ExitCode.OK)


_BAD_LINE: Final = "ndjson"  # what a program of the operator's said, and no Source
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
"""A class that is not named here ends as its nearest base does."""


def exit_code_for(error: errors.ResourceSyncError) -> ExitCode:
    """Return how a command ends that this error has ended."""
    if is_local_file_truncated(error):
        return ExitCode.UNUSABLE
    if isinstance(error, errors.DocumentError) and getattr(error, "code", "") == _BAD_LINE:
        return ExitCode.USAGE
    return next(_BY_ERROR[kind] for kind in type(error).__mro__ if kind in _BY_ERROR)


def exit_code_of_kind(name: str) -> ExitCode | None:
    """Return how a command ends that an error of the class of this name has ended."""
    kind = getattr(errors, name, None) if name else None
    if not (isinstance(kind, type) and issubclass(kind, errors.ResourceSyncError)):
        return None
    return next(_BY_ERROR[base] for base in kind.__mro__ if base in _BY_ERROR)


def is_local_file_truncated(error: errors.ResourceSyncError) -> bool:
    """Whether a file of this machine is cut short: no later read gives more of it."""
    cut = (errors.TruncatedDocumentError, errors.TruncatedPackageError)
    uri: str = getattr(error, "uri", "")  # none where only the class of an error is asked about
    return isinstance(error, cut) and bool(uri) and "://" not in uri
