"""Scan of the originals: their differences from the catalogue are recorded."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, assert_never

from resourcesync.compare import Created, Deleted, Difference, Same, Updated, compare
from resourcesync.errors import ConfigurationError, OriginalChangedError, Remedy, StorageError
from resourcesync.model.digests import agree, disagree
from resourcesync.model.resources import Resource
from resourcesync.ports.catalogue import (
    CatalogueEntry,
    CatalogueRecording,
    CatalogueStore,
    Original,
    Originals,
)
from resourcesync.ports.originals import PrefetchingOriginals

_log = logging.getLogger(__name__)
_UNREADABLE = "unreadable-file"


_MAX_LEFT: Final = 100
_AHEAD: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftFile:
    """An original whose catalogue entry was left unchanged.

    Attributes:
        code: A stable word.
        reason: The cause, in one sentence that names the original.
    """

    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """Result of a scan.

    Attributes:
        files: Number of originals.
        bytes: Their size.
        hashed: Number of originals that were read.
        created: New ones, recorded.
        updated: Known ones with new bytes, recorded.
        deleted: Known ones that no longer exist, recorded.
        touched: Known ones with other metadata and the same bytes.
        changing: Ones that changed while they were read: their entries are unchanged.
        unreadable: Ones that cannot be read: their entries are unchanged.
        omitted: Files that are not published, other than on purpose, as far as
            ``Originals.omissions`` lists them.
        left: The first 100 of those that are changing or unreadable.
    """

    files: int = 0
    bytes: int = 0
    hashed: int = 0
    created: int = 0
    updated: int = 0
    deleted: int = 0
    touched: int = 0
    changing: int = 0
    unreadable: int = 0
    omitted: int = 0
    left: tuple[LeftFile, ...] = ()


def scan(
    originals: Originals,
    catalogue: CatalogueStore,
    now: datetime,
    *,
    anew: bool = False,
    allow_empty: bool = True,
    settle: Callable[[], None] | None = None,
) -> ScanReport:
    """Record in the catalogue how the originals differ from it; all or nothing.

    An original with the same metadata is not read. The entry of one that cannot be read, or that
    changes while it is, stays as it is: one bad file stops neither the others nor the next run.

    Args:
        originals: The originals.
        catalogue: The catalogue.
        now: A moment before the scan: the catalogue includes every change up to it afterwards.
        anew: Read all originals, also those with the same metadata, for other digests.
        allow_empty: True if there may be no originals at all.
        settle: Called before all is recorded; an exception of it prevents the recording.

    Raises:
        ConfigurationError: There are no originals, and there must be some: a disk that is not
            mounted looks the same.
        StorageError: The originals cannot be listed, or the catalogue cannot be written. The
            catalogue is unchanged.
    """
    counts: Counter[str] = Counter()
    left: list[LeftFile] = []
    with catalogue.record(now) as recording:
        seen = _counted(originals.scan(), counts)
        differences = compare(
            catalogue.entries(), seen, same=_differs if anew else _has_same_fingerprint
        )
        for difference in _expected(differences, originals):
            match difference:
                case Same():
                    continue
                case Deleted(before):
                    recording.deleted(before.resource)
                    counts["deleted"] += 1
                case Created(after):
                    _note(left, _record_original(originals, recording, None, after, counts))
                case Updated(before, after):
                    _note(left, _record_original(originals, recording, before, after, counts))
                case unreachable:
                    assert_never(unreachable)
        if not counts["files"] and not allow_empty:
            raise _empty(counts["deleted"])
        if settle is not None:
            settle()
    return ScanReport(**counts, omitted=len(originals.omissions()), left=tuple(left))


def _expected(
    differences: Iterator[Difference[Original, CatalogueEntry]], originals: Originals
) -> Iterator[Difference[Original, CatalogueEntry]]:
    """Yield all differences, some at a time for originals that prefetch."""
    if not isinstance(originals, PrefetchingOriginals):
        yield from differences
        return
    changed = (difference for difference in differences if not isinstance(difference, Same))
    while some := list(islice(changed, _AHEAD)):
        originals.prefetch([item.after for item in some if not isinstance(item, Deleted)])
        yield from some


def _empty(deleted: int) -> ConfigurationError:
    return ConfigurationError(
        "there are no files to publish"
        + (f", and {deleted:,} were published before" if deleted else ""),
        evidence=(("kept", "what was published before"),) if deleted else (),
        hint="check the mount and the filters; if the tree is really empty, allow it",
        code="empty-tree",
        remedy=Remedy("allow-empty"),
    )


def _note(left: list[LeftFile], error: StorageError | None) -> None:
    if error is not None and len(left) < _MAX_LEFT:
        left.append(LeftFile(code=error.code, reason=error.message))


def _counted(originals: Iterator[Original], counts: Counter[str]) -> Iterator[Original]:
    files = size = 0
    for original in originals:
        files += 1
        size += original.length
        yield original
    counts["files"], counts["bytes"] = files, size


def _has_same_bytes(before: CatalogueEntry, resource: Resource, fingerprint: str) -> bool:
    """True if an original has the bytes of before, whatever its metadata."""
    known = before.resource.digests
    if before.fingerprint == fingerprint != "":  # perhaps for other digests
        return not disagree(known, resource.digests)
    return agree(known, resource.digests)


def _has_same_fingerprint(before: CatalogueEntry, after: Original) -> bool:
    return before.fingerprint == after.fingerprint != ""


def _differs(_before: CatalogueEntry, _after: Original) -> bool:
    return False


def _record_original(
    originals: Originals,
    recording: CatalogueRecording,
    before: CatalogueEntry | None,
    after: Original,
    counts: Counter[str],
) -> StorageError | None:
    """Read an original that differs, and record it; return why its entry was left unchanged."""
    try:
        resource, fingerprint = originals.measure(after)
    except OriginalChangedError as error:
        _log.info("%s; left for the next run", error)
        counts["changing"] += 1
        return error
    except StorageError as error:
        if error.code != _UNREADABLE:
            raise
        _log.info("%s", error)
        counts["unreadable"] += 1
        return error
    counts["hashed"] += 1
    if before is None:
        recording.created(resource, fingerprint)
        counts["created"] += 1
    elif (before.resource, before.fingerprint) == (resource, fingerprint):
        return None  # it only could not be trusted unread
    elif _has_same_bytes(before, resource, fingerprint):
        recording.touched(resource, fingerprint)
        # An original too fresh to be trusted is read again, even without another write.
        counts["touched"] += before.fingerprint != "" or before.resource != resource
    else:
        recording.updated(resource, fingerprint)
        counts["updated"] += 1
    return None
