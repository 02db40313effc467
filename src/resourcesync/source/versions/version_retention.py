"""Retention of former versions of a tree's files during its publication."""

import logging
from typing import TYPE_CHECKING, Final

import msgspec

from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports.originals import Originals, ResourceContents
from resourcesync.source import naming
from resourcesync.source.dump_record import read_dumps
from resourcesync.source.present_contents import OpenOriginal, PresentContents
from resourcesync.source.rotation import GRACE
from resourcesync.source.stored_plan import PLAN, CatalogueNote
from resourcesync.source.versions.versions_and_patches import (
    VersionedContents,
    VersionedOriginals,
    VersionRecorder,
)

if TYPE_CHECKING:
    from resourcesync.source.publisher import OpenSource


class RetentionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The versions and patches of one run."""

    versions: int = 0
    patches: int = 0
    unkept: int = 0  # versions for which there was no space


NOTHING_RETAINED: Final = RetentionCounts()


class TreeVersions:
    """No retention: one run of a publication without former versions, as most are."""

    @property
    def counts(self) -> RetentionCounts:
        """The counts up to now."""
        return NOTHING_RETAINED

    def flush(self) -> None:
        """Make stored versions durable: none."""

    def originals(self, originals: Originals) -> Originals:
        """Return the originals; a subclass stores them while they are read."""
        return originals

    def contents(self, originals: Originals, opening: OpenOriginal) -> ResourceContents:
        """Return the content of these originals, and of former versions."""
        return PresentContents(originals, opening)

    def conclude(self, *, packed: bool) -> None:
        """Remove versions without references, after the lists are written."""


def is_retention_enabled(source: "OpenSource") -> bool:
    """True if former versions are stored: on request, and where a Change Dump is offered.

    There, changed files are stored until they are packed: a file that changes twice before that
    would leave a gap.
    """
    if source.settings.versions:
        return True
    dumps, base_uri = read_dumps(source.catalogue), source.settings.names.base_uri
    return naming.CHANGE_DUMP in dumps.documents and dumps.base_uri == base_uri


_log: Final = logging.getLogger(__name__)
_SWEPT: Final = CatalogueNote("versions-swept", int)
_MAX_WAIT: Final = 31 * 24 * 3_600 * 1_000_000
"""Greatest age of changes that are not in a package of a Change Dump, microseconds."""


class StoredTreeVersions(TreeVersions):
    """Retention of former versions, in one run of a tree's publication."""

    def __init__(self, source: "OpenSource", recorder: VersionRecorder) -> None:
        self._asked = source.settings
        self._catalogue = source.catalogue
        self._clock = source.clock
        self._index, self._store = recorder.index, recorder.content
        self._recorder = recorder

    @property
    def counts(self) -> RetentionCounts:
        """The counts up to now."""
        made = self._recorder
        return RetentionCounts(versions=made.stored, patches=made.patched, unkept=made.skipped)

    def flush(self) -> None:
        """Make stored versions durable, before the catalogue records them."""
        self._recorder.flush()

    def originals(self, originals: Originals) -> Originals:
        """Return originals that are stored while they are read."""
        return VersionedOriginals(originals, self._recorder)

    def contents(self, originals: Originals, opening: OpenOriginal) -> VersionedContents:
        """Return the content of these originals, and of former versions."""
        return VersionedContents(originals, opening, self._store)

    def conclude(self, *, packed: bool) -> None:
        """Remove versions without references, after the lists are written; see ``Past``."""
        self.flush()
        now = to_microseconds(self._clock.now())
        if self._asked.versions:
            self._drop_unlisted(now)
        else:
            until = now + 1 if packed else now - _MAX_WAIT
            self._store.remove(self._index.drop_stored_before(until))
        swept = _SWEPT.read(self._catalogue) or 0
        if now - swept > GRACE:
            self._store.sweep(self._index.is_needed, now - GRACE)
            _SWEPT.write(self._catalogue, now)

    def _drop_unlisted(self, now: int) -> None:
        before = self._earliest_needed(now) - GRACE
        if self._asked.versions_keep:
            before = min(before, now - int(self._asked.versions_keep * 1_000_000))
        gone = self._index.drop_superseded(before, self._asked.versions_least)
        if gone:
            _log.info("removing %d former contents, which are no longer listed", len(gone))
            self._store.remove(gone)

    def _earliest_needed(self, now: int) -> int:
        plan, dumps = PLAN.read(self._catalogue), read_dumps(self._catalogue)
        moments = [now]
        if plan is not None:
            moments += [plan.start, *(span.start for span in plan.retired)]
            moments += [superseded_list.at for superseded_list in plan.superseded]
        return min(*moments, *(change.until for change in dumps.changes[-1:]))
