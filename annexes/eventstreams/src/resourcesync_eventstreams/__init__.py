"""Wikimedia EventStreams: changes of the pages of wikis, by Server-Sent Events."""

from resourcesync_eventstreams.account import EventStream, open_account

__all__ = ["EventStream", "open_account"]
