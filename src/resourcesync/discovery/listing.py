"""Listings: the present resources of a Source, to be compared with another listing (§5.2).

The listing of a Source is its Resource List and the changes since; that of a list, an index or a
plain sitemap is its entries. Two entries of one resource are compared by hash, else by length and
``lastmod``.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from resourcesync.discovery.discover import absolute, discover, discover_locally
from resourcesync.discovery.document_fetcher import DocumentProvider, FetchedDocument, fetch
from resourcesync.discovery.search import Search, use_first
from resourcesync.discovery.sets import SourceLists
from resourcesync.documents.reader import Document
from resourcesync.errors import DocumentLimitError, UnexpectedDocumentError
from resourcesync.model.capabilities import Part
from resourcesync.model.digests import agree, disagree, format_digests, parse_digests
from resourcesync.model.resources import Change, Resource
from resourcesync.model.timestamps import (
    from_microseconds,
    known_microseconds,
    parse_w3c,
    to_microseconds,
)
from resourcesync.model.vocabulary import Capability, ChangeKind

_MAX_PARTS: Final = 50_000
_MAX_DIGITS: Final = 19
_LISTS: Final = frozenset({None, Capability.RESOURCE_LIST})
_ENTRY_POINTS: Final = frozenset({Capability.DESCRIPTION, Capability.CAPABILITY_LIST})


class ListingRow(NamedTuple):
    """One listed resource. A named tuple, since millions are read in a row.

    Attributes:
        uri: Its URI, as written.
        hash: A ``hash`` attribute; empty for none.
        length: Bytes, or ``None``.
        lastmod: Microseconds since 1970, or ``None``.
        change: Its change, when it comes from a Change List.
    """

    uri: str
    hash: str = ""
    length: int | None = None
    lastmod: int | None = None
    change: str = ""


class ListingSummary(msgspec.Struct, kw_only=True):
    """The documents and entries behind a listing.

    Attributes:
        documents: The documents with entries, at most 1,000 of them.
        at: The ``at`` of the Resource List, microseconds; ``None`` for none.
        entries: Entries that were read.
        changes: Number of them that are changes since the Resource List.
        refused: Entries that cannot be used.
        gap: True if the Change Lists begin after the Resource List.
    """

    documents: list[str] = msgspec.field(default_factory=list)
    at: int | None = None
    entries: int = 0
    changes: int = 0
    refused: int = 0
    gap: bool = False


class ListingReader:
    """A reader of listings.

    Args:
        add: Called with each row, in the order of the lists; the last one of a URI counts.
        allowed: Origins that a page or a ``robots.txt`` may lead to, besides its own.
    """

    def __init__(
        self,
        documents: DocumentProvider,
        add: Callable[[ListingRow], None],
        allowed: Iterable[str] = (),
    ) -> None:
        self._documents = documents
        self._add = add
        self._allowed = tuple(allowed)
        self._telling = ListingSummary()

    def read(self, address: str) -> ListingSummary:
        """Read the account of an address or a local document.

        Raises:
            SourceError: A document could not be had.
            DocumentError: A document cannot be used, or lists no resources.
            StorageError: A document could not be stored or read.
            ConfigurationError: The address is none, or offers several sets.
        """
        search = Search(self._documents, self._allowed)
        begun = use_first(self._documents, address, self._begin, search)
        if isinstance(begun, SourceLists):
            if begun.resource_list is None:
                raise UnexpectedDocumentError(
                    "the Source offers no Resource List, so its resources are unknown",
                    uri=begun.capability_list or begun.entry,
                )
            with fetch(self._documents, begun.resource_list) as fetched:
                self._read_list(fetched.open())
            if begun.change_list is not None and self._telling.at is not None:
                with fetch(self._documents, begun.change_list) as fetched:
                    self._read_changes(fetched.open())
        return self._telling

    def _begin(self, document: Document, fetched: FetchedDocument) -> SourceLists | ListingSummary:
        """Read a list at once; of a Source, return where its lists are."""
        kind = document.header.capability
        if kind in _ENTRY_POINTS:
            if "://" not in fetched.uri:
                return discover_locally(self._documents, fetched.uri)
            return discover(self._documents, fetched.uri, allowed=self._allowed)
        if kind not in _LISTS and kind is not Capability.RESOURCE_DUMP_MANIFEST:
            raise UnexpectedDocumentError(
                f"a {document.header.phrase} does not list the resources",
                uri=document.uri,
                hint="give the address of the Source or of its Resource List",
            )
        self._read_list(document)
        return self._telling

    def _read_list(self, document: Document) -> None:
        at = document.header.at
        self._telling.at = known_microseconds(at)
        if not document.header.is_index:
            self._add_resources(document)
            return
        for part in _parts(document):
            with fetch(self._documents, absolute(document, part.uri)) as fetched:
                inner = fetched.open()
                _expect(inner, document.header.capability)
                self._add_resources(inner)

    def _add_resources(self, document: Document) -> None:
        self._record_document(document)
        if document.header.capability in _LISTS:
            for row in document.rows():
                self._add_row(
                    ListingRow(
                        row.uri,
                        row.hash_text or "",
                        _length(row.length_text),
                        _moment(row.lastmod_text),
                    )
                )
        else:
            for entry in document.entries():
                if isinstance(entry, Resource):
                    self._add_row(listing_row(entry))
        self._telling.refused += document.refused

    def _read_changes(self, document: Document) -> None:
        at = self._telling.at
        assert at is not None, "changes are read after the list that they change"
        start = document.header.from_
        if not document.header.is_index:
            self._telling.gap = start is not None and to_microseconds(start) > at
            self._add_changes(document, at)
            return
        is_first = True
        for part in _parts(document):
            if part.until is not None and to_microseconds(part.until) <= at:
                continue
            with fetch(self._documents, absolute(document, part.uri)) as fetched:
                inner = fetched.open()
                _expect(inner, Capability.CHANGE_LIST)
                start = inner.header.from_
                if is_first and start is not None and to_microseconds(start) > at:
                    self._telling.gap = True
                is_first = False
                self._add_changes(inner, at)

    def _add_changes(self, document: Document, at: int) -> None:
        self._record_document(document)
        for entry in document.entries():
            assert isinstance(entry, Change), "a Change List that is no index has changes"
            moment = entry.time or entry.resource.lastmod
            if moment is None or to_microseconds(moment) > at:
                self._telling.changes += 1
                self._add_row(listing_row(entry.resource)._replace(change=entry.kind.value))
        self._telling.refused += document.refused

    def _add_row(self, told: ListingRow) -> None:
        self._telling.entries += 1
        self._add(told)

    def _record_document(self, document: Document) -> None:
        if len(self._telling.documents) < 1_000:  # noqa: PLR2004 - enough to be shown
            self._telling.documents.append(document.uri)


def listing_row(resource: Resource) -> ListingRow:
    """Return the row of an entry."""
    return ListingRow(
        resource.uri,
        format_digests(resource.digests),
        resource.length,
        known_microseconds(resource.lastmod),
    )


def latest_rows(rows: Iterable[ListingRow]) -> Iterator[ListingRow]:
    """Yield the last row of each URI that is not deleted.

    Args:
        rows: In URI order; those of one URI in the order in which they were read.
    """
    current: ListingRow | None = None
    for row in rows:
        if current is not None and row.uri != current.uri and not _is_gone(current):
            yield current
        current = row
    if current is not None and not _is_gone(current):
        yield current


def _is_gone(told: ListingRow) -> bool:
    return told.change == ChangeKind.DELETED


class ListingComparison(StrEnum):
    """The result of comparing two rows of one resource."""

    SAME = "same"
    DIFFERENT = "different"
    UNPROVEN = "unproven"


def compare_rows(left: ListingRow, right: ListingRow) -> tuple[ListingComparison, str]:
    """Compare two tellings of one resource; return the verdict and its reason.

    A shared hash decides. Without one, another length or another ``lastmod`` is a difference, and
    rows without a contradiction are not proven equal.
    """
    if left.hash and left.hash == right.hash and left.length == right.length:
        return ListingComparison.SAME, ""
    if left.length is not None and right.length is not None and left.length != right.length:
        return ListingComparison.DIFFERENT, f"{left.length:,} B in A, {right.length:,} B in B"
    item, other = parse_digests(left.hash), parse_digests(right.hash)
    if disagree(item, other):
        known = dict(other)
        names = ", ".join([name for name, value in item if known.get(name, value) != value])
        return ListingComparison.DIFFERENT, f"{names} differs"
    if agree(item, other):
        return ListingComparison.SAME, ""
    if left.lastmod is not None and right.lastmod is not None and left.lastmod != right.lastmod:
        times = [
            from_microseconds(number).isoformat()[:19] for number in (left.lastmod, right.lastmod)
        ]
        return ListingComparison.DIFFERENT, f"lastmod {times[0]}Z in A, {times[1]}Z in B"
    return ListingComparison.UNPROVEN, "no hash in common"


def _parts(index: Document) -> list[Part]:
    parts: list[Part] = []
    for entry in index.entries():
        assert isinstance(entry, Part), "an index has parts"
        parts.append(entry)
        if len(parts) > _MAX_PARTS:
            limit = (("limit", f"{_MAX_PARTS}"),)
            raise DocumentLimitError(
                "an index lists too many documents", uri=index.uri, evidence=limit
            )
    return parts


def _expect(document: Document, capability: Capability | None) -> None:
    if document.header.capability is not capability or document.header.is_index:
        raise UnexpectedDocumentError(
            f"a part of an index is a {document.header.phrase}", uri=document.uri
        )


def _length(text: str | None) -> int | None:
    if text is None or not text.isdecimal() or len(text) > _MAX_DIGITS:
        return None
    return int(text)


@lru_cache(maxsize=4096)  # lists repeat their times
def _moment(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return to_microseconds(parse_w3c(text))
    except ValueError:
        return None
