"""Comparison of two visits: what changed in between must be in a Change List (§12.1)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from resourcesync.model.vocabulary import Capability
from resourcesync.validator.rule import RuleFinding
from resourcesync.validator.summaries import DocumentSummary, ListedResource, at_listed

MOST_ENTRIES: Final = 20_000
"""Most entries of one visit that are stored; of a larger Source, a share of its resources."""


class _ListedChange(NamedTuple):
    kind: str
    time: datetime | None


class VisitedEntries:
    """The entries of a Source's lists at one visit; of a large Source, those of a share of URIs.

    Args:
        stride: One of so many resources is stored; it grows with the Source.
    """

    def __init__(self, stride: int = 1) -> None:
        self.stride = stride
        self.resources: dict[str, ListedResource] = {}
        self.changes: dict[str, set[_ListedChange]] = {}

    def add(self, listed: ListedResource, document: DocumentSummary) -> None:
        """Add an entry of a document that is being read."""
        if hash(listed.uri) % self.stride:
            return
        if document.capability is Capability.CHANGE_LIST:
            change = _ListedChange(listed.change, listed.time)
            self.changes.setdefault(listed.uri, set()).add(change)
        elif document.capability is Capability.RESOURCE_LIST:
            self.resources[listed.uri] = listed
        while len(self.resources) + len(self.changes) > MOST_ENTRIES:
            self._thin_out()

    def _thin_out(self) -> None:
        self.stride *= 2
        for entries in (self.resources, self.changes):
            for uri in [uri for uri in entries if hash(uri) % self.stride]:
                del entries[uri]


class Visit(NamedTuple):
    """One visit."""

    entries: VisitedEntries
    documents: Sequence[DocumentSummary]


def find_changed(
    before: Visit, after: Visit, other_bytes: Mapping[str, ListedResource]
) -> dict[str, ListedResource]:
    """Return what changed between two visits, by URI, as far as the Change Lists cover it.

    Args:
        before: The first visit.
        after: The second one.
        other_bytes: Resources that were as listed at the first visit, and not at the second.
    """
    stride = max(before.entries.stride, after.entries.stride)
    old, new = before.entries.resources, after.entries.resources
    listed = {
        uri: new.get(uri) or old[uri]
        for uri in old.keys() | new.keys()
        if uri not in old or uri not in new or _differs(old[uri], new[uri])
    }
    covered = _covered_sets(before, after)
    ups = {document.uri: document.link("up") for document in (*before.documents, *after.documents)}
    return {
        uri: entry
        for uri, entry in (listed | dict(other_bytes)).items()
        if not hash(uri) % stride and ups.get(entry.document) in covered
    }


def judge_changes_listed(
    changed: Mapping[str, ListedResource],
    before: Visit,
    after: Visit,
    other_bytes: Collection[str] = (),
) -> Iterator[RuleFinding]:
    """Check that what changed between two visits is in a Change List of the second.

    Args:
        changed: What changed, as `find_changed` returns it.
        before: The first visit.
        after: The second one.
        other_bytes: Resources whose bytes changed: a change that was listed before is not it.
    """
    moments = [summary.at for summary in _lists(before, Capability.RESOURCE_LIST) if summary.at]
    begin = min(moments, default=None)
    for uri, entry in changed.items():
        known = before.entries.changes.get(uri, set())
        now = after.entries.changes.get(uri, set())
        is_told = bool(now - known)
        if uri not in other_bytes:  # the Resource List may be older than the first Change List
            times = [change.time for change in known | now]
            is_told |= any(time is None or begin is None or time >= begin for time in times)
        if not is_told:
            yield at_listed("CH14", f"{uri} changed, and no Change List has the change", entry)


def _differs(old: ListedResource, new: ListedResource) -> bool:
    """True if two entries are of different contents."""
    common = old.hashes.keys() & new.hashes.keys()
    if common:
        return any(old.hashes[name] != new.hashes[name] for name in common)
    return (old.length, old.lastmod) != (new.length, new.lastmod)


def _covered_sets(before: Visit, after: Visit) -> set[str | None]:
    """Return the sets whose Change Lists reach back to the Resource List of the first visit."""
    found: set[str | None] = set()
    for up in {summary.link("up") for summary in after.documents} - {None}:
        first, second = (_moments(visit, up) for visit in (before, after))
        starts = [
            summary.from_
            for summary in _lists(after, Capability.CHANGE_LIST)
            if summary.link("up") == up and summary.from_
        ]
        if first and second and starts and min(starts) <= min(first) <= min(second):
            found.add(up)
    return found


def _moments(visit: Visit, up: str | None) -> list[datetime]:
    lists = _lists(visit, Capability.RESOURCE_LIST)
    return [summary.at for summary in lists if summary.link("up") == up and summary.at]


def _lists(visit: Visit, capability: Capability) -> Iterator[DocumentSummary]:
    return (summary for summary in visit.documents if summary.capability is capability)
