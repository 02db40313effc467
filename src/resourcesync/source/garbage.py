"""Garbage collection: documents that nothing refers to.

A document is removed only after a delay, since somebody may still be reading it.
"""

import logging
from collections.abc import Callable, Container, Mapping
from typing import Final

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
    is_ours: Callable[[str], bool],
) -> dict[str, int]:
    """Return our own stored documents that nothing refers to, and since when."""
    return {
        name: min(before.get(name, now), now)
        for name in documents.names()
        if name not in wanted and (name in known or name in before or is_ours(name))
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
