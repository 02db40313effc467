"""The published files of a tree: what is served, and what is not."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from msgspec import structs

from resourcesync.adapters.files import FileSelection, PathFilter
from resourcesync.adapters.files.names import to_segment
from resourcesync.adapters.mirror.own_folder import STATE_FILE, is_mirror
from resourcesync.app.publishing import document_stores
from resourcesync.catalogue.reader import CatalogueReader, read_note
from resourcesync.destination.mapping.escapes import TREE
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
from resourcesync.source.naming import SourceNaming
from resourcesync.source.publication_settings import (
    CATALOGUE,
    NOTE,
    PublicationSettings,
    decode_settings,
)

PUBLICATION: Final = Path(OWN_FOLDER) / "publication"
"""Default place of the documents of a published mirror: never among its copies."""


def is_aggregated(folder: Path) -> bool:
    """True if publishing a folder publishes it as a mirror, not as the files in it.

    A mirror that was first published as a folder of files stays one.
    """
    if not is_mirror(folder):
        return False
    catalogue = folder / CATALOGUE
    return not catalogue.is_file() or read_note(catalogue, NOTE) is None


def published_settings(root: Path) -> PublicationSettings:
    """Return the settings of a tree's last publication."""
    return decode_settings(read_note(root / CATALOGUE, NOTE))


def documents_of(root: Path) -> Path:
    """Return the folder of a tree's documents: the one of the last publication."""
    if is_aggregated(root):
        below = root / PUBLICATION
        return below if below.is_dir() else root
    out = published_settings(root).out
    return root if document_stores.is_store(out) else root / out


def published_files(root: Path) -> Callable[[str], bool]:
    """Return the test for published files of a tree, by their paths in it.

    Files that the last publication left out are not. ``robots.txt`` is always public. Of a mirror,
    only the copies are.
    """
    if is_aggregated(root):
        return _published_copies(root)
    settings = published_settings(root)
    judge = PathFilter(
        FileSelection(include=settings.include, exclude=settings.exclude, hidden=True)
    )

    def is_published(path: str) -> bool:
        return (
            path == document_stores.ROBOTS_FILE
            or judge.exclusion_of_path(tuple(path.split("/"))) is None
        )

    return is_published


def _published_copies(folder: Path) -> Callable[[str], bool]:
    """Return the test for paths in a mirror's folder at which there is a copy."""
    file = folder / OWN_FOLDER / STATE_FILE
    with SqliteMirrorState(file, read_only=True) as state:
        mapping = SyncState(state).mapping()
    if mapping is None:
        raise ConfigurationError(
            f"{folder} was not pulled yet",
            hint=f"pull it first: resourcesync pull https://HOST/ {quoted(folder, 'DIR')}",
        )

    def is_copy(path: str) -> bool:
        with SqliteMirrorState(file, read_only=True) as state:  # one for each thread
            return owner_of(state, mapping, path) is not None

    return is_copy


def files_by_address(root: Path) -> Callable[[str], str | None] | None:
    """Return the function from the part after the base in an address to the file of the copy.

    ``None`` for a tree, and for a mirror whose copies have their addresses from their paths.
    """
    if not is_aggregated(root):
        return None
    file = root / OWN_FOLDER / STATE_FILE
    with SqliteMirrorState(file, read_only=True) as state:
        base = base_address(state)
    if not base:
        return None

    def file_at(tail: str) -> str | None:
        try:
            uri = normalise(f"{base}{tail}")
        except OutOfScopeError:
            return None
        found = uri_of_published(uri.removeprefix(base), base)
        if found is None:
            return None
        with SqliteMirrorState(file, read_only=True) as state:  # one for each thread
            copy = state.copy(found)
        return None if copy is None else copy.path

    return file_at


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
    find_copy = _copies_by_path(root) if is_aggregated(root) else None

    def find(path: str, tail: str) -> ServedEntry | None:
        uri = naming.base_uri + (tail or "/".join(map(to_segment, path.split("/"))))
        try:
            known = reader.entry(uri)
            if known is not None:
                known = (*known[:2], tuple(_links_to_serve(known[2], uri, reader)))
            copy = None if known is None or find_copy is None else find_copy(path)
        except ResourceSyncError:
            return None
        if known is None:
            return None
        hash_, signature, links = known
        if find_copy is None:
            return ServedEntry(signature=signature, hash=hash_, links=links)
        if copy is None:
            return ServedEntry(links=links)
        return ServedEntry(signature=copy.signature, hash=copy.digests, links=links)

    return find


def _links_to_serve(links: tuple[Link, ...], uri: str, reader: CatalogueReader) -> Iterator[Link]:
    """Yield the links of an entry, a memento with its Memento-Datetime (RFC 7089 §2.2.4).

    The server itself sends the link to the TimeGate, also with what is not listed.
    """
    for link in links:
        if link.rel == Relation.MEMENTO:
            version = reader.version_at(uri, None)
            if version is not None:
                yield structs.replace(link, modified=from_microseconds(version.since))
        elif link.rel != Relation.TIMEGATE:
            yield link


def _copies_by_path(folder: Path) -> Callable[[str], Copy | None]:
    """Return the function from a path in a mirror's folder to the copy there."""
    file = folder / OWN_FOLDER / STATE_FILE

    def find_copy(path: str) -> Copy | None:
        with SqliteMirrorState(file, read_only=True) as state:  # one for each thread
            mapping = SyncState(state).mapping()
            uri = None if mapping is None else owner_of(state, mapping, path)
            return None if uri is None else state.copy(uri)

    return find_copy
