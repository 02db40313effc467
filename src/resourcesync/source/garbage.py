"""What belongs to no list any more: found, and removed once nobody can be reading it.

Let go of former versions that nobody is led to any more (§14.6).
"""

import logging
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Final

from resourcesync.ports import DocumentStore
from resourcesync.ports.versions import VersionIndex, VersionStore
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


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRetention:
    """How long former versions stay that no list tells of any more.

    Attributes:
        keep: So long at least, in microseconds.
        least: So many of each resource at least.
    """

    keep: int = 0
    least: int = 0


def drop_unlisted_versions(
    index: VersionIndex, store: VersionStore, retention: VersionRetention, reach: int, now: int
) -> None:
    """Drop former versions that nobody is led to any more.

    Args:
        index: Which versions there are.
        store: Their bytes.
        retention: What stays longer.
        reach: What holds since then, or was changed since then, is told by a list, or is still to
            be packed; in microseconds.
        now: The present moment, in microseconds.
    """
    before = min(reach, now) - GRACE
    if retention.keep:
        before = min(before, now - retention.keep)
    gone = index.drop_superseded(before, retention.least)
    if gone:
        _log.info("removing %d former contents, which no list tells of", len(gone))
        store.remove(gone)
