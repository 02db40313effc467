"""Errors of this package, in one tree: the code, the evidence and the next step of each."""

import errno
import shlex
import sys
from typing import ClassVar, Final

_MAX_SHOWN: Final = 500

Evidence = tuple[tuple[str, str], ...]
"""Pairs of a short label (``tried``, ``got``, ``kept``) and a value, most specific first."""


def quoted(argument: object, unknown: str) -> str:
    """Return an argument so that a command can be pasted, or ``unknown`` if it is empty."""
    return shlex.quote(str(argument)) if argument else unknown


_ANSWERS: Final = frozenset({"got", "tried"})
"""Labels of the evidence that has a server's or a system's answer."""


def at_address(message: str, uri: str) -> str:
    """Return a message with the address that it is about, unless it has it."""
    return f"{message}: {uri}" if uri not in message else message


class ResourceSyncError(Exception):
    """The base of every error of this package.

    Args:
        message: The error in one sentence.
        uri: The address that it is about; empty for none.
        evidence: Its evidence, most specific first; includes the remaining state.
        hint: One step that helps now, perhaps with its command; empty for none. ``MIRROR`` in it
            stands for the folder of the mirror.
        code: A stable word for programs; each class has its own default.
        line: The line of a document where the error is, from 1; 0 if unknown.
        column: The column there, in characters from 0.
        status: The status of an HTTP answer; 0 for none.
        retry_after: The seconds after which the server wants to be asked again, if it says so.

    Attributes:
        transient: True if the error passes by itself: try again later.
    """

    default_code: ClassVar[str] = "error"
    default_hint: ClassVar[str] = ""
    transient: ClassVar[bool] = False

    def __init_subclass__(
        cls, *, code: str = "", hint: str = "", transient: bool | None = None
    ) -> None:
        """Take what a class gives of its own; the rest is as in its base."""
        super().__init_subclass__()
        cls.default_code = code or cls.default_code
        cls.default_hint = hint or cls.default_hint
        cls.transient = cls.transient if transient is None else transient

    def __init__(  # noqa: PLR0913 - the fields of all errors
        self,
        message: str,
        *,
        uri: str = "",
        evidence: Evidence = (),
        hint: str = "",
        code: str = "",
        line: int = 0,
        column: int = 0,
        status: int = 0,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.uri = uri
        self.evidence = evidence
        self.hint = hint or self.default_hint
        self.code = code or self.default_code
        self.line = line
        self.column = column
        self.status = status
        self.retry_after = retry_after

    @property
    def cause(self) -> str:
        """The message with the answer that it is about, such as ``503 Service Unavailable``."""
        got = [text for label, text in self.evidence if label in _ANSWERS]
        return f"{self.message} ({got[0]})" if len(got) == 1 else self.message

    def __str__(self) -> str:
        """Return the message, and the address that it is about unless the message has it.

        The address is without user, password and query, which may be secret: the text may be
        logged.
        """
        return at_address(self.message, _shown_address(self.uri))


def _shown_address(uri: str) -> str:
    base, _, rest = uri.partition("://")
    if not rest:
        return ""
    host, slash, path = rest.partition("?")[0].partition("#")[0].partition("/")
    return f"{base}://{host.rpartition('@')[2]}{slash}{path}"[:_MAX_SHOWN]


class ConfigurationError(ResourceSyncError, code="config"):
    """The operator's settings cannot work; nothing was attempted."""


class StoppedError(ResourceSyncError, code="stopped"):
    """The program that uses the library requested a stop; complete copies remain, run again."""


class BudgetError(StoppedError, code="budget"):
    """The time of the run is over; complete copies remain, run again."""


class DocumentError(ResourceSyncError, code="document"):
    """The bytes are not a usable ResourceSync document."""


class MalformedDocumentError(DocumentError, code="xml"):
    """Not XML, or XML that breaks the Sitemap or ResourceSync grammar."""


class TruncatedDocumentError(DocumentError, code="xml-cut-short", transient=True):
    """The document stops before its end; a later read may give all of it."""


class NotAListError(DocumentError, code="not-a-list"):
    """Well-formed, but neither a sitemap nor a ResourceSync document (often an HTML error page)."""


class UnexpectedDocumentError(DocumentError, code="unexpected-document"):
    """A good document, but of another capability than the requested one."""


class DocumentLimitError(DocumentError, code="document-limit"):
    """A document over one of the limits that bound memory and time."""


class PackageError(ResourceSyncError, code="package"):
    """The bytes are not a usable dump package: damaged, hostile, or without a sound manifest."""


class TruncatedPackageError(PackageError, code="package-truncated", transient=True):
    """The package stops before its end; a later download may give all of it."""


class PackedMemberError(PackageError, code="package-member"):
    """One member of a package cannot be used; the rest can, and its URI can be fetched."""


class PatchError(ResourceSyncError, code="patch"):
    """A patch cannot be applied to our copy; the whole resource is fetched instead."""


class SourceError(ResourceSyncError, code="source"):
    """The remote Source did not give what it lists."""


class SourceNotFoundError(SourceError, code="source-not-found"):
    """No ResourceSync document and no sitemap was found at the address."""


class SourceUnavailableError(
    SourceError,
    code="unavailable",
    hint="try again later; if it lasts, tell the operator of the server",
    transient=True,
):
    """The Source does not answer now: DNS, refused, timeout, cut short, 5xx, 429."""


class BadResponseError(SourceError, code="bad-response"):
    """The server answered, but not in a way that can be used (protocol, coding, range, size)."""


class SourceRefusedError(SourceError, code="refused"):
    """401, 403, robots.txt, TLS, or a redirect or address that policy does not allow."""


class ResourceMissingError(SourceError, code="missing"):
    """404 or 410 for something that the Source lists."""


class VerificationError(ResourceSyncError, code="mismatch"):
    """The bytes are not those of the list; they are never installed."""


class LengthMismatchError(VerificationError, code="length-mismatch"):
    """The number of bytes is not the listed ``length``."""


class DigestMismatchError(VerificationError, code="hash-mismatch"):
    """A digest of the bytes is not the listed ``hash``."""


class SyncError(ResourceSyncError, code="sync"):
    """Going on would risk the copies."""


class DiscontinuityError(SyncError, code="change-gap", transient=True):
    """The Change Lists do not reach back to the last state, and no newer Resource List helps."""


class ChangesLostError(DiscontinuityError, code="changes-lost", transient=False):
    """A log of changes does not reach back to its reader, who must start over with everything."""


class RollbackError(SyncError, code="rollback"):
    """The Source offers an older state than the one already processed."""


class OutOfScopeError(SyncError, code="unsafe-path"):
    """A URI that this Source may not speak for, or that maps to no safe path."""


class StorageError(ResourceSyncError, code="storage"):
    """A failure of this machine: originals, copies, documents or state."""


class DiskFullError(StorageError, code="disk", hint="free disk space, then try again"):
    """No space, no quota or no inodes are left."""


class TemporaryDiskFullError(
    DiskFullError,
    code="temporary-disk",
    hint="free disk space, or set TMPDIR to a folder of another disk, then try again",
):
    """The disk of the temporary files is full; those of the copies and documents may not be."""


_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def storage_error(error: OSError, doing: str, *, kept: str, code: str = "") -> StorageError:
    """Return the error for a failure of a file system."""
    why = error.strerror or str(error)
    if error.errno in _NO_SPACE:
        message = f"no space left while {doing:.1000}"
        return DiskFullError(message, evidence=(("got", why), ("kept", kept)))
    return StorageError(
        f"failed while {doing:.1000}: {why}",
        evidence=(("kept", kept),),
        hint="fix permissions or the disk, then try again",
        code=code,
    )


class StateError(StorageError, code="state"):
    """The state or the catalogue is damaged, or was written by another version."""


def damaged_note_error(key: str, why: object) -> StateError:
    """Return the error for a note of a catalogue that cannot be read."""
    return StateError(
        f"the publisher's note {key!r} in the catalogue is damaged: {why}",
        evidence=(("kept", "what was published before"),),
        hint="move the catalogue away, then begin anew with the address (step initialise)",
    )


class MirrorChangedError(StorageError, code="mirror-changed"):
    """The mirror's folder is not the recorded one: moved, replaced or not mounted."""


class OriginalChangedError(StorageError, code="original-changed"):
    """An original changed or vanished while it was read; it is left for the next run."""


class EngineError(StorageError, code="engine"):
    """The engine that does the units of a pull failed, or accepts no more work."""


class LockedError(StorageError, code="locked", transient=True):
    """Another run holds the lock of this mirror or this tree."""


def next_step(error: ResourceSyncError) -> str:
    """Return the hint of an error; for what is truncated, who can give the whole of it."""
    is_truncated = isinstance(error, (TruncatedDocumentError, TruncatedPackageError))
    if error.hint or not is_truncated:
        return error.hint
    if is_local(error.uri):
        return "the file on this machine is truncated: get a complete copy"
    lists = f"resourcesync validate {quoted(error.uri, 'URL')}"
    return f"report it to the Source; check its lists: {lists}"


def is_local(address: str) -> bool:
    """True for the path of a file on this machine."""
    return bool(address) and "://" not in address


def is_propagating(error: BaseException) -> bool:
    """True if an enclosing ``finally``, ``except`` or ``with`` is passing the error on."""
    current, seen = sys.exception(), set[int]()
    while current is not None and id(current) not in seen:
        if current is error:
            return True
        seen.add(id(current))
        current = current.__context__
    return False
