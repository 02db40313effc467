"""The tree of a Source's documents, from the one at an address down (§6.1), for ``explore``.

Each document is read once, as a stream, in memory that does not grow with it: only counts remain
and, until they are visited, the addresses of the documents that it lists. One that fails is a node
with its error. A package is a node with its entry in the dump; it is never fetched, but the copy of
its manifest is.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Final, Literal

import msgspec

from resourcesync import errors
from resourcesync.discovery.document_fetcher import DocumentProvider, FetchedDocument, fetch
from resourcesync.discovery.search import Search, use_first
from resourcesync.discovery.uris import is_at_home, join
from resourcesync.documents.reader import Document
from resourcesync.model.entries import (
    CapabilityEntry,
    Change,
    DocumentChange,
    Entry,
    Header,
    Package,
    Part,
    Resource,
)
from resourcesync.model.vocabulary import NOTIFICATIONS, Capability, Dialect, Relation

REMAINING_TYPES: Final = "other"
"""Name for all media types beyond the first ones."""
_MOST_NAMES: Final = 200


_SUMS: Final = ("entries", "refused", "size", "sized", "hashed", "unprovable")


class DocumentSurvey(msgspec.Struct, kw_only=True):
    """The counts of one document or of several.

    ``sized`` entries list a length, ``hashed`` a usable hash, ``unprovable`` only hashes that
    cannot be used.
    """

    entries: int = 0
    refused: int = 0
    size: int = 0
    sized: int = 0
    hashed: int = 0
    unprovable: int = 0
    media_types: Counter[str] = msgspec.field(default_factory=Counter)
    algorithms: Counter[str] = msgspec.field(default_factory=Counter)
    changes: Counter[str] = msgspec.field(default_factory=Counter)
    newest: datetime | None = None

    def add(self, other: "DocumentSurvey") -> None:
        """Count what another survey has counted."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.changes.update(other.changes)
        self.algorithms.update(other.algorithms)
        for name, number in other.media_types.items():
            self.media_types[_bounded(name, self.media_types)] += number
        self._update_newest(other.newest)

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
            self.size += entry.length
            self.sized += 1
        if entry.media_type:
            name = _media_type(entry.media_type[:128])
            self.media_types[_bounded(name, self.media_types)] += 1
        if entry.digests:
            algorithms = {digest.algorithm for digest in entry.digests if digest.is_usable}
            self.hashed += bool(algorithms)
            self.unprovable += not algorithms
            self.algorithms.update(algorithms)

    def _update_newest(self, moment: datetime | None) -> None:
        if moment is not None and (self.newest is None or moment > self.newest):
            self.newest = moment


def _bounded(name: str, counted: Counter[str]) -> str:
    return name if name in counted or len(counted) < _MOST_NAMES else REMAINING_TYPES


@lru_cache(maxsize=512)
def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


MAX_DEPTH: Final = 8
"""Levels of documents that are followed at most: an honest Source has five."""
_MAX_DOCUMENTS: Final = 100_000
_LISTS_DOCUMENTS: Final = frozenset({Capability.DESCRIPTION, Capability.CAPABILITY_LIST})

Branches = tuple[bool, ...]
"""True, for each level below the first document, if the node's ancestor is the last there."""
Skipped = Literal["", "seen", "channel", "unknown", "unread", "budget"]


class DocumentReading(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one document, read to its end; ``children`` is what it lists, in its order."""

    uri: str
    final_uri: str
    header: Header
    dialect: Dialect
    media_type: str
    survey: DocumentSurvey
    children: tuple["ListedChild", ...] = ()


class ListedChild(msgspec.Struct, frozen=True):
    """A document that another one lists, or a package."""

    uri: str
    capability: Capability | None = None
    label: str = ""
    package: Package | None = None


class SourceNode(msgspec.Struct, frozen=True, kw_only=True):
    """One place in the tree.

    ``branches`` is its position in the tree; ``label`` its capability in the document above.
    ``skipped`` is the reason why it was not read: met before, a channel of notifications, of an
    unknown capability, too many documents. ``package`` is the entry of a package in a dump, which
    is not fetched.
    """

    uri: str
    branches: Branches = ()
    label: str = ""
    reading: DocumentReading | None = None
    error: errors.ResourceSyncError | None = None
    skipped: Skipped = ""
    found_by: str = ""
    package: Package | None = None

    @property
    def depth(self) -> int:
        """Level of the node: 1 for the first document."""
        return len(self.branches) + 1


class PartsTotal(msgspec.Struct, kw_only=True):
    """The total of all parts of an index, an archive or a dump; comes after the last.

    ``parts`` were read, of ``listed``; of a dump, copies of manifests.
    """

    uri: str
    branches: Branches
    listed: int
    parts: int = 0
    survey: DocumentSurvey = msgspec.field(default_factory=DocumentSurvey)


class SourceTree:
    """The documents of a Source."""

    def __init__(
        self, documents: DocumentProvider, *, depth: int = MAX_DEPTH, allowed: Iterable[str] = ()
    ) -> None:
        self._documents = documents
        self._allowed = tuple(allowed)
        self._search = Search[DocumentReading](documents, self._allowed)
        self._depth = min(depth, MAX_DEPTH)
        self._visited: set[str] = set()

    def walk(self, address: str) -> Iterator[SourceNode | PartsTotal]:
        """Yield the documents, each before those that it lists."""
        first = use_first(self._documents, address, self._read, self._search)
        self._visited.update((first.uri, first.final_uri))
        yield SourceNode(uri=first.uri, reading=first, found_by=self._search.found_by)
        yield from self._below(first, ())

    def _below(
        self, above: DocumentReading, branches: Branches
    ) -> Iterator[SourceNode | PartsTotal]:
        children = above.children
        if len(branches) + 1 >= self._depth:
            return
        sums = _is_summed_up(above)
        whole = (*branches, True)
        total = PartsTotal(uri=above.uri, branches=whole, listed=len(children))
        for index, child in enumerate(children):
            here = (*branches, index == len(children) - 1 and not sums)
            if child.package is not None:
                yield SourceNode(uri=child.uri, branches=here, package=child.package)
                yield from self._manifest(child.package, above.final_uri, here, total)
            else:
                yield from self._document(child, here, total)
        if sums:
            yield total

    def _document(
        self, child: ListedChild, branches: Branches, total: PartsTotal
    ) -> Iterator[SourceNode | PartsTotal]:
        node = self._visit(child, branches)
        yield node
        if node.reading is not None:
            total.parts += 1
            total.survey.add(node.reading.survey)
            yield from self._below(node.reading, branches)

    def _manifest(
        self, package: Package, base: str, branches: Branches, total: PartsTotal
    ) -> Iterator[SourceNode | PartsTotal]:
        link = package.contents
        uri = None if link is None else join(base, link.href)
        if uri is not None and len(branches) + 1 < self._depth:
            child = ListedChild(uri, label=Relation.CONTENTS)
            yield from self._document(child, (*branches, True), total)

    def _visit(self, child: ListedChild, branches: Branches) -> SourceNode:
        skipped = self._reason_to_skip(child)
        if skipped:
            return SourceNode(uri=child.uri, branches=branches, label=child.label, skipped=skipped)
        self._visited.add(child.uri)
        try:
            with fetch(self._documents, child.uri) as fetched:
                self._visited.add(fetched.final_uri)
                reading = self._read(fetched.open(), fetched)
        except errors.UnexpectedDocumentError as error:  # its capability is unknown
            label = dict(error.evidence).get("got", child.label)
            return SourceNode(uri=child.uri, branches=branches, label=label, skipped="unread")
        except (errors.SourceError, errors.DocumentError, errors.StorageError) as error:
            return SourceNode(uri=child.uri, branches=branches, label=child.label, error=error)
        return SourceNode(uri=child.uri, branches=branches, label=child.label, reading=reading)

    def _reason_to_skip(self, child: ListedChild) -> Skipped:
        if child.uri in self._visited:
            return "seen"
        if child.capability in NOTIFICATIONS:
            return "channel"
        if child.label and child.capability is None and child.label != Relation.CONTENTS:
            return "unknown"  # a copy of a manifest is known by its link
        return "budget" if len(self._visited) >= _MAX_DOCUMENTS else ""

    def _read(self, document: Document, fetched: FetchedDocument) -> DocumentReading:
        header, found, children = document.header, DocumentSurvey(), list[ListedChild]()
        homes = (document.uri, *self._allowed) if document.is_robots else ()
        for entry in document.entries():
            child = _child(document.uri, entry)
            if homes and child is not None and not is_at_home(child.uri, homes):
                continue  # a robots.txt leads to no other origin
            found.add_entry(entry)
            if child is not None:
                children.append(child)
        found.refused = document.refused
        return DocumentReading(
            uri=fetched.uri,
            final_uri=fetched.final_uri,
            header=header,
            dialect=document.dialect,
            media_type=fetched.media_type,
            survey=found,
            children=tuple(children),
        )


def _is_summed_up(above: DocumentReading) -> bool:
    """True if what a document lists are several parts of one whole, and parts that can be read."""
    if above.header.capability in _LISTS_DOCUMENTS or len(above.children) <= 1:
        return False
    packages = [child.package for child in above.children if child.package is not None]
    return not packages or any(package.contents for package in packages)


def _child(base: str, entry: Entry) -> ListedChild | None:
    if not isinstance(entry, CapabilityEntry | Package | Part):
        return None
    uri = (
        join(base, entry.uri) or entry.uri
    )  # an invalid address is reported at its place in the tree
    match entry:
        case CapabilityEntry():
            return ListedChild(uri, entry.capability, entry.label)
        case Package():
            return ListedChild(uri, package=entry)
        case Part():
            return ListedChild(uri)
