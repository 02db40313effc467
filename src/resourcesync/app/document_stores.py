"""The places of a Source's documents: a folder or a store; and ``robots.txt`` (§6.3.4)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from resourcesync import app
from resourcesync.adapters.folder_documents import FolderDocuments
from resourcesync.errors import ConfigurationError
from resourcesync.ports.documents import DocumentStore

_NAME: Final = "publisher"


def is_store(out: str) -> bool:
    """True if documents go to a store, named by its address, not to a folder."""
    return "://" in out


def out_setting(root: Path, out: Path | str) -> str:
    """Return the place of documents in the form of ``Settings.out``."""
    if isinstance(out, str) and is_store(out):
        app.mirror_stores.check_plugin_address(out, app.plugins.STORES)
        return out.rstrip("/")
    return os.path.relpath(Path(out).absolute(), root.absolute())


def documents_at(root: Path, out: str) -> DocumentStore:
    """Return the store of the documents; nothing is written or locked yet."""
    if is_store(out):
        return app.store_documents.StoredDocuments(app.mirror_stores.open_store(out))
    return FolderDocuments(root / out)


@contextmanager
def locked_documents(
    root: Path, out: str, own: Path, *, dry_run: bool = False
) -> Iterator[DocumentStore]:
    """Return the same to write to: while the block runs, no other machine publishes there.

    A folder needs no lock: its catalogue is locked. Nor does a dry run, which writes nothing.
    """
    if dry_run or not is_store(out):
        yield documents_at(root, out)
        return
    store = app.mirror_stores.open_store(out)
    with app.mirror_stores.lock_store(store, own / _NAME):
        yield app.store_documents.StoredDocuments(store)


ROBOTS_FILE: Final = "robots.txt"
_ROBOTS_HEADER: Final = b"# Written by resourcesync publish.\n"


def check_robots(root: Path, out: str, url: str) -> None:
    """Refuse to write ``robots.txt`` where it has no effect, or over a foreign one."""
    if is_store(out):
        raise ConfigurationError(
            f"{ROBOTS_FILE} can only be written into a folder",
            hint="put it there yourself, and do not write it: -o robots=false",
        )
    if urlsplit(url).path.strip("/"):
        raise ConfigurationError(
            f"{url} is not the root of its host, where {ROBOTS_FILE} must be",
            hint=f"add the Sitemap line to the {ROBOTS_FILE} of the host, and do not write one: "
            "-o robots=false",
        )
    folder = root / out
    found = FolderDocuments(folder, folders=("",)).open(ROBOTS_FILE)
    if found is None:
        return
    with found:
        is_ours = found.read(len(_ROBOTS_HEADER)) == _ROBOTS_HEADER
    if not is_ours:
        raise ConfigurationError(
            f"{folder / ROBOTS_FILE} was not written by resourcesync, so it was not changed",
            hint="add the Sitemap line to it yourself, and do not write it: -o robots=false",
        )


def write_robots(out: Path, sitemap: str) -> None:
    """Write ``robots.txt``, unless it has this content already."""
    text = _ROBOTS_HEADER + f"User-agent: *\nAllow: /\nSitemap: {sitemap}\n".encode()
    documents = FolderDocuments(out, folders=("",))
    found = documents.open(ROBOTS_FILE)
    if found is not None:
        with found:
            if found.read() == text:
                return
    documents.write(ROBOTS_FILE, (text,))
