"""Checks of lists and their indexes that Resource Lists and Change Lists share. Pure."""

from typing import TYPE_CHECKING, Final

from resourcesync import errors
from resourcesync.destination.lists.packages import REPORT_IT, too_many_listed
from resourcesync.discovery.document_fetcher import FetchedDocument
from resourcesync.discovery.uris import origin, own_entries
from resourcesync.model.entries import Header, Part
from resourcesync.model.leniencies import Leniency
from resourcesync.model.vocabulary import Capability

if TYPE_CHECKING:
    from resourcesync.documents.reader import Document

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
    return (
        requested.partition("://")[2] == final.partition("://")[2]
    )  # TLS or not, the host is the same


def fits_index(announced: Part, header: Header, index: Header) -> bool:
    """True if a part was written together with its index (it may be read while it is rewritten)."""
    if header.at is None:
        return index.at is None
    if announced.at is not None:
        return header.at == announced.at
    return index.at is None or header.at >= index.at
