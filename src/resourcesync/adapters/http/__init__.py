"""Fetching over HTTP with libcurl: one loop, no thread per connection, polite and bounded."""

from resourcesync.adapters.http.fetcher import CurlFetcher, FetchStats
from resourcesync.adapters.http.settings import FetchSettings

__all__ = ["CurlFetcher", "FetchSettings", "FetchStats"]
