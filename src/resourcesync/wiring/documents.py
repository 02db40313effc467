"""Where a Source's documents go: a folder, or a store that is none."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from resourcesync.adapters.document_files import FolderDocuments
from resourcesync.adapters.stored_files import StoredDocuments
from resourcesync.ports import DocumentStore
from resourcesync.wiring import plugins, stores

_NAME: Final = "publisher"


def is_store(out: str) -> bool:
    """Whether documents go to a store: its address is said, and no folder."""
    return "://" in out


def out_setting(root: Path, out: Path | str) -> str:
    """Return where documents go as ``Settings.out`` says it.

    Args:
        root: What it is relative to.
        out: A folder, or the address of a store.

    Raises:
        ConfigurationError: No plug-in is for such an address.
    """
    if isinstance(out, str) and is_store(out):
        stores.check_plugin_address(out, plugins.STORES)
        return out.rstrip("/")
    return os.path.relpath(Path(out).absolute(), root.absolute())


def documents_at(root: Path, out: str) -> DocumentStore:
    """Return what documents are written to; nothing is written yet, and nothing is held.

    Args:
        root: What ``out`` is relative to.
        out: As ``Settings.out`` says it.

    Raises:
        ConfigurationError: There is no plug-in for it, or it cannot be used.
    """
    if is_store(out):
        return StoredDocuments(stores.open_store(out))
    return FolderDocuments(root / out)


def shared_documents_at(place: str) -> DocumentStore:
    """Return the same for one of several processes that write there at a time.

    Args:
        place: A folder of this machine, or the address of a store that somebody holds.

    Raises:
        ConfigurationError: There is no plug-in for it, or it cannot be used.
    """
    if is_store(place):
        return StoredDocuments(stores.open_store(place))
    return FolderDocuments(Path(place), is_alone=False)


@contextmanager
def locked_documents(
    root: Path, out: str, own: Path, *, dry_run: bool = False
) -> Iterator[DocumentStore]:
    """Return the same to write to: while the block runs, no other machine publishes there.

    A folder needs no holding: its catalogue is held. Nor does a dry run, which writes nothing.

    Args:
        root: What ``out`` is relative to.
        out: As ``Settings.out`` says it.
        own: The folder of the catalogue.
        dry_run: Whether nothing will be written.

    Raises:
        LockedError: Somebody publishes there, or keeps a mirror there.
        StorageError: It cannot be asked.
    """
    if dry_run or not is_store(out):
        yield documents_at(root, out)
        return
    store = stores.open_store(out)
    with stores.lock_store(store, own / _NAME):
        yield StoredDocuments(store)
