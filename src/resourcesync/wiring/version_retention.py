"""The Source's side: whether what a tree was is kept while it is published.

The Source's side: what a tree was is kept while it is published.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from resourcesync.adapters.catalogue import FileCatalogue
from resourcesync.adapters.version_files import FolderVersions
from resourcesync.errors import ConfigurationError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import CatalogueStore, Clock
from resourcesync.ports.originals import OriginalReader, ResourceContents
from resourcesync.source import naming
from resourcesync.source.contents import OpenOriginal, PresentContents
from resourcesync.source.dump_record import read_dumps
from resourcesync.source.garbage import VersionRetention, drop_unlisted_versions
from resourcesync.source.links import ScannableOriginals
from resourcesync.source.naming import SourceNaming
from resourcesync.source.plan import GRACE, read_plan
from resourcesync.source.versions import (
    PatchGenerator,
    VersionedContents,
    VersionedOriginals,
    VersionNames,
    VersionPolicy,
    VersionRecorder,
)
from resourcesync.wiring import plugins

VERSIONS_FOLDER: Final = ".resourcesync/versions"
"""Where versions are kept, from the tree, unless another folder is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionOptions:
    """How versions are kept.

    Attributes:
        is_public: True if entries lead to them.
        folder: Where they are kept, from the tree; empty is ``FOLDER``.
        keep: So long at least, in seconds.
        least: So many former versions of each file at least.
        most: The most bytes of all; 0 for any number.
        patches: True if patches are computed.
    """

    is_public: bool = False
    folder: str = ""
    keep: float = 0
    least: int = 0
    most: int = 0
    patches: bool = False

    def place(self, root: Path) -> Path:
        """Return where they are kept."""
        return root / (self.folder or VERSIONS_FOLDER)

    def check(self, root: Path, algorithms: tuple[str, ...]) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigurationError: Patches without versions, versions without their digest, or in a
                folder that would be published itself.
        """
        if min(self.keep, self.least, self.most) < 0:
            raise ConfigurationError("of versions less than nothing can be kept")
        if self.patches and not self.is_public:
            raise ConfigurationError(
                "patches are computed from kept versions", hint="add --versions"
            )
        if self.is_public and "sha-256" not in algorithms:
            raise ConfigurationError(
                "versions are kept by their sha-256", hint="add --hash sha-256"
            )
        way = Path(os.path.relpath(self.place(root).absolute(), root.absolute())).parts
        if not any(name.startswith(".") and name != "." for name in way):
            raise ConfigurationError(
                f"versions in {self.folder} would be published as files of the tree",
                hint="choose a folder outside, or one whose name begins with a dot",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionCounts:
    """What was kept in one run.

    Attributes:
        versions: Versions that were kept.
        patches: Patches that were computed.
        unkept: Versions for which there was no room.
    """

    versions: int = 0
    patches: int = 0
    unkept: int = 0


NOTHING_RETAINED: Final = RetentionCounts()


class TreeVersions:
    """Nothing is kept of what a tree was: a run of its publication, as most are."""

    @property
    def counts(self) -> RetentionCounts:
        """What was kept up to now."""
        return NOTHING_RETAINED

    def flush(self) -> None:
        """Make durable what was kept: nothing."""

    def originals(self, originals: ScannableOriginals) -> ScannableOriginals:
        """Return the originals, which are kept when they are read, or not."""
        return originals

    def contents(self, originals: OriginalReader, opening: OpenOriginal) -> ResourceContents:
        """Return the bytes of these originals, and of what they were."""
        return PresentContents(originals, opening)

    def conclude(self, *, packed: bool) -> None:
        """Drop what nobody is led to any more, once the lists are written.

        Args:
            packed: True if all changes went into packages now.

        Raises:
            StorageError: Something cannot be removed; the next run does it.
        """


def is_retention_enabled(
    asked: VersionOptions, names: SourceNaming, catalogue: CatalogueStore
) -> bool:
    """True if what a tree was is kept: on demand, and where a Change Dump is offered.

    What changes is kept then until it is packed: else a file that changes twice before that would
    leave a gap.
    """
    if asked.is_public:
        return True
    dumps = read_dumps(catalogue)
    return naming.CHANGE_DUMP in dumps.documents and dumps.base_uri == names.base_uri


_SWEPT_NOTE: Final = "versions-swept"
_MAX_WAIT: Final = 31 * 24 * 3_600 * 1_000_000
"""How long changes wait for the next package of a Change Dump, microseconds."""


class StoredTreeVersions(TreeVersions):
    """What a tree was is kept, in one run of its publication.

    Args:
        root: The tree.
        asked: How versions are kept.
        names: Where the tree is published.
        catalogue: Remembers which versions there are.
        clock: Time.
    """

    def __init__(
        self,
        root: Path,
        asked: VersionOptions,
        names: SourceNaming,
        catalogue: FileCatalogue,
        clock: Clock,
    ) -> None:
        self._asked = asked
        self._catalogue = catalogue
        self._clock = clock
        self._index = catalogue.versions()
        self._store = FolderVersions(asked.place(root))
        patches = PatchGenerator(plugins.patch_makers, plugins.patch_formats())
        self._keeper = VersionRecorder(
            self._index,
            self._store,
            VersionNames(naming=names),
            clock,
            keeping=VersionPolicy(is_public=asked.is_public, most=asked.most),
            patches=patches if asked.patches else None,
        )

    @property
    def counts(self) -> RetentionCounts:
        """What was kept up to now."""
        keeper = self._keeper
        return RetentionCounts(
            versions=keeper.stored, patches=keeper.patched, unkept=keeper.skipped
        )

    def flush(self) -> None:
        """Make durable what was kept, before the catalogue records it."""
        self._keeper.flush()

    def originals(self, originals: ScannableOriginals) -> ScannableOriginals:
        """Return originals that are kept when they are read."""
        return VersionedOriginals(originals, self._keeper)

    def contents(self, originals: OriginalReader, opening: OpenOriginal) -> VersionedContents:
        """Return the bytes of these originals, and of what they were."""
        return VersionedContents(originals, opening, self._store)

    def conclude(self, *, packed: bool) -> None:
        """Drop what nobody is led to any more, once the lists are written; see ``Past``.

        Raises:
            StorageError: Something cannot be removed; the next run does it.
        """
        self.flush()
        now = to_microseconds(self._clock.now())
        if self._asked.is_public:
            retention = VersionRetention(
                keep=int(self._asked.keep * 1_000_000), least=self._asked.least
            )
            drop_unlisted_versions(
                self._index, self._store, retention, self._earliest_needed(now), now
            )
        else:
            until = now + 1 if packed else now - _MAX_WAIT
            self._store.remove(self._index.drop_stored_before(until))
        swept = int(self._catalogue.note(_SWEPT_NOTE) or 0)
        if now - swept > GRACE:
            self._store.sweep(self._index.is_needed, now - GRACE)
            self._catalogue.write_notes({_SWEPT_NOTE: str(now)})

    def _earliest_needed(self, now: int) -> int:
        """Return since when what held is told by a list, archived or not, or is to be packed."""
        plan, dumps = read_plan(self._catalogue), read_dumps(self._catalogue)
        told = [now]
        if plan is not None:
            told += [plan.start, *(span.start for span in plan.retired)]
            told += [superseded_list.at for superseded_list in plan.superseded]
        return min(*told, *(change.until for change in dumps.changes[-1:]))
