"""The Source's side: former versions of a published tree become an application."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from resourcesync.adapters.catalogue import FileVersionReader
from resourcesync.adapters.files.names import to_segment
from resourcesync.server.app import LinksOf
from resourcesync.server.files import Folder
from resourcesync.server.mementos import Mementos, Versioned
from resourcesync.source.naming import FOLDER, Naming, is_sitemap
from resourcesync.source.versions import PLACE, VersionNames
from resourcesync.wiring import robots
from resourcesync.wiring.publishing import CATALOGUE
from resourcesync.wiring.versioning import VersionOptions

MOUNT: Final = f"/{FOLDER}{PLACE}".rstrip("/")
"""Where the application of versions is, in that of the tree."""
_NO_RESOURCES: Final = (FOLDER, ".well-known/")


def mementos(
    root: Path, asked: VersionOptions, url: str, is_published: Callable[[str], bool]
) -> Mementos:
    """Return the application that answers where versions are.

    Args:
        root: The tree.
        asked: How versions are kept.
        url: Where the tree is published.
        is_published: Tells of a path in the tree whether the file there is published.
    """
    names = Naming(base_uri=url)
    return Mementos(
        Versioned(
            index=FileVersionReader(root / CATALOGUE),
            contents=Folder(asked.place(root)),
            names=VersionNames(naming=names),
            uri_of=lambda path: _uri_of(names, path),
            is_published=is_published,
        )
    )


def with_timegate(url: str, is_published: Callable[[str], bool], links: LinksOf) -> LinksOf:
    """Return what gives, besides other ``Link`` fields, that to the TimeGate of a resource.

    Args:
        url: Where the tree is published.
        is_published: Tells of a path in the tree whether the file there is published.
        links: Gives the others.
    """
    naming = Naming(base_uri=url)
    names = VersionNames(naming=naming)

    def more(path: str) -> Sequence[str]:
        others = links(path)
        is_none = path.startswith(_NO_RESOURCES) or path == robots.NAME or is_sitemap(path)
        if is_none or not is_published(path):
            return others
        gate = names.timegate(_uri_of(naming, path))
        return (*others, f'<{gate}>; rel="timegate"')

    return more


def _uri_of(names: Naming, path: str) -> str:
    return names.base_uri + "/".join(map(to_segment, path.split("/")))
