"""Count what one document holds, in one pass and in memory that does not grow with it."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final

from resourcesync.documents.reader import TextRow
from resourcesync.model.capabilities import (
    CapabilityEntry,
    DocumentChange,
    Entry,
    Package,
    Part,
)
from resourcesync.model.digests import usable_algorithms
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import parse_w3c

REMAINING_TYPES: Final = "other"
"""The name of all media types beyond the first ones that were met."""
_MOST_NAMES: Final = 200


@dataclass(slots=True, kw_only=True)
class DocumentSurvey:
    """What was counted.

    Attributes:
        entries: Entries that can be used.
        refused: Entries that cannot.
        size: The sum of all lengths that are listed, in bytes.
        sized: How many entries list a length.
        hashed: How many entries list a hash by which the bytes can be verified.
        unprovable: How many entries list hashes, and none that can be used: of an unknown
            algorithm, or of a value that is not its hex.
        media_types: How many entries list each media type, parameters left out.
        algorithms: How many entries list a usable hash of each algorithm.
        changes: How many entries tell of each kind of change.
        newest: The latest time that an entry lists, UTC.
    """

    entries: int = 0
    refused: int = 0
    size: int = 0
    sized: int = 0
    hashed: int = 0
    unprovable: int = 0
    media_types: Counter[str] = field(default_factory=Counter)
    algorithms: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    newest: datetime | None = None
    _newest_text: str = ""

    def add(self, other: "DocumentSurvey") -> None:
        """Count what another survey has counted."""
        self.entries += other.entries
        self.refused += other.refused
        self.size += other.size
        self.sized += other.sized
        self.hashed += other.hashed
        self.unprovable += other.unprovable
        self.changes.update(other.changes)
        self.algorithms.update(other.algorithms)
        for name, number in other.media_types.items():
            self.media_types[_bounded(name, self.media_types)] += number
        self._update_newest(other.newest)

    def add_row(self, row: TextRow) -> None:
        """Count one entry of a list."""
        self.entries += 1
        if row.length_text is not None and row.length_text.isdecimal():
            self._add_length(int(row.length_text[:20]))
        if row.media_type:
            self._add_media_type(row.media_type)
        if row.hash_text:
            self._add_hash(usable_algorithms(row.hash_text))
        if row.change is not None:
            self.changes[row.change] += 1
        self._update_newest_text(row.datetime_text or row.lastmod_text)

    def add_entry(self, entry: Entry) -> None:
        """Count one entry of any document."""
        self.entries += 1
        match entry:
            case Change():
                self.changes[entry.kind.value] += 1
                self._add_described(entry.resource)
                self._update_newest(entry.time or entry.resource.lastmod)
            case DocumentChange():
                self.changes[entry.kind.value] += 1
                self._update_newest(entry.time or entry.lastmod)
            case CapabilityEntry():
                self._update_newest(entry.lastmod)
            case Resource() | Package() | Part():
                self._add_described(entry)
                self._update_newest(entry.lastmod)

    def _add_described(self, entry: Resource | Package | Part) -> None:
        if entry.length is not None:
            self._add_length(entry.length)
        if entry.media_type:
            self._add_media_type(entry.media_type)
        if entry.digests:
            self._add_hash(frozenset(it.algorithm for it in entry.digests if it.is_usable))

    def _add_length(self, length: int) -> None:
        self.size += length
        self.sized += 1

    def _add_media_type(self, text: str) -> None:
        name = _media_type(text[:128])
        self.media_types[_bounded(name, self.media_types)] += 1

    def _add_hash(self, algorithms: frozenset[str]) -> None:
        if not algorithms:
            self.unprovable += 1
            return
        self.hashed += 1
        for name in algorithms:
            self.algorithms[name] += 1

    def _update_newest_text(self, text: str | None) -> None:
        # Times of one form are compared as texts: parsing millions of them takes its time.
        if text is None or (len(text) == len(self._newest_text) and text <= self._newest_text):
            return
        try:
            moment = parse_w3c(text)
        except ValueError:
            return
        if self.newest is None or moment > self.newest:
            self.newest = moment
            is_plain = text.endswith("Z")
            self._newest_text = text if is_plain else ""

    def _update_newest(self, moment: datetime | None) -> None:
        if moment is not None and (self.newest is None or moment > self.newest):
            self.newest, self._newest_text = moment, ""


def _bounded(name: str, counted: Counter[str]) -> str:
    """Return the name under which something is counted: a hostile list may invent millions."""
    return name if name in counted or len(counted) < _MOST_NAMES else REMAINING_TYPES


@lru_cache(maxsize=512)
def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()
