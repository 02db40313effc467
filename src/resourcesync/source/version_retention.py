"""Let go of former versions that nobody is led to any more (§14.6)."""

import logging
from dataclasses import dataclass

from resourcesync.ports.versions import VersionIndex, VersionStore
from resourcesync.source.policy import GRACE

_log = logging.getLogger(__name__)


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
