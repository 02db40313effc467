"""Where a Source's documents go: a folder, or a store that is none.

``robots.txt``: where search engines and Destinations look for lists (§6.3.4); only if asked.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from resourcesync.adapters.document_files import FolderDocuments
from resourcesync.adapters.stored_files import StoredDocuments
from resourcesync.errors import ConfigurationError
from resourcesync.ports import DocumentStore
from resourcesync.wiring import plugins, stores

_NAME: Final = "publisher"


def is_store(out: str) -> bool:
    """True if documents go to a store: its address is said, and no folder."""
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
        dry_run: True if nothing will be written.

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


ROBOTS_FILE: Final = "robots.txt"
_ROBOTS_HEADER: Final = b"# Written by resourcesync publish --robots.\n"


def check_robots(out: Path, url: str) -> None:
    """Refuse to write ``robots.txt`` where it would be of no use, or over that of somebody else.

    Args:
        out: The folder that it would go to.
        url: The address of the tree.

    Raises:
        ConfigurationError: One of these.
        StorageError: What is there cannot be read.
    """
    if urlsplit(url).path.strip("/"):
        raise ConfigurationError(
            f"{url} is not the top of its host, where {ROBOTS_FILE} is looked for",
            hint=f"without --robots: add the Sitemap line to the {ROBOTS_FILE} of the host",
        )
    found = FolderDocuments(out, folders=("",)).open(ROBOTS_FILE)
    if found is None:
        return
    with found:
        is_ours = found.read(len(_ROBOTS_HEADER)) == _ROBOTS_HEADER
    if not is_ours:
        raise ConfigurationError(
            f"{out / ROBOTS_FILE} is not ours, so it is left as it is",
            hint="add the Sitemap line to it yourself, and publish with --no-robots",
        )


def write_robots(out: Path, sitemap: str) -> None:
    """Write ``robots.txt``, unless it is there just so.

    Args:
        out: The folder that it goes to.
        sitemap: The address of the list that it leads to.

    Raises:
        StorageError: It could not be written.
    """
    text = _ROBOTS_HEADER + f"User-agent: *\nAllow: /\nSitemap: {sitemap}\n".encode()
    documents = FolderDocuments(out, folders=("",))
    found = documents.open(ROBOTS_FILE)
    if found is not None:
        with found:
            if found.read() == text:
                return
    documents.write(ROBOTS_FILE, (text,))
