"""Walk all documents of a Source, from the one at an address down (§6.1): what ``explore`` shows.

Each document is read once, as a stream; what is kept of it are counts and, until they are visited,
the addresses of the documents that it lists. One that fails is a node with its error.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urljoin

from resourcesync.discovery.documents import Documents, FetchedDocument, fetch
from resourcesync.discovery.search import Search, use_first
from resourcesync.discovery.survey import Survey
from resourcesync.documents.reading import Document
from resourcesync.errors import DocumentError, ResourceSyncError, SourceError, StorageError
from resourcesync.model.capabilities import CapabilityEntry, Header, Part
from resourcesync.model.vocabulary import Capability, Dialect

MAX_DEPTH: Final = 8
"""Levels of documents that are followed at most: an honest Source has five."""
_MAX_DOCUMENTS: Final = 100_000
_LISTS_DOCUMENTS: Final = frozenset({Capability.DESCRIPTION, Capability.CAPABILITY_LIST})
_NOT_FETCHED: Final = frozenset({Capability.CHANGE_NOTIFICATION, Capability.FRAMEWORK_NOTIFICATION})
_ROWS: Final = frozenset({None, Capability.RESOURCE_LIST, Capability.CHANGE_LIST})

Branches = tuple[bool, ...]
"""For each level below the first document: whether the node's ancestor is the last one there."""
Skipped = Literal["", "seen", "depth", "channel", "unknown", "budget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was read of one document, to its end.

    Attributes:
        uri: Its address as asked for.
        final_uri: Where it came from, after redirects.
        header: What its root says.
        dialect: How it is written.
        media_type: How it was served.
        survey: What it holds.
        children: The documents that it lists, in its order.
    """

    uri: str
    final_uri: str
    header: Header
    dialect: Dialect
    media_type: str
    survey: Survey
    children: tuple["Child", ...] = ()


@dataclass(frozen=True, slots=True)
class Child:
    """A document that another one lists."""

    uri: str
    capability: Capability | None = None
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One place in the tree.

    Attributes:
        uri: The document's address.
        branches: Where it hangs; empty for the first document.
        label: What the document above calls it; empty when it does not say.
        reading: What was read of it; ``None`` when it was not read.
        error: Why it could not be read.
        skipped: Why it was not fetched: met before, below the depth asked for, a channel of
            notifications, of a capability unknown here, too many documents.
        road: By what the first document was found, in words; empty when it is the very address.
    """

    uri: str
    branches: Branches = ()
    label: str = ""
    reading: Reading | None = None
    error: ResourceSyncError | None = None
    skipped: Skipped = ""
    road: str = ""

    @property
    def depth(self) -> int:
        """Its level: 1 for the first document."""
        return len(self.branches) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """What all parts of one index hold together; comes after the last of them.

    Attributes:
        uri: The index.
        branches: Where the sum hangs.
        parts: How many parts were read.
        survey: What they hold.
    """

    uri: str
    branches: Branches
    parts: int
    survey: Survey


@dataclass(slots=True)
class _Count:
    """What the parts of an index have shown so far."""

    parts: int = 0
    survey: Survey = field(default_factory=Survey)


class Tree:
    """The documents of a Source.

    Args:
        documents: Gets documents.
        depth: Levels of documents to show.
        allowed: Origins that a page or a ``robots.txt`` may lead to, besides its own.
    """

    def __init__(
        self, documents: Documents, *, depth: int = MAX_DEPTH, allowed: Iterable[str] = ()
    ) -> None:
        self._documents = documents
        self._search = Search(documents, allowed)
        self._depth = min(depth, MAX_DEPTH)
        self._seen: set[str] = set()

    def walk(self, address: str) -> Iterator[Node | Sum]:
        """Yield the documents, each before those that it lists.

        Raises:
            SourceError: Nothing was found at the address, or it cannot be had.
            DocumentError: What is there cannot be used.
            ConfigurationError: The address is none.
            StorageError: A file could not be kept or read.
        """
        first = use_first(self._documents, address, read_whole, self._search)
        self._seen.update((first.uri, first.final_uri))
        yield Node(uri=first.uri, reading=first, road=self._search.road)
        yield from self._below(first, ())

    def _below(self, above: Reading, branches: Branches) -> Iterator[Node | Sum]:
        children = above.children
        if len(branches) + 1 >= self._depth:
            return
        sums = (
            above.header.is_index
            and len(children) > 1
            and above.header.capability not in (_LISTS_DOCUMENTS)
        )
        count = _Count()
        for index, child in enumerate(children):
            here = (*branches, index == len(children) - 1 and not sums)
            node = self._visit(child, here)
            yield node
            if node.reading is not None:
                count.parts += 1
                count.survey.add(node.reading.survey)
                yield from self._below(node.reading, here)
        if sums:
            whole = (*branches, True)
            yield Sum(uri=above.uri, branches=whole, parts=count.parts, survey=count.survey)

    def _visit(self, child: Child, branches: Branches) -> Node:
        skipped = self._reason_to_skip(child)
        if skipped:
            return Node(uri=child.uri, branches=branches, label=child.label, skipped=skipped)
        self._seen.add(child.uri)
        try:
            with fetch(self._documents, child.uri) as fetched:
                self._seen.add(fetched.final_uri)
                reading = read_whole(fetched.open(), fetched)
        except (SourceError, DocumentError, StorageError) as error:
            return Node(uri=child.uri, branches=branches, label=child.label, error=error)
        return Node(uri=child.uri, branches=branches, label=child.label, reading=reading)

    def _reason_to_skip(self, child: Child) -> Skipped:
        if child.uri in self._seen:
            return "seen"
        if child.capability in _NOT_FETCHED:
            return "channel"
        if child.label and child.capability is None:
            return "unknown"
        return "budget" if len(self._seen) >= _MAX_DOCUMENTS else ""


def read_whole(document: Document, fetched: FetchedDocument) -> Reading:
    """Read a document to its end: count its entries, keep the documents that it lists.

    Raises:
        DocumentError: It cannot be used.
    """
    header, found, children = document.header, Survey(), list[Child]()
    if header.capability in _ROWS and not header.is_index:
        for row in document.rows():
            found.add_row(row)
    else:
        is_archive = header.capability is not None and header.capability.is_archive
        follows = header.capability in _LISTS_DOCUMENTS or (header.is_index and not is_archive)
        for entry in document.entries():
            found.add_entry(entry)
            if follows and isinstance(entry, Part | CapabilityEntry):
                children.append(_child(document.uri, entry))
    found.refused = document.refused
    return Reading(
        uri=fetched.uri,
        final_uri=fetched.final_uri,
        header=header,
        dialect=document.dialect,
        media_type=fetched.media_type,
        survey=found,
        children=tuple(children),
    )


def _child(base: str, entry: Part | CapabilityEntry) -> Child:
    uri = urljoin(base, entry.uri)
    if isinstance(entry, Part):
        return Child(uri)
    return Child(uri, entry.capability, entry.label)
