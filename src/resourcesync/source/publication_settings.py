"""Settings of a publication, each described where it is used; they are stored with a catalogue."""

import os
import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from resourcesync.errors import ConfigurationError, damaged_note_error
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.settings import (
    DURATION,
    FOLDER,
    PLACE,
    SIZE,
    Section,
    Setting,
    size_from,
    whole,
)
from resourcesync.model.vocabulary import MAX_ENTRIES, Dialect
from resourcesync.source import naming
from resourcesync.source.paging import PageLimits

_SEL, _STO = Section.SELECTION, Section.STORAGE
_DOC, _VER = Section.DOCUMENTS, Section.VERSIONS
CATALOGUE: Final = Path(OWN_FOLDER) / "catalogue.db"
"""The catalogue of a tree, from its root."""
NOTE: Final = "publish.settings"
"""Note of the settings in the catalogue of a folder."""
INPUT_NOTE: Final = "publish.catalogue-settings"
"""Note of the settings in the catalogue of another input."""
CATALOGUE_SCHEME: Final = "catalogue:"
LINES_SCHEME: Final = "ndjson:"
MIRROR_SCHEME: Final = "mirror:"
"""Prefixes that distinguish other inputs of a publication from a folder."""
MAX_REBASED: Final = 10_000
"""Entries of a Resource List that is written again with each change, at most, by default."""
_YEAR: Final = 365 * 86_400.0
"""Seconds for which closed Change Lists stay, by default: without an end, all of them would."""
MAX_PACKAGE: Final = 1_000_000_000_000
VERSIONS_FOLDER: Final = f"{OWN_FOLDER}/versions"
"""Default folder of versions, from the tree."""
DIALECTS: Final = (
    Dialect.V1_1,
    Dialect.V1_0,
    Dialect.V0_9_1,
    Dialect.V0_9,
    Dialect.V0_6,
    Dialect.V0_5,
)
"""The versions that can be published; the first three know open Change Lists."""
NOTIFYING: Final = frozenset({Dialect.V1_1, Dialect.V1_0})
_HUB_ADDRESS: Final = re.compile(r"https?://[!$-;=?-\[\]_a-z~]+", re.IGNORECASE)


class ChangeLists(StrEnum):
    """Layout of the Change Lists (§12).

    ``APPEND``: in one open Change List, which is closed when it is full, or old. ``PER_RUN``: each
    run that updates writes a closed Change List, possibly empty, and adds it to the Change List
    Index. ``ARCHIVE``: the same, with a Change List Archive in the place of the index, as in 2013.
    """

    APPEND = "append"
    PER_RUN = "per-run"
    ARCHIVE = "archive"


class Policy(PageLimits, frozen=True, kw_only=True):
    """Choices of the operator for the lists. Ages are in seconds; 0 is never."""

    change_lists: Annotated[
        ChangeLists,
        Setting(
            "append: one open Change List. per-run: each run writes a closed list. archive: as"
            " per-run, with a Change List Archive instead of an index.",
            _DOC,
            is_option=True,
        ),
    ] = ChangeLists.APPEND
    rotate: Annotated[float, Setting("Close an open Change List at this age.", _DOC, DURATION)] = 0
    keep: Annotated[
        float | None,
        Setting(
            "Remove closed Change Lists of this age, and first write again a Resource List that is"
            " older; default: 365d, or never (0) where versions are stored.",
            _DOC,
            DURATION,
        ),
    ] = None
    resource_list: Annotated[
        bool,
        Setting(
            "Publish a Resource List; false: changes only, for Destinations that need no more.",
            _DOC,
            is_stored=True,
        ),
    ] = True
    rebase_every: Annotated[
        float, Setting("Write a new Resource List (baseline) at this interval.", _DOC, DURATION)
    ] = 0
    rebase_up_to: Annotated[
        int,
        Setting(
            "Write a new Resource List with each change, as long as it has at most this number of"
            " entries; 0: only when due. Not where superseded lists are archived.",
            _DOC,
            whole(0, MAX_ENTRIES),
        ),
    ] = 0
    archive: Annotated[
        float,
        Setting(
            "Store superseded lists and dumps for this time, and list them in archives; 0: never.",
            _DOC,
            DURATION,
        ),
    ] = 0
    dialect: Annotated[
        Dialect,
        Setting("The version of the format to write; default: 1.1.", _DOC, choices=DIALECTS),
    ] = Dialect.V1_1
    sitemap: Annotated[
        bool,
        Setting(
            "Also write a plain sitemap for search engines.", _DOC, is_stored=True, is_option=True
        ),
    ] = False
    hubs: Annotated[
        tuple[str, ...],
        Setting(
            "A WebSub hub for subscriptions to changes; the lists name it. Repeat for several;"
            " an empty value ('') removes them.",
            _DOC,
            metavar="URL",
            key="hub",
            is_clearable=True,
            is_option=True,
        ),
    ] = ()

    def __post_init__(self) -> None:
        """Refuse impossible choices."""
        super().__post_init__()
        if min(self.rotate, self.keep_seconds, self.rebase_every, self.archive) < 0:
            raise ConfigurationError("an age is never below zero")
        if self.dialect not in DIALECTS:
            known = ", ".join(DIALECTS)
            raise ConfigurationError(f"{self.dialect} cannot be published; use one of {known}")
        if self.dialect in DIALECTS[3:] and not self.is_per_run:
            raise ConfigurationError(
                f"version {self.dialect} has no open Change Lists",
                hint="write a Change List for each run, or an archive: "
                "--change-lists per-run, or --change-lists archive",
            )
        if self.archive and self.dialect is Dialect.V0_5:
            raise ConfigurationError("version 0.5 has no archives of Resource Lists")
        if self.hubs and self.dialect not in NOTIFYING:
            raise ConfigurationError(f"version {self.dialect} has no notifications")
        _check_hubs(self.hubs)
        if self.rebase_every and not self.resource_list:
            raise ConfigurationError(
                "a Resource List that is not published is never written again",
                hint="leave out rebase_every, or resource_list=false",
            )

    @property
    def keep_seconds(self) -> float:
        """The age at which closed Change Lists are removed."""
        return self.keep or 0

    @property
    def sitemap_name(self) -> str:
        """The name of the document for search engines; empty if there is none."""
        if self.sitemap:
            return naming.SITEMAP
        return naming.RESOURCE_LIST if self.resource_list else ""

    @property
    def has_monitor(self) -> bool:
        """True if the format knows entries of a Capability List that have links."""
        return self.dialect in NOTIFYING

    @property
    def is_per_run(self) -> bool:
        """True if each update writes a Change List of its own."""
        return self.change_lists is not ChangeLists.APPEND


def _check_hubs(hubs: Iterable[str]) -> None:
    for hub in hubs:
        if _HUB_ADDRESS.fullmatch(hub) is None:
            raise ConfigurationError(
                f"{hub[:200]!r} is not the address of a hub", hint="such as https://HOST/hub"
            )


class PublicationSettings(Policy, frozen=True, kw_only=True):
    """The settings of a publication. Those that are not given are as the last time.

    Attributes:
        site_uri, documents_uri: The addresses that follow from ``site``; empty without it.
        former_sites: Folders of sites whose Source Description named this set before.
        originals: The address of the originals; empty for the files of the tree.
        originals_with: Values for their plug-in, by names.
        earlier: Former places of the documents: files left there are not resources.
    """

    url: Annotated[
        str, Setting("The web address of DIR; needed once.", metavar="BASE", is_option=True)
    ] = ""
    out: Annotated[
        str,
        Setting(
            "Write the documents there instead of into DIR; s3://BUCKET/PREFIX is a bucket.",
            _STO,
            PLACE,
            "FOLDER|STORE",
            is_option=True,
        ),
    ] = "."
    site: Annotated[
        str,
        Setting(
            "The folder at the root of the host: all sets with the same one share its Source"
            " Description. An empty value ('') removes this set.",
            _STO,
            FOLDER,
            is_clearable=True,
        ),
    ] = ""
    site_uri: str = ""
    documents_uri: str = ""
    former_sites: tuple[str, ...] = ()
    originals: str = ""
    originals_with: tuple[tuple[str, str], ...] = ()
    earlier: tuple[str, ...] = ()
    include: Annotated[
        tuple[str, ...],
        Setting(
            "Publish only files whose path below DIR matches: * stops at /, ** does not; a pattern "
            "without a leading / matches in each folder.",
            _SEL,
            metavar="GLOB",
            is_clearable=True,
            is_option=True,
        ),
    ] = ()
    exclude: Annotated[
        tuple[str, ...],
        Setting(
            "Publish no files whose path matches.",
            _SEL,
            metavar="GLOB",
            is_clearable=True,
            is_option=True,
        ),
    ] = ()
    hashes: Annotated[
        tuple[Literal["sha-256", "sha-512", "sha-384", "sha-224", "sha-1", "md5"], ...],
        Setting("Digests of every file; default: sha-256. Repeat for several.", _DOC, key="hash"),
    ] = msgspec.field(default=("sha-256",), name="algorithms")
    described_by: Annotated[
        str,
        Setting(
            "The address of a description of the resources, instead of a document that publish"
            " writes; an empty value ('') removes it.",
            _DOC,
            metavar="URI",
            is_clearable=True,
        ),
    ] = ""
    robots: Annotated[
        bool,
        Setting(
            "Write robots.txt with the sitemap's address, if there is one; never overwrite your own"
            " file.",
            _DOC,
            is_stored=True,
        ),
    ] = False
    notify: Annotated[
        bool,
        Setting(
            "Notify the hubs after each publication; otherwise only on request.",
            _DOC,
            is_stored=True,
        ),
    ] = False
    links: Annotated[
        tuple[str, ...],
        Setting(
            "Links of the resources, such as 'describedby:{path}.xml only=*.pdf'. Repeat for"
            " several; an empty value ('') removes them.",
            _DOC,
            metavar="RULE",
            key="link",
            is_clearable=True,
            is_option=True,
        ),
    ] = ()
    max_package: Annotated[
        int,
        Setting(
            "Most bytes of content in one package of a dump; default: 256M.",
            _DOC,
            size_from(1, MAX_PACKAGE),
        ),
    ] = 0
    versions: Annotated[
        bool,
        Setting(
            "Store the versions of each file, and list them with links memento, timegate and"
            " timemap. `serve` serves them.",
            _VER,
            is_stored=True,
            is_option=True,
        ),
    ] = False
    versions_in: Annotated[
        str, Setting("The folder for versions, instead of .resourcesync/versions.", _VER, FOLDER)
    ] = ""
    versions_keep: Annotated[
        float,
        Setting(
            "Store former versions at least for this time, and as long as a list names them.",
            _VER,
            DURATION,
        ),
    ] = 0
    versions_least: Annotated[
        int,
        Setting(
            "Store at least this number of former versions of each file.", _VER, whole(0, 1_000_000)
        ),
    ] = 0
    versions_max_bytes: Annotated[
        int,
        Setting(
            "Most bytes of all versions; the oldest are removed first, listed or not. 0: any.",
            _VER,
            SIZE,
        ),
    ] = 0
    patches: Annotated[
        bool,
        Setting(
            "Compute patches between the versions of JSON files; needs `versions`.",
            _VER,
            is_stored=True,
        ),
    ] = False

    @property
    def keep_seconds(self) -> float:
        """The age at which closed Change Lists are removed: their versions would be, too."""
        return (0 if self.versions else _YEAR) if self.keep is None else self.keep

    @property
    def names(self) -> naming.SourceNaming:
        """The addresses of what is published."""
        return naming.SourceNaming(
            base_uri=self.url, documents_uri=self.documents_uri, site_uri=self.site_uri
        )

    @property
    def sitemap_uri(self) -> str:
        """The address of the document for search engines; empty if there is none."""
        return self.names.uri(self.sitemap_name) if self.sitemap_name else ""

    @property
    def entries(self) -> tuple[object, ...]:
        """What affects entries of unchanged files: after a change all are read again."""
        return (self.hashes, self.links, self.versions)

    def versions_folder(self, root: Path) -> Path:
        """Return the folder of versions."""
        return root / (self.versions_in or VERSIONS_FOLDER)

    def check_versions(self, root: Path) -> None:
        """Refuse versions that cannot be stored, or would be published."""
        if min(self.versions_keep, self.versions_least, self.versions_max_bytes) < 0:
            raise ConfigurationError("the limits on versions must not be negative")
        if self.patches and not self.versions:
            raise ConfigurationError("patches need stored versions", hint="store them: --versions")
        if self.versions and "sha-256" not in self.hashes:
            raise ConfigurationError(
                "versions need sha-256 digests", hint="add that algorithm: -o hash=sha-256"
            )
        way = Path(os.path.relpath(self.versions_folder(root).absolute(), root.absolute())).parts
        if not any(name.startswith(".") and name != "." for name in way):
            raise ConfigurationError(
                f"versions in {self.versions_in} would be published as files of the tree",
                hint="choose a folder outside, or one whose name begins with a dot",
            )


def decode_settings(text: str | None) -> PublicationSettings:
    """Return the settings of a note, or the defaults of a first publication."""
    try:
        return (
            PublicationSettings(rebase_up_to=MAX_REBASED)
            if text is None
            else msgspec.json.decode(text, type=PublicationSettings)
        )
    except msgspec.MsgspecError as error:
        raise damaged_note_error("settings", error) from error
