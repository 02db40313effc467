"""What belongs to no list any more: found, and removed once nobody can be reading it."""

import logging
from collections.abc import Container, Mapping
from typing import Final

from resourcesync.ports import DocumentStore
from resourcesync.source import naming
from resourcesync.source.policy import GRACE

_log: Final = logging.getLogger(__name__)


def find_orphans(
    documents: DocumentStore,
    wanted: Container[str],
    known: Container[str],
    before: Mapping[str, int],
    now: int,
) -> dict[str, int]:
    """Return what is there, was made by this package and belongs to nothing; and since when.

    Args:
        documents: The store.
        wanted: What belongs to something.
        known: What was written, whatever its name.
        before: What was found the last time.
        now: The present moment, in microseconds.
    """
    return {
        name: min(before.get(name, now), now)
        for name in documents.names()
        if name not in wanted and (name in known or name in before or naming.is_replaceable(name))
    }


def remove_orphans(documents: DocumentStore, found: Mapping[str, int], now: int) -> dict[str, int]:
    """Remove what has been out of use for a day; return the rest.

    A head that is offered no more goes at once: to who follows it, it would say for ever that
    nothing is new. Who finds it gone looks anew, and what stood below it is still there.

    Args:
        documents: The store.
        found: What ``orphans`` returned.
        now: The present moment, in microseconds.

    Raises:
        StorageError: Something could not be removed.
    """
    left = dict(found)
    for name, since in found.items():
        if name not in naming.LIST_HEADS and now - since <= GRACE:
            continue
        _log.info("removing %s, which is no longer listed anywhere", name)
        documents.delete(name)
        del left[name]
    return left
