"""The Source's side: former versions of a published tree become an application."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from resourcesync.adapters.catalogue import FileVersionReader
from resourcesync.adapters.files.names import to_segment
from resourcesync.server.app import LinksOf
from resourcesync.server.files import ServedFolder
from resourcesync.server.mementos import MementoApplication, ServedVersions
from resourcesync.source.naming import FOLDER, SourceNaming, is_sitemap
from resourcesync.source.versions import VERSIONS_FOLDER, VersionNames
from resourcesync.wiring import robots
from resourcesync.wiring.publishing import CATALOGUE
from resourcesync.wiring.versioning import VersionOptions

MOUNT: Final = f"/{FOLDER}{VERSIONS_FOLDER}".rstrip("/")
"""Where the application of versions is, in that of the tree."""
_NON_RESOURCES: Final = (FOLDER, ".well-known/")


def memento_application(
    root: Path, asked: VersionOptions, url: str, is_published: Callable[[str], bool]
) -> MementoApplication:
    """Return the application that answers where versions are.

    Args:
        root: The tree.
        asked: How versions are kept.
        url: Where the tree is published.
        is_published: Tells of a path in the tree whether the file there is published.
    """
    names = SourceNaming(base_uri=url)
    return MementoApplication(
        ServedVersions(
            index=FileVersionReader(root / CATALOGUE),
            contents=ServedFolder(asked.place(root)),
            names=VersionNames(naming=names),
            uri_of=lambda path: _uri_of(names, path),
            is_published=is_published,
        )
    )


def timegate_links(url: str, is_published: Callable[[str], bool], links: LinksOf) -> LinksOf:
    """Return what gives, besides other ``Link`` fields, that to the TimeGate of a resource.

    Args:
        url: Where the tree is published.
        is_published: Tells of a path in the tree whether the file there is published.
        links: Gives the others.
    """
    naming = SourceNaming(base_uri=url)
    names = VersionNames(naming=naming)

    def more(path: str) -> Sequence[str]:
        others = links(path)
        is_none = path.startswith(_NON_RESOURCES) or path == robots.ROBOTS_FILE or is_sitemap(path)
        if is_none or not is_published(path):
            return others
        gate = names.timegate(_uri_of(naming, path))
        return (*others, f'<{gate}>; rel="timegate"')

    return more


def _uri_of(names: SourceNaming, path: str) -> str:
    return names.base_uri + "/".join(map(to_segment, path.split("/")))
