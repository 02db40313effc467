"""The settings of a publication, stored with the catalogue of its tree."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from resourcesync.errors import StateError
from resourcesync.model.vocabulary import Dialect
from resourcesync.ports.catalogue import CatalogueStore
from resourcesync.source.paging import PageLimits
from resourcesync.source.plan import ChangeLists, Policy
from resourcesync.source.versions.version_retention import VersionOptions

if TYPE_CHECKING:
    from resourcesync.source.dumps.dump_publication import DumpOptions

CATALOGUE: Final = Path(".resourcesync") / "catalogue.db"
"""The catalogue of a tree, from its root."""
NOTE: Final = "publish.settings"
"""Note of the settings in the catalogue of a folder."""
_SECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a publication. They are stored with the tree's catalogue.

    Attributes:
        url: The URI of the tree's root.
        out: The folder the documents go to, relative to the tree; ``.`` is the tree itself. Or
            the address of a store.
        originals: The address of the originals; empty for the files of the tree.
        originals_with: Values for their plug-in, by names.
        earlier: Former places of the documents: files left there are not resources.
        include, exclude: Patterns on paths in the tree.
        algorithms: Digests of every resource.
        max_entries, max_bytes: The most one document holds.
        described_by: The URI of a document about the resources; if empty, one is written.
        change_lists: The form of Change Lists, a value of ``ChangeLists``.
        rotate, keep, rebase_every, archive: Ages in seconds, as in ``Policy``; 0 is never.
        dialect: The version that is written, such as ``1.1``.
        sitemap: True if a plain sitemap is written for search engines.
        robots: True if ``robots.txt`` is written.
        links: Rules for the links of resources, as ``link_rules.parse_rule`` reads them.
        max_package: The most bytes of content in one package of a dump; 0 is the default.
        versions: True if entries link to stored versions.
        versions_in: The folder of the versions, from the tree; empty for the usual one.
        versions_keep: Least seconds that former versions stay.
        versions_least: Least number of former versions of each file that stay.
        versions_max_bytes: The most bytes of all versions; 0 for any number.
        patches: True if patches are computed.
        hubs: Addresses of the hubs for subscriptions; none without notifications.
        notify: True if the hubs are notified after each publication.
    """

    url: str = ""
    out: str = "."
    originals: str = ""
    originals_with: tuple[tuple[str, str], ...] = ()
    earlier: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ("sha-256",)
    max_entries: int = PageLimits().max_entries
    max_bytes: int = PageLimits().max_bytes
    described_by: str = ""
    change_lists: str = ChangeLists.APPEND.value
    rotate: float = 0
    keep: float = 0
    rebase_every: float = 0
    archive: float = 0
    dialect: str = Dialect.V1_1.value
    sitemap: bool = False
    robots: bool = False
    links: tuple[str, ...] = ()
    max_package: int = 0
    versions: bool = False
    versions_in: str = ""
    versions_keep: float = 0
    versions_least: int = 0
    versions_max_bytes: int = 0
    patches: bool = False
    hubs: tuple[str, ...] = ()
    notify: bool = False

    @property
    def policy(self) -> Policy:
        """The policy for closing, storing, archiving and rewriting lists.

        Raises:
            ConfigurationError: There is no such policy.
        """
        return Policy(
            change_lists=ChangeLists(self.change_lists),
            rotate=int(self.rotate * _SECOND),
            keep=int(self.keep * _SECOND),
            rebase=int(self.rebase_every * _SECOND),
            archive=int(self.archive * _SECOND),
            sitemap=self.sitemap,
            dialect=Dialect(self.dialect),
            hubs=self.hubs,
        )

    @property
    def limits(self) -> PageLimits:
        """The most that one document holds."""
        return PageLimits(max_entries=self.max_entries, max_bytes=self.max_bytes)

    @property
    def packing(self) -> "DumpOptions":
        """The options of dumps."""
        from resourcesync.source.dumps import dump_publication  # noqa: PLC0415 - few publications need it

        return dump_publication.DumpOptions(
            url=self.url,
            max_package=self.max_package or dump_publication.DEFAULT_PACKAGE,
            keep=self.keep,
            archive=self.archive,
            limits=self.limits,
            dialect=Dialect(self.dialect),
        )

    @property
    def version_options(self) -> VersionOptions:
        """The options of versions."""
        return VersionOptions(
            is_public=self.versions,
            folder=self.versions_in,
            keep=self.versions_keep,
            least=self.versions_least,
            most=self.versions_max_bytes,
            patches=self.patches,
        )

    @property
    def entries(self) -> tuple[object, ...]:
        """Settings that affect entries of unchanged files: after a change all are read again."""
        return (self.algorithms, self.links, self.versions)


def read_settings(catalogue: CatalogueStore, note: str) -> Settings:
    """Return the settings in a note, or the defaults of a first publication.

    Raises:
        StateError: They are damaged.
    """
    return decode_settings(catalogue.note(note))


def decode_settings(text: str | None) -> Settings:
    """Return the settings of a note, or the defaults of a first publication.

    Raises:
        StateError: They are damaged.
    """
    try:
        return Settings() if text is None else msgspec.json.decode(text, type=Settings)
    except msgspec.MsgspecError as error:
        raise StateError("the settings in the catalogue are damaged") from error
