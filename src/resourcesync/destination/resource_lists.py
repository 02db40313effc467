"""Read a Source's Resource List, or a plain sitemap, into a spool (§10).

Everything is read and checked whole before anything is acted on, so one bad document changes
nothing. The entries wait in a spool on disk: memory does not grow with the size of the Source.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from resourcesync.destination.mapping import origin
from resourcesync.destination.ordering import Spool
from resourcesync.destination.packages import Packages
from resourcesync.destination.plan import Listed
from resourcesync.destination.selection import Selection
from resourcesync.discovery import DocumentFetcher, FetchedDocument
from resourcesync.documents.reading import Document
from resourcesync.errors import (
    DocumentError,
    DocumentLimitError,
    ResourceSyncError,
    UnexpectedDocumentError,
)
from resourcesync.model.capabilities import Entry, Header, Part, RefusedEntry
from resourcesync.model.resources import Resource, ResourceRun
from resourcesync.model.timestamps import known_microseconds
from resourcesync.model.vocabulary import Capability, Dialect
from resourcesync.ports.mirror import SeenDocument

_MAX_PARTS: Final = 50_000
PART_UNREAD: Final = "part-unread"
"""The code with which a part of a list is refused that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A Resource List as read.

    Attributes:
        at: Every entry includes all changes up to here, microseconds; ``None`` when it says no such
            thing (a plain sitemap).
        entries: How many entries it has.
        complete: Whether every part fits its index and came from the host that was asked, so that
            what is not listed is really gone.
        dialect: How it is written.
        unread: How many of its parts could not be read: what they list is not known.
        seen: The document, for a conditional request; empty for an index, whose parts may change
            without it.
        head: Which version of the list, or of its index, this is; ``None`` where nobody knows.
        is_of_index: Whether no part is older than its index announces.
    """

    at: int | None
    entries: int
    complete: bool
    dialect: Dialect
    seen: tuple[SeenDocument, ...]
    unread: int = 0
    head: "ListHead | None" = None
    is_of_index: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ListHead:
    """One version of a Resource List, or of its index.

    Attributes:
        uri: Its address.
        digest: SHA-256 of its bytes.
        etag, last_modified: For a conditional request.
        at: The latest moment that it states, microseconds; ``None`` where it states none.
    """

    uri: str = ""
    digest: str = ""
    etag: str = ""
    last_modified: str = ""
    at: int | None = None


def list_head(fetched: FetchedDocument) -> ListHead:
    """Return which version of a Resource List, or of its index, a document is."""
    document = fetched.open()
    ats = [_at(document.header)]
    if document.header.is_index:
        ats += [known_microseconds(part.at) for part in parts_of(document).values()]
    fetched.stream.seek(0)
    return ListHead(
        uri=fetched.uri,
        digest=hashlib.file_digest(fetched.stream, "sha256").hexdigest(),  # type: ignore[arg-type]  # a file
        etag=fetched.etag,
        last_modified=fetched.last_modified,
        at=max((at for at in ats if at is not None), default=None),
    )


def other_head(documents: DocumentFetcher, uri: str, known: ListHead | None) -> ListHead | None:
    """Return what is offered in place of a version of a Resource List that was read.

    Args:
        documents: Gets documents.
        uri: The list, or its index.
        known: The version of this list; ``None`` where nobody knows.

    Returns:
        The other version; ``None`` where it is still the known one.

    Raises:
        SourceError: It could not be had.
        DocumentError: It cannot be used.
    """
    fetched = documents.get(
        uri,
        etag=known.etag if known else "",
        last_modified=known.last_modified if known else "",
    )
    if fetched is None:
        return None
    with fetched:
        head = list_head(fetched)
    return None if known is not None and known.digest == head.digest else head


class ResourceListReader:
    """Reads Resource Lists.

    Args:
        documents: Gets documents.
        selection: Turns entries into rows.
        packages: Gets the manifests of a Resource Dump, which stand for the list of a Source that
            has no other; ``None`` refuses a dump.
    """

    def __init__(
        self, documents: DocumentFetcher, selection: Selection, packages: Packages | None = None
    ) -> None:
        self._documents = documents
        self._selection = selection
        self._packages = packages

    def read(
        self,
        uri: str,
        spool: Spool[Listed],
        known: SeenDocument | None = None,
        *,
        is_part: bool = False,
        forgiving: bool = False,
    ) -> Snapshot | None:
        """Read a Resource List, its index, or a plain sitemap, into the spool (§10).

        Args:
            uri: Its address.
            spool: Takes the rows.
            known: What is known of it; then ``None`` is returned when it did not change. Else
                it is asked for past all caches: nothing tells whether a copy of it is one from
                before the Source was set back.
            is_part: Whether it is a part of a list, which must fit its index: that is enough.
            forgiving: Whether parts of an index that cannot be read are refused, and the others
                read; if none can be read, or asking again may help, it raises all the same.

        Raises:
            SourceError: A document could not be had.
            DocumentError: A document cannot be used.
        """
        documents = self._documents if known or is_part else self._documents.past_caches()
        fetched = documents.get(
            uri,
            etag=known.etag if known else "",
            last_modified=known.last_modified if known else "",
        )
        if fetched is None:
            return None
        with fetched:
            self._selection.led_to(fetched.uri, fetched.final_uri)
            document = fetched.open(self._refuser(spool))
            if document.header.capability is Capability.RESOURCE_DUMP and self._packages:
                return self._read_dump(document, fetched, self._packages, spool)
            expect(document, Capability.RESOURCE_LIST)
            if not document.header.is_index:
                entries = self._add_resources(document, spool)
                return Snapshot(
                    at=_at(document.header),
                    entries=entries,
                    complete=is_at_home(fetched),
                    dialect=document.dialect,
                    seen=(seen_document(fetched),),
                    head=list_head(fetched),
                )
            parts, at_home, head = parts_of(document), is_at_home(fetched), list_head(fetched)
        snapshot = self._read_parts(document, parts, spool, forgiving=forgiving)
        complete = snapshot.complete and at_home
        return replace(snapshot, complete=complete, head=head if snapshot.is_of_index else None)

    def _read_parts(
        self, index: Document, parts: dict[str, Part], spool: Spool[Listed], *, forgiving: bool
    ) -> Snapshot:
        ats = [_at(index.header)]
        entries, complete, is_of_index = 0, True, True
        unread: list[ResourceSyncError] = []

        def refuse(uri: str, error: ResourceSyncError) -> None:
            unread.append(error)
            refuse_part(self._selection, uri, error)

        documents = self._documents.get_all(parts, on_missing=refuse if forgiving else None)
        for fetched in documents:
            try:
                header, count = self._read_part(fetched, spool)
            except DocumentError as error:
                if not forgiving or error.transient:
                    raise
                refuse(fetched.uri, error)
                continue
            ats.append(_at(header))
            fits = fits_index(parts[fetched.uri], header, index.header)
            complete = complete and fits and is_at_home(fetched)
            is_of_index = is_of_index and not is_older(parts[fetched.uri], header)
            entries += count
        if unread and len(unread) == len(parts):
            raise unread[0]
        stated = [at for at in ats if at is not None]
        return Snapshot(
            at=min(stated) if stated else None,
            entries=entries,
            complete=complete and not unread,
            dialect=index.dialect,
            seen=(),
            unread=len(unread),
            is_of_index=is_of_index,
        )

    def _read_part(self, fetched: FetchedDocument, spool: Spool[Listed]) -> tuple[Header, int]:
        """Add the resources of one part; return its header, and how many entries it has."""
        with fetched:
            self._selection.led_to(fetched.uri, fetched.final_uri)
            document = fetched.open(self._refuser(spool))
            expect_list(document, Capability.RESOURCE_LIST)
            return document.header, self._add_resources(document, spool)

    def _read_dump(
        self,
        dump: Document,
        fetched: FetchedDocument,
        packages: Packages,
        spool: Spool[Listed],
    ) -> Snapshot:
        """Read the manifests of all packages: together they are the list (§11)."""
        ats = [_at(dump.header)]
        entries = 0
        for offered in packages.of_dump(dump):
            with packages.manifest(offered) as copied:
                document = copied.open(self._refuser(spool))
                at = _at(document.header)
                ats.append(at)
                entries += self._add_resources(document, spool, version=at)
        stated = [at for at in ats if at is not None]
        return Snapshot(
            at=min(stated) if stated else None,
            entries=entries,
            complete=True,
            dialect=dump.dialect,
            seen=() if dump.header.is_index else (seen_document(fetched),),
            head=list_head(fetched),
        )

    def _refuser(self, spool: Spool[Listed]) -> Callable[[RefusedEntry], None]:
        def refuse(entry: RefusedEntry) -> None:
            """Count it; and keep the copy of a URI whose entry cannot be used but is there."""
            self._selection.refuse(entry)
            row = self._selection.protected(entry.uri)
            if row is not None:
                spool.add(row)

        return refuse

    def _add_resources(
        self, document: Document, spool: Spool[Listed], version: int | None = None
    ) -> int:
        """Add the resources; one that tells nothing of its version has that of its package."""
        entries = 0
        for batch in document.batches():
            if isinstance(batch, ResourceRun):
                entries += len(batch)
                rows = self._selection.resources(batch)
                spool.add_all(
                    rows if version is None else (_versioned(row, version) for row in rows)
                )
            else:
                entries += self._add_singly(batch, spool, version)
        self._selection.refusals.forgive(document)
        return entries

    def _add_singly(self, batch: Iterable[Entry], spool: Spool[Listed], version: int | None) -> int:
        entries = 0
        for entry in batch:
            assert isinstance(entry, Resource), "a list that is no index has resources"
            entries += 1
            row = self._selection.resource(entry)
            if row is not None:
                spool.add(row if version is None else _versioned(row, version))
        return entries


def _versioned(row: Listed, version: int) -> Listed:
    """Return a row that tells of its version: if of nothing else, of when its package was."""
    is_mute = not row.hash and row.lastmod is None
    return row._replace(lastmod=version) if is_mute else row


def expect(document: Document, capability: Capability) -> None:
    """Check that a document is of the capability wanted; a plain sitemap passes for a list.

    Raises:
        UnexpectedDocumentError: It is another document.
    """
    found = document.header.capability
    plain = found is None and capability is Capability.RESOURCE_LIST
    if found is not capability and not plain:
        raise UnexpectedDocumentError(
            f"expected a {capability.phrase}, got a {document.header.phrase}",
            uri=document.uri,
            hint="run the pull again with the Source's own address, so that it is found anew",
        )


def expect_list(document: Document, capability: Capability) -> None:
    """Check that a part of an index is a list of the capability wanted, and no index itself.

    Raises:
        UnexpectedDocumentError: It is another document.
    """
    expect(document, capability)
    if document.header.is_index:
        raise UnexpectedDocumentError(
            "an index lists another index",
            uri=document.uri,
            hint="tell the Source; look at its lists with: resourcesync validate URL",
        )


def refuse_part(selection: Selection, uri: str, error: ResourceSyncError) -> None:
    """Refuse a part of a list that cannot be read: what it lists is not known."""
    reason = f"this part of the list cannot be read: {error.message}"
    selection.refusals.add(uri, PART_UNREAD, reason)


def parts_of(document: Document) -> dict[str, Part]:
    """Return the documents that an index lists, by absolute URI, in its order.

    Raises:
        DocumentLimitError: There are too many.
        UnexpectedDocumentError: It lists itself.
    """
    parts: dict[str, Part] = {}
    for entry in document.entries():
        assert isinstance(entry, Part), "an index has parts"
        parts.setdefault(entry.uri, entry)  # absolute: the reader has seen to that
        if len(parts) > _MAX_PARTS:
            raise DocumentLimitError(
                "an index lists too many documents",
                uri=document.uri,
                evidence=(("limit", f"{_MAX_PARTS}"),),
                hint="tell the Source; look at its lists with: resourcesync validate URL",
            )
    if document.uri in parts:
        raise UnexpectedDocumentError(
            "an index lists itself",
            uri=document.uri,
            hint="tell the Source; look at its lists with: resourcesync validate URL",
        )
    return parts


def is_at_home(fetched: FetchedDocument) -> bool:
    """Whether a list came from the host that was asked: another one's says nothing of absence."""
    asked, came = origin(fetched.uri), origin(fetched.final_uri)
    return asked.partition("://")[2] == came.partition("://")[2]  # TLS or not is no other host


def _at(header: Header) -> int | None:
    return known_microseconds(header.at)


def fits_index(announced: Part, header: Header, index: Header) -> bool:
    """Whether a part is of the same making as its index (reading while it is rewritten)."""
    if header.at is None:
        return index.at is None
    if announced.at is not None:
        return header.at == announced.at
    return index.at is None or header.at >= index.at


def is_older(announced: Part, header: Header) -> bool:
    """Return whether a part is of an earlier moment than its index announces: an old copy."""
    return announced.at is not None and header.at is not None and header.at < announced.at


def seen_document(fetched: FetchedDocument) -> SeenDocument:
    """Return what to remember of a document that is asked for with a condition the next time."""
    return SeenDocument(
        uri=fetched.uri,
        from_=0,
        until=None,
        entries=0,
        prefix="",
        etag=fetched.etag,
        last_modified=fetched.last_modified,
    )
