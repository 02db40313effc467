"""Which files of a published tree are published: what is served, and what is not."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from resourcesync.adapters.catalogue import read_note
from resourcesync.adapters.files import FileSelection, PathFilter
from resourcesync.adapters.mirror.copies import OWN_FOLDER
from resourcesync.adapters.mirror.mirror_folder import STATE_FILE, is_mirror
from resourcesync.destination.mappers import NAMES, owner_of
from resourcesync.destination.mapping import uri_of_published
from resourcesync.destination.sync_state import SyncState
from resourcesync.destination.uris import normalise
from resourcesync.errors import ConfigurationError, OutOfScopeError
from resourcesync.ports.mirror import MirrorStateStore
from resourcesync.wiring import document_stores, mirror_state, plugins
from resourcesync.wiring.publishing import CATALOGUE, NOTE, Settings, decode_settings

PUBLICATION: Final = Path(OWN_FOLDER) / "publication"
"""Where the documents of a published mirror are, unless they go elsewhere: never among copies."""


def is_aggregated(folder: Path) -> bool:
    """True if to publish a folder is to publish a mirror, and not the files as they lie there.

    A mirror that was published as a folder of files stays one.

    Raises:
        StorageError: Its catalogue cannot be read.
    """
    if not is_mirror(folder):
        return False
    catalogue = folder / CATALOGUE
    return not catalogue.is_file() or read_note(catalogue, NOTE) is None


def published_settings(root: Path) -> Settings:
    """Return how a tree was published the last time.

    Raises:
        StorageError: The catalogue cannot be read.
    """
    return decode_settings(read_note(root / CATALOGUE, NOTE))


def documents_of(root: Path) -> Path:
    """Return the folder that has the documents of a tree when nobody said another.

    Raises:
        StorageError: The catalogue cannot be read.
    """
    out = root / PUBLICATION
    return out if is_aggregated(root) and out.is_dir() else root


def published_files(root: Path) -> Callable[[str], bool]:
    """Return what tells which files of a published tree are published, by their paths in it.

    Those that the operator left out are not, as the last publication had it. ``robots.txt`` is for
    everybody. Of a mirror, the copies are, and no other file that lies there.

    Raises:
        StateError: The memory of a mirror is damaged.
        StorageError: The catalogue cannot be read.
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
    """Return what tells of a path in a mirror's folder whether the file there is a copy of it.

    Raises:
        ConfigurationError: The mirror does not know its Source yet, or its mapper is not here.
        StateError: Its memory is damaged or from a newer version.
    """
    file = folder / OWN_FOLDER / STATE_FILE
    with mirror_state.open_state(file, read_only=True) as state:
        mapping = SyncState(state).mapping(plugins.mapper)
    if mapping is None:
        raise ConfigurationError(
            f"{folder} was not pulled yet", hint=f"resourcesync pull https://HOST/ {folder}"
        )

    def is_copy(path: str) -> bool:
        with mirror_state.open_state(file, read_only=True) as state:  # one for each: threads ask
            return owner_of(state, mapping, path) is not None

    return is_copy


def files_by_address(root: Path) -> Callable[[str], str | None] | None:
    """Return what gives the file of a copy by what follows the base in its address.

    Of a tree, and of a mirror whose copies have their addresses from their places, there is none:
    the address says where the file is.

    Raises:
        StateError: The memory of a mirror is damaged.
        StorageError: The catalogue cannot be read.
    """
    if not is_aggregated(root):
        return None
    file = root / OWN_FOLDER / STATE_FILE
    with mirror_state.open_state(file, read_only=True) as state:
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
        with mirror_state.open_state(file, read_only=True) as state:  # one for each: threads ask
            copy = state.copy(found)
        return None if copy is None else copy.path

    return file_at


def base_address(state: MirrorStateStore) -> str:
    """Return the base of a mirror whose copies keep what follows it in their URIs; else nothing.

    Where the operator chose other places, or the mirror has the names of older versions, the place
    of a copy is its address.
    """
    identity = SyncState(state).identity
    return identity.base if identity is not None and identity.mapper == NAMES else ""
