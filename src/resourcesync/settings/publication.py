"""Settings of a publication; they are stored with the catalogue of its tree."""

from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from resourcesync.errors import damaged_note_error
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.settings import (
    DURATION,
    FOLDER,
    PAIR,
    PLACE,
    SIZE,
    Section,
    Setting,
    size_from,
    whole,
)

_MAIN, _SEL, _STO = Section.MAIN, Section.SELECTION, Section.STORAGE
_DOC, _VER = Section.DOCUMENTS, Section.VERSIONS
CATALOGUE: Final = Path(OWN_FOLDER) / "catalogue.db"
"""The catalogue of a tree, from its root."""
NOTE: Final = "publish.settings"
"""Note of the settings in the catalogue of a folder."""
INPUT_NOTE: Final = "publish.catalogue-settings"
"""Note of the settings in the catalogue of another input."""
MAX_ENTRIES: Final = 50_000
MAX_REBASED: Final = 10_000
"""Entries of a Resource List that is written again with each change, at most, by default."""
MAX_BYTES: Final = 52_428_800
MAX_PACKAGE: Final = 1_000_000_000_000


class PublicationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a publication. Those that are not given are as the last time.

    Attributes:
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
    max_entries: Annotated[
        int, Setting("Most entries in one document.", _DOC, whole(1, MAX_ENTRIES))
    ] = MAX_ENTRIES
    max_bytes: Annotated[
        int, Setting("Most bytes in one document, such as 10M.", _DOC, size_from(1, MAX_BYTES))
    ] = MAX_BYTES
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
    change_lists: Annotated[
        Literal["append", "per-run", "archive"],
        Setting(
            "append: one open Change List. per-run: each run writes a closed list. archive: as"
            " per-run, with a Change List Archive instead of an index.",
            _DOC,
            is_option=True,
        ),
    ] = "append"
    rotate: Annotated[float, Setting("Close an open Change List at this age.", _DOC, DURATION)] = 0
    keep: Annotated[
        float,
        Setting(
            "Remove closed Change Lists of this age, if no Resource List is older.",
            _DOC,
            DURATION,
        ),
    ] = 0
    rebase_every: Annotated[
        float,
        Setting("Write a new Resource List (baseline) at this interval.", _DOC, DURATION),
    ] = 0
    rebase_up_to: Annotated[
        int,
        Setting(
            "Write a new Resource List with each change, as long as it has at most this number of"
            " entries; 0: only when due. Not where superseded lists are archived.",
            _DOC,
            whole(0, MAX_ENTRIES),
        ),
    ] = MAX_REBASED
    archive: Annotated[
        float,
        Setting(
            "Store superseded lists and dumps for this time, and list them in archives; 0: never.",
            _DOC,
            DURATION,
        ),
    ] = 0
    dialect: Annotated[
        Literal["1.1", "1.0", "0.9.1", "0.9", "0.6", "0.5"],
        Setting("The version of the format to write; default: 1.1.", _DOC),
    ] = "1.1"
    sitemap: Annotated[
        bool,
        Setting(
            "Also write a plain sitemap for search engines.", _DOC, is_stored=True, is_option=True
        ),
    ] = False
    robots: Annotated[
        bool,
        Setting(
            "Write robots.txt with the sitemap's address; never overwrite your own file.",
            _DOC,
            is_stored=True,
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
        str,
        Setting("The folder for versions, instead of .resourcesync/versions.", _VER, FOLDER),
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
            "Store at least this number of former versions of each file.",
            _VER,
            whole(0, 1_000_000),
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


class SystemSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a publication that are not stored with it."""

    path: Annotated[
        str,
        Setting("The tree, or catalogue:FILE; a relative path starts at the folder of the file."),
    ] = ""
    dumps: Annotated[
        Literal["none", "resources", "changes", "all"],
        Setting(
            "Also pack all files into a Resource Dump (resources), the changes since the last run"
            " into a Change Dump (changes), or both (all). Only changed files are packed again; not"
            " in a dry run, nor while publish watches.",
            shown="none",
            is_option=True,
        ),
    ] = "none"
    rescan: Annotated[
        float | None,
        Setting(
            "Time between two complete scans. Default: 4h for a folder that is watched; 7d for"
            " another system, or 4h if it does not report changes.",
            _MAIN,
            DURATION,
        ),
    ] = None
    every: Annotated[
        float,
        Setting(
            "While another system is watched: publish its changes at this interval. A database"
            " that announces commits is published within about a second.",
            _MAIN,
            DURATION,
            shown="1m",
        ),
    ] = 60.0
    state: Annotated[
        Path | None,
        Setting(
            "The folder for the catalogue, if not in DIR, such as one that each build empties. For"
            " a bucket or another system: if not with the documents; needed if these go to a"
            " store.",
            _STO,
            FOLDER,
            is_option=True,
        ),
    ] = None
    values: Annotated[
        tuple[tuple[str, str], ...],
        Setting(
            "For another system: a setting of its adapter, see the list of plug-ins and the"
            " how-tos. env:NAME and file:PATH read the value from there. Repeat for several.",
            _STO,
            PAIR,
            "KEY=VALUE",
            "with",
            is_option=True,
        ),
    ] = ()


def decode_settings(text: str | None) -> PublicationSettings:
    """Return the settings of a note, or the defaults of a first publication.

    Raises:
        StateError: They are damaged.
    """
    try:
        return (
            PublicationSettings()
            if text is None
            else msgspec.json.decode(text, type=PublicationSettings)
        )
    except msgspec.MsgspecError as error:
        raise damaged_note_error("settings", error) from error
