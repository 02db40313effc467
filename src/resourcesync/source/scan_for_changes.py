"""Scan of the originals: their differences from the catalogue are recorded."""

import logging
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from operator import itemgetter, lt
from typing import Final, NamedTuple, assert_never

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.catalogue.recording import CatalogueRecording
from resourcesync.errors import ConfigurationError, OriginalChangedError, StorageError
from resourcesync.merge_join import (
    Created,
    Deleted,
    Difference,
    Same,
    UnorderedAccountError,
    Updated,
    compare,
)
from resourcesync.model.digests import agree, disagree
from resourcesync.model.entries import Link, Resource
from resourcesync.ports.originals import Original, OriginalRun, Originals

_log = logging.getLogger(__name__)
_UNREADABLE = "unreadable-file"


_MAX_LEFT: Final = 100
_AHEAD: Final = 64
_RUN: Final = 1_000


class LeftFile(msgspec.Struct, frozen=True, kw_only=True):
    """An original whose catalogue entry was left unchanged.

    Attributes:
        code: A stable word.
        reason: The cause, in one sentence that names the original.
        hint: What to do now.
    """

    code: str
    reason: str
    hint: str = ""


class ScanReport(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a scan.

    ``touched`` have other metadata and the same bytes. The entries of those that were ``changing``
    while they were read, or are ``unreadable``, are unchanged; ``left`` has the first 100 of them.
    """

    files: int = 0  # number of originals
    bytes: int = 0  # their size
    hashed: int = 0  # originals that were read
    created: int = 0
    updated: int = 0
    deleted: int = 0
    touched: int = 0
    changing: int = 0
    unreadable: int = 0
    unlisted: int = 0  # those of them without an entry
    omitted: int = 0  # not published, other than on purpose, as far as they are listed
    left: tuple[LeftFile, ...] = ()


def scan(
    originals: Originals,
    catalogue: SourceCatalogue,
    now: datetime,
    *,
    anew: bool = False,
    allow_empty: bool = True,
    settle: Callable[[CatalogueRecording], int] | None = None,
) -> ScanReport:
    """Record in the catalogue how the originals differ from it; all or nothing.

    An original with the same metadata is not read. The entry of one that cannot be read, or that
    changes while it is, stays as it is: one bad file stops neither the others nor the next run.
    ``settle`` ends the recording, and returns how many more resources it recorded as updated.
    """
    with catalogue.record(now) as recording:
        found = _Scan(originals, catalogue, recording)
        found.record(anew=anew)
        counts = found.counts
        if not counts["files"] and not allow_empty:
            raise empty_tree_error(counts["deleted"])
        if settle is not None:
            counts["updated"] += settle(recording)
    return ScanReport(**counts, omitted=len(originals.omissions()), left=tuple(found.left))


def empty_tree_error(deleted: int = 0) -> ConfigurationError:
    """Return the error that a tree has nothing to publish."""
    return ConfigurationError(
        "there are no files to publish"
        + (f", and {deleted:,} were published before" if deleted else ""),
        evidence=(("kept", "what was published before"),) if deleted else (),
        hint="check the mount and the filters; if the tree is really empty, allow it: "
        "--allow-empty",
        code="empty-tree",
    )


class _Known(NamedTuple):
    uri: str
    fingerprint: str


class _Scan:
    def __init__(
        self, originals: Originals, catalogue: SourceCatalogue, recording: CatalogueRecording
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.left: list[LeftFile] = []
        self._originals = originals
        self._catalogue = catalogue
        self._recording = recording

    def record(self, *, anew: bool) -> None:
        """List all originals, and record those that differ; with ``anew``, read all of them."""
        for difference in self._differences(anew=anew):
            match difference:
                case Deleted(before):
                    self._originals.check_gone(before.uri)
                    self._recording.deleted(Resource(uri=before.uri))
                    self.counts["deleted"] += 1
                case Created(after):
                    self._note(self._record_original(None, after))
                case Updated(before, after):
                    self._note(self._record_original(before, after))
                case Same():
                    continue
                case unreachable:
                    assert_never(unreachable)

    def _differences(self, *, anew: bool) -> Iterator[Difference[Original, _Known]]:
        stretches = _stretches(self._catalogue.fingerprints(), self._runs(), anew=anew)
        for pairs, run in stretches:
            found = run if pairs or not run else self._record_new(run)
            differing = compare(map(_Known._make, pairs), found, same=lambda _before, _after: False)
            while some := list(islice(differing, _AHEAD)):
                self._originals.prefetch(
                    [item.after for item in some if not isinstance(item, Deleted)]
                )
                yield from some

    def _runs(self) -> Iterator[Sequence[Original]]:
        for run in self._originals.runs():
            self.counts["files"] += len(run)
            lengths = run.lengths if isinstance(run, OriginalRun) else [each.length for each in run]
            self.counts["bytes"] += sum(lengths)
            yield run

    def _record_new(self, run: Sequence[Original]) -> Sequence[Original]:
        resources, fingerprints, rest = self._originals.measure_run(run)
        self._recording.created_run(resources, fingerprints)
        self.counts["hashed"] += len(resources)
        self.counts["created"] += len(resources)
        return rest

    def _record_original(self, before: _Known | None, after: Original) -> StorageError | None:
        try:
            resource, fingerprint = self._originals.measure(after)
        except StorageError as error:
            is_changing = isinstance(error, OriginalChangedError)
            if not (is_changing or error.code == _UNREADABLE):
                raise
            _log.info("%s; left for the next run", error)
            self.counts["changing" if is_changing else "unreadable"] += 1
            self.counts["unlisted"] += before is None
            return error
        self.counts["hashed"] += 1
        known = None if before is None else self._catalogue.find(before.uri)
        if before is None or known is None:
            self._recording.created(resource, fingerprint)
            self.counts["created"] += 1
        elif (known, before.fingerprint) == (resource, fingerprint):
            return None  # it only could not be trusted unread
        elif _is_same(known, resource, is_unchanged=before.fingerprint == fingerprint != ""):
            self._recording.touched(resource, fingerprint)
            # An original too fresh to be trusted is read again, even without another write.
            self.counts["touched"] += before.fingerprint != "" or known != resource
        else:
            self._recording.updated(resource, fingerprint)
            self.counts["updated"] += 1
        return None

    def _note(self, error: StorageError | None) -> None:
        if error is not None and len(self.left) < _MAX_LEFT:
            self.left.append(LeftFile(code=error.code, reason=error.message, hint=error.hint))


_Pair = tuple[str, str]
"""A URI and a fingerprint."""
_uri: Final[Callable[[_Pair], str]] = itemgetter(0)
_fingerprint: Final[Callable[[_Pair], str]] = itemgetter(1)


def _stretches(
    known: Iterator[_Pair], runs: Iterator[Sequence[Original]], *, anew: bool
) -> Iterator[tuple[Sequence[_Pair], Sequence[Original]]]:
    """Yield the differing parts of two listings, each stretch with less than some thousand."""
    waiting: list[_Pair] = []
    last = ""
    for run in runs:
        pairs = _pairs_of(run)
        waiting += islice(known, max(0, len(pairs) - len(waiting)))
        if waiting == pairs and all(map(_fingerprint, pairs)) and not anew:
            waiting, last = [], pairs[-1][0]
            continue
        last = _check_order(last, pairs)
        start = 0
        while start < len(pairs):
            if not waiting:
                waiting += islice(known, len(pairs) - start)
            until = min(last, waiting[-1][0]) if waiting else last
            theirs = bisect_right(waiting, until, key=_uri)
            end = bisect_right(pairs, until, start, key=_uri)
            same = set() if anew else set(waiting[:theirs]).intersection(pairs[start:end])
            before = [pair for pair in waiting[:theirs] if pair not in same or not pair[1]]
            places = [at for at in range(start, end) if pairs[at] not in same or not pairs[at][1]]
            if before or places:
                yield before, _select(run, places)
            waiting, start = waiting[theirs:], end
    while waiting := waiting or list(islice(known, _RUN)):
        yield waiting, ()
        waiting = []


def _pairs_of(run: Sequence[Original]) -> list[_Pair]:
    if isinstance(run, OriginalRun):
        return list(zip(run.uris, run.fingerprints, strict=True))
    return [(original.uri, original.fingerprint) for original in run]


def _select(run: Sequence[Original], places: Sequence[int]) -> Sequence[Original]:
    if len(places) == len(run):
        return run
    return run.select(places) if isinstance(run, OriginalRun) else [run[at] for at in places]


def _check_order(last: str, pairs: Sequence[_Pair]) -> str:
    uris = [last, *map(_uri, pairs)]
    if not all(map(lt, uris, uris[1:])):
        raise UnorderedAccountError(f"the originals after {last!r} are not in the order of URIs")
    return uris[-1]


def _is_same(known: Resource, resource: Resource, *, is_unchanged: bool) -> bool:
    """Other links or another type are a change: only a Change List may tell a mirror of it."""
    if known.media_type != resource.media_type or _untimed(known) != _untimed(resource):
        return False
    if is_unchanged:
        return not disagree(known.digests, resource.digests)
    return agree(known.digests, resource.digests)


def _untimed(resource: Resource) -> list[Link]:
    return [replace(link, modified=None) for link in resource.links]
