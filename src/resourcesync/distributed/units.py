"""The two kinds of units of a pull: a list to read, and a slice of what is to be fetched."""

from dataclasses import dataclass
from typing import Any

import msgspec

from resourcesync import errors
from resourcesync.destination.commit import TransferTally
from resourcesync.destination.options import Filters
from resourcesync.destination.packages import DumpPackage
from resourcesync.destination.resource_reader import ListVersion
from resourcesync.destination.sync_state import MirrorIdentity
from resourcesync.discovery import SourceLists
from resourcesync.errors import (
    ConfigurationError,
    DocumentError,
    EngineError,
    ResourceSyncError,
    SourceError,
    SourceUnavailableError,
    StorageError,
)
from resourcesync.model.vocabulary import Dialect
from resourcesync.ports.mirror import RefusedRow

_TRANSFERABLE = (ConfigurationError, DocumentError, SourceError, StorageError)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitOptions:
    """What all units of one pull have in common; can be pickled.

    Attributes:
        identity: What the mirror is a mirror of.
        yielding: The URIs whose names yield to others.
        filters: What is wanted of what is listed.
        site: What a worker needs to reach Source and store; whoever opens them knows what it is.
        run: What the names of the run's units have, and those of no other run: a worker that
            outlives its coordinator writes nothing that is taken for another's.
        generation: The reading of the Source.
        at: The Source's time that the plan knows it up to, microseconds.
        lenient: True if bytes are kept that are not what the list says.
        accepts_missing: True if what the Source does not give is no failure.
        own_algorithm: The digest computed of every copy.
        applies_deletions: True if a copy that a Change List calls deleted is to be deleted.
    """

    identity: MirrorIdentity
    yielding: tuple[str, ...]
    filters: Filters
    site: Any
    run: str
    generation: int
    at: int
    lenient: bool
    accepts_missing: bool
    own_algorithm: str
    applies_deletions: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListDocumentUnit:
    """A list document to read.

    Attributes:
        name: Its file in the exchange.
        host: Who is asked.
        uri: Where the list is.
        options: Of the pull.
    """

    name: str
    host: str
    uri: str
    options: UnitOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceUnit:
    """A slice of what is to be fetched.

    Attributes:
        name: The file of what became of it, in the exchange.
        host: Who is asked; of several hosts, that of most.
        work: The slice's file in the exchange.
        rows: How many rows the slice has.
        size: Bytes to fetch as far as known.
        options: Of the pull.
        is_decided: True if every row is to be asked for, whatever the copy is: the Source told of
            a change of it. Else what is surely here is left out.
    """

    name: str
    host: str
    work: str
    rows: int
    size: int
    options: UnitOptions
    is_decided: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageUnit:
    """A package of a dump to take things from.

    Attributes:
        name: The file of what became of it, in the exchange.
        host: Who is asked.
        offered: The package.
        found: What the Source offers.
        options: Of the pull.
    """

    name: str
    host: str
    offered: DumpPackage
    found: SourceLists
    options: UnitOptions


class ListRead(msgspec.Struct, frozen=True, kw_only=True):
    """What a unit tells of a list that it read: see ``Snapshot``, and what was refused.

    Its rows are in a file of this very reading: one that was lost and ends late has another.
    """

    file: str
    at: int | None
    entries: int
    complete: bool
    dialect: Dialect
    refused: int
    kept: list[RefusedRow]
    has_entries: bool
    head: ListVersion | None = None
    dropped: int = 0
    example: str = ""
    encoded: int = 0
    encoded_example: str = ""
    requests: int
    received: int


class SliceOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a unit tells of a slice: what it did, and what the network took."""

    tally: TransferTally
    requests: int
    received: int


class ErrorReport(msgspec.Struct, frozen=True, kw_only=True):
    """An error of a worker, such as it can be told to another machine."""

    kind: str
    message: str
    code: str
    hint: str
    evidence: list[tuple[str, str]]
    uri: str = ""
    wait: float | None = None


def report_error(error: ResourceSyncError) -> ErrorReport:
    """Return what can be told of an error."""
    return ErrorReport(
        kind=type(error).__name__,
        message=error.message,
        code=error.code,
        hint=error.hint,
        evidence=[(label, text) for label, text in error.evidence],
        uri=getattr(error, "uri", ""),
        wait=getattr(error, "retry_after", None),
    )


def restore_error(fault: ErrorReport) -> ResourceSyncError:
    """Return the error that a worker had."""
    kind: Any = getattr(errors, fault.kind, None)
    if not (isinstance(kind, type) and issubclass(kind, _TRANSFERABLE)):
        kind = EngineError
    made: ResourceSyncError = kind(
        fault.message, evidence=tuple(fault.evidence), hint=fault.hint, code=fault.code
    )
    if hasattr(made, "uri"):
        made.uri = fault.uri
    if isinstance(made, SourceUnavailableError):
        made.retry_after = fault.wait
    return made
