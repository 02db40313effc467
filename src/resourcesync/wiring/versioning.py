"""The Source's side: what a tree was is kept while it is published."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from resourcesync.adapters.catalogue import FileCatalogue
from resourcesync.adapters.version_files import FolderVersions
from resourcesync.errors import ConfigurationError
from resourcesync.model.timestamps import to_microseconds
from resourcesync.ports import Clock
from resourcesync.ports.contents import Readable
from resourcesync.source import naming
from resourcesync.source.contents import Opening, PresentContents
from resourcesync.source.dump_ledger import read_dumps
from resourcesync.source.ledger import read_plan
from resourcesync.source.link_rules import ReadableOriginals
from resourcesync.source.naming import Naming
from resourcesync.source.patches import Patches
from resourcesync.source.policy import GRACE
from resourcesync.source.versions import (
    ALGORITHM,
    Keeper,
    Keeping,
    Retention,
    VersionedContents,
    VersionedOriginals,
    VersionNames,
    retain,
)
from resourcesync.wiring import plugins

FOLDER: Final = ".resourcesync/versions"
"""Where versions are kept, from the tree, unless another folder is told."""
_SWEPT: Final = "versions-swept"
_PATIENCE: Final = 31 * 24 * 3_600 * 1_000_000
"""How long changes wait for the next package of a Change Dump, microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsAsked:
    """How versions are kept.

    Attributes:
        is_public: Whether entries lead to them.
        folder: Where they are kept, from the tree; empty is ``FOLDER``.
        keep: So long at least, in seconds.
        least: So many former versions of each file at least.
        most: The most bytes of all; 0 for any number.
        patches: Whether patches are computed.
    """

    is_public: bool = False
    folder: str = ""
    keep: float = 0
    least: int = 0
    most: int = 0
    patches: bool = False

    def place(self, root: Path) -> Path:
        """Return where they are kept."""
        return root / (self.folder or FOLDER)

    def check(self, root: Path, algorithms: tuple[str, ...]) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigurationError: Patches without versions, versions without their digest, or in a
                folder that would be published itself.
        """
        if self.patches and not self.is_public:
            raise ConfigurationError(
                "patches are computed from kept versions", hint="add --versions"
            )
        if self.is_public and ALGORITHM not in algorithms:
            raise ConfigurationError(
                f"versions are kept by their {ALGORITHM}", hint=f"add --hash {ALGORITHM}"
            )
        way = Path(os.path.relpath(self.place(root).absolute(), root.absolute())).parts
        if not any(name.startswith(".") and name != "." for name in way):
            raise ConfigurationError(
                f"versions in {self.folder} would be published as files of the tree",
                hint="choose a folder outside, or one whose name begins with a dot",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What was kept in one run.

    Attributes:
        versions: Versions that were kept.
        patches: Patches that were computed.
        unkept: Versions for which there was no room.
    """

    versions: int = 0
    patches: int = 0
    unkept: int = 0


NOTHING: Final = Kept()


class Past:
    """Nothing is kept of what a tree was: a run of its publication, as most are."""

    @property
    def kept(self) -> Kept:
        """What was kept up to now."""
        return NOTHING

    def settle(self) -> None:
        """Make durable what was kept: nothing."""

    def originals(self, originals: ReadableOriginals) -> ReadableOriginals:
        """Return the originals, which are kept when they are read, or not."""
        return originals

    def contents(self, originals: Readable, opening: Opening) -> PresentContents:
        """Return the bytes of these originals, and of what they were."""
        return PresentContents(originals, opening)

    def conclude(self, *, packed: bool) -> None:
        """Drop what nobody is led to any more, once the lists are written.

        Args:
            packed: Whether all changes went into packages now.

        Raises:
            StorageError: Something cannot be removed; the next run does it.
        """


class KeptPast(Past):
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
        asked: VersionsAsked,
        names: Naming,
        catalogue: FileCatalogue,
        clock: Clock,
    ) -> None:
        self._asked = asked
        self._catalogue = catalogue
        self._clock = clock
        self._index = catalogue.versions()
        self._store = FolderVersions(asked.place(root))
        patches = Patches(plugins.patch_makers(), plugins.patch_formats())
        self._keeper = Keeper(
            self._index,
            self._store,
            VersionNames(naming=names),
            clock,
            keeping=Keeping(is_public=asked.is_public, most=asked.most),
            patches=patches if asked.patches else None,
        )

    @property
    def kept(self) -> Kept:
        """What was kept up to now."""
        keeper = self._keeper
        return Kept(versions=keeper.kept, patches=keeper.patched, unkept=keeper.unkept)

    def settle(self) -> None:
        """Make durable what was kept, before the catalogue records it."""
        self._keeper.settle()

    def originals(self, originals: ReadableOriginals) -> ReadableOriginals:
        """Return originals that are kept when they are read."""
        return VersionedOriginals(originals, self._keeper)

    def contents(self, originals: Readable, opening: Opening) -> VersionedContents:
        """Return the bytes of these originals, and of what they were."""
        return VersionedContents(originals, opening, self._store)

    def conclude(self, *, packed: bool) -> None:
        """Drop what nobody is led to any more, once the lists are written; see ``Past``.

        Raises:
            StorageError: Something cannot be removed; the next run does it.
        """
        self.settle()
        now = to_microseconds(self._clock.now())
        if self._asked.is_public:
            retention = Retention(keep=int(self._asked.keep * 1_000_000), least=self._asked.least)
            retain(self._index, self._store, retention, self._reach(now), now)
        else:
            until = now + 1 if packed else now - _PATIENCE
            self._store.remove(self._index.drop_kept_before(until))
        swept = int(self._catalogue.note(_SWEPT) or 0)
        if now - swept > GRACE:
            self._store.sweep(self._index.is_needed, now - GRACE)
            self._catalogue.write_notes({_SWEPT: str(now)})

    def _reach(self, now: int) -> int:
        """Return since when what held is told by a list, or is still to be packed."""
        plan, dumps = read_plan(self._catalogue), read_dumps(self._catalogue)
        reach = now if plan is None else plan.start
        return min(reach, dumps.changes[-1].until) if dumps.changes else reach


def past_of(root: Path, asked: VersionsAsked, url: str, catalogue: object, clock: Clock) -> Past:
    """Return what keeps versions in this run, if any are to be kept.

    Where a Change Dump is offered, what changes is kept until it is packed: else a file that
    changes twice before that would leave a gap.
    """
    if not isinstance(catalogue, FileCatalogue):
        return Past()  # a dry run keeps nothing
    names = Naming(base_uri=url)
    if not asked.is_public:
        dumps = read_dumps(catalogue)
        if naming.CHANGE_DUMP not in dumps.documents or dumps.base_uri != names.base_uri:
            return Past()
    return KeptPast(root, asked, names, catalogue, clock)
