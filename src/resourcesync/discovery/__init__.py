"""Discovery: from any address to a Source's lists (§6.3), for mirrors, the validator and push."""

from resourcesync.discovery.discover import SourceLists, discover, offered_by, offered_sets
from resourcesync.discovery.document_fetcher import (
    DocumentFetcher,
    DocumentProvider,
    FetchedDocument,
)
from resourcesync.discovery.search import Search
from resourcesync.discovery.sets import OfferedSet, SetChoice, names_of

__all__ = [
    "DocumentFetcher",
    "DocumentProvider",
    "FetchedDocument",
    "OfferedSet",
    "Search",
    "SetChoice",
    "SourceLists",
    "discover",
    "names_of",
    "offered_by",
    "offered_sets",
]
