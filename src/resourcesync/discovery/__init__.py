"""From any address to a Source's lists (§6.3): mirror, judge and push all need it."""

from resourcesync.discovery.discover import Discovered, discover
from resourcesync.discovery.documents import DocumentFetcher, FetchedDocument
from resourcesync.discovery.search import Documents, Search

__all__ = ["Discovered", "DocumentFetcher", "Documents", "FetchedDocument", "Search", "discover"]
