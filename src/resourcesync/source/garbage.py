"""Garbage collection: unreferenced documents and unlisted former versions (§14.6).

A document is removed only after a delay, since somebody may still be reading it.
"""

import logging
from collections.abc import Container, Mapping
from typing import Final

import msgspec

from resourcesync.catalogue.version_files import FolderVersions
from resourcesync.catalogue.versions import VersionIndex
from resourcesync.ports.documents import DocumentStore
from resourcesync.source import naming
from resourcesync.source.plan import GRACE

_log: Final = logging.getLogger(__name__)


def find_orphans(
    documents: DocumentStore,
    wanted: Container[str],
    known: Container[str],
    before: Mapping[str, int],
    now: int,
) -> dict[str, int]:
    """Return our own stored documents that nothing refers to, and since when."""
    return {
        name: min(before.get(name, now), now)
        for name in documents.names()
        if name not in wanted and (name in known or name in before or naming.is_replaceable(name))
    }


def remove_orphans(documents: DocumentStore, found: Mapping[str, int], now: int) -> dict[str, int]:
    """Remove the documents that were unreferenced for a day; return the rest.

    A head that is no longer offered is removed at once: to its followers it would say for ever that
    nothing is new. A follower that finds it gone starts discovery again, and the documents below it
    still exist.
    """
    left = dict(found)
    for name, since in found.items():
        if name not in naming.LIST_HEADS and now - since <= GRACE:
            continue
        _log.info("removing %s, which is no longer listed anywhere", name)
        documents.delete(name)
        del left[name]
    return left


class VersionRetention(msgspec.Struct, frozen=True, kw_only=True):
    """Retention of former versions that no list names any more."""

    keep: int = 0  # least age, microseconds
    least: int = 0  # least number for each resource


def drop_unlisted_versions(
    index: VersionIndex, store: FolderVersions, retention: VersionRetention, reach: int, now: int
) -> None:
    """Drop former versions that no document leads to any more."""
    before = min(reach, now) - GRACE
    if retention.keep:
        before = min(before, now - retention.keep)
    gone = index.drop_superseded(before, retention.least)
    if gone:
        _log.info("removing %d former contents, which are no longer listed", len(gone))
        store.remove(gone)
