"""The published files of a tree: what is served, and what is not."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from msgspec import structs

from resourcesync.adapters.files import FileSelection, PathFilter
from resourcesync.adapters.files.names_and_uris import to_segment
from resourcesync.adapters.mirror.own_folder import is_mirror
from resourcesync.app import document_stores, mirror_home
from resourcesync.catalogue.reader import CatalogueReader, read_note
from resourcesync.destination.mapping import TREE
from resourcesync.destination.mapping.names import uri_of_published
from resourcesync.destination.path_assignment import owner_of
from resourcesync.destination.sync_state import SyncState
from resourcesync.discovery.uris import normalise
from resourcesync.errors import ConfigurationError, OutOfScopeError, ResourceSyncError, quoted
from resourcesync.mirror_state.database import SqliteMirrorState
from resourcesync.mirror_state.rows import Copy
from resourcesync.model.entries import Link
from resourcesync.model.own_names import OWN_FOLDER
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import Relation
from resourcesync.server.entry_fields import FindEntry, ServedEntry
from resourcesync.source import publication_settings
from resourcesync.source.naming import SourceNaming

PUBLICATION: Final = Path(OWN_FOLDER) / "publication"
"""Default place of the documents of a published mirror: never among its copies."""


def is_aggregated(folder: Path) -> bool:
    """True if publishing a folder publishes it as a mirror, not as the files in it.

    A mirror that was first published as a folder of files stays one.
    """
    if not is_mirror(folder):
        return False
    catalogue = folder / publication_settings.CATALOGUE
    return not catalogue.is_file() or read_note(catalogue, publication_settings.NOTE) is None


def published_settings(catalogue: Path) -> publication_settings.PublicationSettings:
    """Return the settings of a tree's last publication."""
    return publication_settings.decode_settings(read_note(catalogue, publication_settings.NOTE))


def any_settings(catalogue: Path) -> publication_settings.PublicationSettings:
    """Return the settings of the last publication of a tree, or of another input."""
    text = read_note(catalogue, publication_settings.NOTE)
    return publication_settings.decode_settings(
        text or read_note(catalogue, publication_settings.INPUT_NOTE)
    )


def documents_of(root: Path) -> Path:
    """Return the folder of a tree's documents: the one of the last publication."""
    if is_aggregated(root):
        below = root / PUBLICATION
        return below if below.is_dir() else root
    out = published_settings(root / publication_settings.CATALOGUE).out
    return root if document_stores.is_store(out) else root / out


def published_files(root: Path, catalogue: Path) -> Callable[[str], bool]:
    """Return the test for published files of a tree, by their paths in it.

    Files that the last publication left out are not. ``robots.txt`` is always public. Of a mirror,
    only the copies are.
    """
    if is_aggregated(root):
        copies = PublishedCopies(root)
        return lambda path: copies.at(path) is not None
    settings = published_settings(catalogue)
    judge = PathFilter(
        FileSelection(include=settings.include, exclude=settings.exclude, hidden=True)
    )

    def is_published(path: str) -> bool:
        names = tuple(path.split("/"))
        return path == document_stores.ROBOTS_FILE or judge.exclusion_of_path(names) is None

    return is_published


class PublishedCopies:
    """The copies of a published mirror; the state is open for one question: threads ask."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with mirror_home.open_state(folder) as state:
            self.base = base_address(state)
            identity = SyncState(state).identity
        if identity is None:
            raise ConfigurationError(
                f"{folder} was not pulled yet",
                hint=f"pull it first: resourcesync pull https://HOST/ {quoted(folder, 'DIR')}",
            )

    def at(self, path: str) -> Copy | None:
        """Return the copy at a path in the mirror's folder."""
        with mirror_home.open_state(self._folder) as state:
            uri = owner_of(state, path)
            return None if uri is None else state.copy(uri)

    def file_at(self, tail: str) -> str | None:
        """Return the file of the copy whose address ends so, after the base."""
        try:
            uri = normalise(f"{self.base}{tail}")
        except OutOfScopeError:
            return None
        found = uri_of_published(uri.removeprefix(self.base), self.base)
        if found is None:
            return None
        with mirror_home.open_state(self._folder) as state:
            copy = state.copy(found)
        return None if copy is None else copy.path


def base_address(state: SqliteMirrorState) -> str:
    """Return the base of a mirror whose addresses keep what follows it in the URIs; else nothing.

    Where the operator chose other paths, the path of a copy is its address.
    """
    identity = SyncState(state).identity
    return identity.base if identity is not None and identity.mapper == TREE else ""


def published_entries(root: Path, base: str, catalogue: Path) -> FindEntry:
    """Return the function that finds the entry of a resource, for its digests and links.

    The digests of a mirror's copies are those in its state, which also tells whether a file is
    still the copy. What cannot be read now is not there: the resource itself is served.
    """
    reader = CatalogueReader(catalogue)
    naming = SourceNaming(base_uri=base)
    find_copy = PublishedCopies(root).at if is_aggregated(root) else None

    def find(path: str, tail: str) -> ServedEntry | None:
        uri = naming.base_uri + (tail or "/".join(map(to_segment, path.split("/"))))
        try:
            known = reader.entry(uri)
            if known is None:
                return None
            hash_, signature, listed = known
            links = tuple(_links_to_serve(listed, uri, reader))
            copy = None if find_copy is None else find_copy(path)
        except ResourceSyncError:
            return None
        if find_copy is None:
            return ServedEntry(signature=signature, hash=hash_, links=links)
        if copy is None:
            return ServedEntry(links=links)
        return ServedEntry(signature=copy.signature, hash=copy.digests, links=links)

    return find


def _links_to_serve(links: tuple[Link, ...], uri: str, reader: CatalogueReader) -> Iterator[Link]:
    """Yield the links of an entry, a memento with its Memento-Datetime (RFC 7089 §2.2.4)."""
    for link in links:
        if link.rel == Relation.MEMENTO:
            version = reader.version_at(uri, None)
            if version is not None:
                yield structs.replace(link, modified=from_microseconds(version.since))
        elif link.rel != Relation.TIMEGATE:
            yield link
