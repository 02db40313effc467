"""Documents from a folder instead of the network: a published tree, or a saved file.

The documents of a published tree name each other by their future addresses, so an address is looked
up by the end of its path below the folder. Nothing outside of the folder is ever opened.
"""

import errno
import stat
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from resourcesync.discovery.document_fetcher import FetchedDocument
from resourcesync.errors import ResourceMissingError, StorageError
from resourcesync.model.vocabulary import WELL_KNOWN_PATH
from resourcesync.ports import Purpose

_OWN_FOLDERS: Final = frozenset({"resourcesync", ".well-known"})
_FIRST: Final = (
    WELL_KNOWN_PATH.lstrip("/"),
    "resourcesync/capabilitylist.xml",
    "resourcesync.xml",
    "capabilitylist.xml",
    "resourcelist.xml",
    "sitemap.xml",
)
_ENDINGS: Final = (".xml", ".xml.gz", ".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")
_MAX_SEGMENTS: Final = 64
_MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL})


class LocalDocuments:
    """A reader of documents from a folder."""

    def __init__(self, place: Path) -> None:
        folder = place if place.is_dir() else place.parent
        if not place.is_dir() and folder.absolute().name in _OWN_FOLDERS:
            folder = folder.parent
        self._place = place
        self._folder = folder
        self._root = folder.resolve()

    def first(self) -> str:
        """Return the name of the document to begin with."""
        if not self._place.is_dir():
            return str(self._place)
        for name in _FIRST:
            if (self._place / name).is_file():
                return str(self._place / name)
        raise ResourceMissingError(
            f"no ResourceSync documents and no sitemap in {self._place}",
            uri=str(self._place),
            evidence=tuple(("tried", str(self._place / name)) for name in _FIRST),
        )

    def get(self, uri: str, *, purpose: Purpose = Purpose.DOCUMENT) -> FetchedDocument:
        """Open the document that an address names."""
        del purpose
        path = self._find(uri)
        try:
            stream = path.open("rb")
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}") from error
        return FetchedDocument(uri=uri, final_uri=str(path), stream=stream)

    def is_same(self, uri: str, place: str) -> bool:
        """True if an address names the document at a path."""
        try:
            return self._find(uri).samefile(place)
        except (ResourceMissingError, OSError):
            return False

    def _find(self, uri: str) -> Path:
        if uri == str(self._place):
            candidates = [self._place]
        elif "://" in uri:
            segments = [name for name in unquote(urlsplit(uri).path).split("/") if name]
            segments = segments[-_MAX_SEGMENTS:]
            tails = (segments[at:] for at in range(len(segments)))
            candidates = [self._folder.joinpath(*tail) for tail in tails]
        else:
            candidates = [Path(unquote(uri)), Path(uri)]
        for candidate in candidates:
            if self._is_inside(candidate):
                return candidate
        raise ResourceMissingError(
            "not among the files here",
            uri=uri,
            evidence=(("tried", f"the end of its path in {self._folder}"),),
        )

    def _is_inside(self, path: Path) -> bool:
        try:
            found = path.resolve(strict=True)
            is_file = stat.S_ISREG(found.stat().st_mode)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno not in _MISSING:
                raise StorageError(f"{path}: {error.strerror}") from error
            return False
        return is_file and (path == self._place or found.is_relative_to(self._root))


def find_documents(folder: Path, most: int) -> list[str]:
    """Return the documents and packages in a folder that is no published tree, by their names."""
    found: list[str] = []
    waiting = [folder]
    while waiting and len(found) < most:
        here = waiting.pop()
        try:
            entries = sorted(here.iterdir())
        except OSError as error:
            raise StorageError(f"{here}: {error.strerror}") from error
        seen = [
            entry for entry in entries if not entry.name.startswith(".") and not entry.is_symlink()
        ]
        found += [
            str(path) for path in seen if path.name.lower().endswith(_ENDINGS) and path.is_file()
        ]
        waiting += [path for path in reversed(seen) if path.is_dir()]
    return found[:most]
