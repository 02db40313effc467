"""The documents of lists and indexes: requested where no stored bytes are proven, and checked.

A stored part of a Resource List is proven by the hash that its index gives: also one whose list
was dated anew, and whose entries are the same. The index of plain sitemaps and its parts are
requested with their validators: "not modified" proves the stored bytes. A reading that requests all
takes stored bytes for a part that is not served, if the hash of the index proves them.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Final

from resourcesync import errors
from resourcesync.destination.lists.absence_proof import is_trusted
from resourcesync.discovery.document_fetcher import DocumentFetcher, FetchedDocument, fetch
from resourcesync.discovery.uris import origin, own_entries
from resourcesync.model.digests import usable
from resourcesync.model.entries import Header, Part
from resourcesync.model.leniencies import Leniency
from resourcesync.model.timestamps import format_w3c
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import StoredParts, StoredVersion

if TYPE_CHECKING:
    from resourcesync.documents.reader import Document

OnMissing = Callable[[str, errors.ResourceSyncError], None]
_STORED: Final = "sha-256"
REPORT_IT: Final = "report it to the Source; check its lists: resourcesync validate URL"
"""Hint for lists that no Destination can use."""


class ListDocuments:
    """The documents of one reading, at ``now``; ``open_stored`` returns those of the last one.

    ``is_sitemap``: a plain sitemap is read, or its index. ``requests_all``: also what is stored.
    """

    def __init__(
        self,
        documents: DocumentFetcher,
        open_stored: Callable[[], StoredParts | None] = lambda: None,
        now: int = 0,
        *,
        is_sitemap: bool = False,
        requests_all: bool = False,
    ) -> None:
        self._documents, self._open_stored, self._now = documents, open_stored, now
        self._is_sitemap, self._requests_all = is_sitemap and not requests_all, requests_all
        self._stored: StoredParts | None = None
        self._before: Mapping[str, StoredVersion] = {}
        self._read: dict[str, StoredVersion] = {}
        self._retained: set[str] = set()

    def _open(self) -> StoredParts | None:
        if self._stored is None and (stored := self._open_stored()) is not None:
            self._stored, self._before = stored, stored.versions()
        return self._stored

    def first(self, uri: str) -> FetchedDocument:
        """Return the list, or the index, at a URI."""
        if self._is_sitemap and self._open() and (known := self._validators(uri)):
            fetched = self._documents.get(uri, known, reopen=self._reopen)
            if fetched is not None:
                return fetched
        return fetch(self._documents, uri)

    def parts(
        self,
        parts: Mapping[str, Part],
        at: datetime | None,
        served: int | None,
        on_missing: OnMissing,
    ) -> Iterator[FetchedDocument]:
        """Yield the parts of an index of the moment ``at`` that was sent at ``served``."""
        find = partial(self._find, parts, "" if at is None else format_w3c(at), served)
        left: dict[str, StoredVersion | None] = {}
        unserved: dict[str, errors.ResourceSyncError] = {}
        for uri in parts:
            if self._requests_all or (found := find(uri)) is None:
                left[uri] = self._validators(uri)
            else:
                yield found

        def leave(uri: str, error: errors.ResourceSyncError) -> None:
            del left[uri]
            if found := find(uri):
                found.stream.close()  # there may be more of them than files may be open
                unserved[uri] = error
            else:
                on_missing(uri, error)

        if left:
            for fetched in self._documents.get_all({**left}, leave, self._reopen):
                del left[fetched.uri]
                yield fetched
        yield from _each_found(unserved, find, on_missing)
        if left:  # "not modified", but what was stored is lost or damaged
            yield from self._documents.get_all(dict.fromkeys(left), on_missing)

    def _find(
        self, parts: Mapping[str, Part], at: str, served: int | None, uri: str
    ) -> FetchedDocument | None:
        stream = self._proven(parts[uri], at)
        if stream is None:
            return None
        return FetchedDocument(uri=uri, final_uri=uri, stream=stream, served=served)

    def record(self, fetched: FetchedDocument, digest: str, *, is_proven: bool) -> None:
        """Store a document with this SHA-256, if its index or its server can vouch for it."""
        is_validated = self._is_sitemap and bool(fetched.etag or fetched.last_modified)
        is_storable = fetched.uri == fetched.final_uri and (is_proven or is_validated)
        if self._requests_all or not is_storable or not self._open():
            return
        assert self._stored is not None
        self._stored.add(digest, fetched.stream)
        self._retained.add(digest)
        if is_validated:
            before = self._before.get(fetched.uri)
            read_at = before.read_at if fetched.is_stored and before else self._now
            version = StoredVersion(digest, fetched.etag, fetched.last_modified, read_at)
            self._read[fetched.uri] = version

    def retain(self) -> None:
        """Remove what is stored of other lists."""
        if self._stored is not None and not self._requests_all:
            self._stored.retain(self._retained, self._read)

    def _validators(self, uri: str) -> StoredVersion | None:
        known = None if self._requests_all else self._before.get(uri)
        return known if known and is_trusted(known.etag, known.read_at, self._now) else None

    def _reopen(self, uri: str) -> BinaryIO | None:
        known = self._before.get(uri)
        return None if self._stored is None or known is None else self._stored.open(known.digest)

    def _proven(self, part: Part, at: str) -> BinaryIO | None:
        """Return the bytes with the hash of the index, perhaps of a stored part of another moment.

        They are what would be sent.
        """
        digest = next((each for each in usable(part.digests) if each.algorithm == _STORED), None)
        stored = self._open() if digest else None
        return stored.open(digest.value, at) if digest and stored else None


def _each_found(
    failed: Mapping[str, errors.ResourceSyncError],
    find: Callable[[str], FetchedDocument | None],
    on_missing: OnMissing,
) -> Iterator[FetchedDocument]:
    for uri, error in failed.items():
        if found := find(uri):
            yield found
        else:
            on_missing(uri, error)


MAX_PARTS: Final = 50_000
"""The most parts of an index (sitemaps.org)."""


def check_capability(document: "Document", capability: Capability) -> None:
    """Check the capability of a document; a plain sitemap passes for a Resource List."""
    found = document.header.capability
    plain = found is None and capability is Capability.RESOURCE_LIST
    if found is not capability and not plain:
        raise errors.UnexpectedDocumentError(
            f"expected a {capability.phrase}, got a {document.header.phrase}",
            uri=document.uri,
            hint="pull again with the Source's own address, to discover its lists again",
        )


def check_list(document: "Document", capability: Capability) -> None:
    """Check that a part of an index is a list of this capability, not an index itself."""
    check_capability(document, capability)
    if document.header.is_index:
        raise errors.UnexpectedDocumentError(
            "an index lists another index", uri=document.uri, hint=REPORT_IT
        )


def parts_of(document: "Document") -> dict[str, Part]:
    """Return the documents that an index lists, by absolute URI, in its order.

    The index of plain sitemaps may list itself, beside others: that entry is left out.
    """
    parts: dict[str, Part] = {}
    for entry in document.entries():
        assert isinstance(entry, Part), "an index has parts"
        parts.setdefault(entry.uri, entry)  # absolute: resolved by the reader
        if len(parts) > MAX_PARTS:
            raise too_many_listed(document.uri, "an index lists too many documents", MAX_PARTS)
    itself = own_entries(document.uri, parts)
    if itself and document.header.capability is None and len(itself) < len(parts):
        for uri in itself:
            del parts[uri]
        document.tolerate(Leniency.INDEX_LISTS_ITSELF)
    elif itself:
        raise errors.UnexpectedDocumentError(
            "an index lists itself", uri=document.uri, hint=REPORT_IT
        )
    return parts


def is_same_host(fetched: FetchedDocument) -> bool:
    """True if a list came from the requested host: one from another host proves no absence."""
    requested, final = origin(fetched.uri), origin(fetched.final_uri)
    return requested.partition("://")[2] == final.partition("://")[2]  # with TLS, or without


def fits_index(announced: Part, header: Header, index: Header) -> bool:
    """True if a part was written together with its index (it may be read while it is rewritten)."""
    if header.at is None:
        return index.at is None
    if announced.at is not None:
        return header.at == announced.at
    return index.at is None or header.at >= index.at


def too_many_listed(uri: str, message: str, most: int) -> errors.DocumentLimitError:
    """Return the error for a document that lists too much."""
    evidence = (("limit", f"{most}"),)
    return errors.DocumentLimitError(message, uri=uri, evidence=evidence, hint=REPORT_IT)
