"""From any address to a Source's lists (§6.3): mirror, judge and push all need it."""

from resourcesync.discovery.discover import Discovered, discover, offered_sets
from resourcesync.discovery.documents import DocumentFetcher, Documents, FetchedDocument
from resourcesync.discovery.offering import offered_by
from resourcesync.discovery.search import Search
from resourcesync.discovery.sets import Choice, OfferedSet, names_of

__all__ = [
    "Choice",
    "Discovered",
    "DocumentFetcher",
    "Documents",
    "FetchedDocument",
    "OfferedSet",
    "Search",
    "discover",
    "names_of",
    "offered_by",
    "offered_sets",
]
