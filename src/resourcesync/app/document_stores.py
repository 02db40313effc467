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
from resourcesync.own_files import read_file
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
_OURS: Final = "# Written by resourcesync publish.\nUser-agent: *\nAllow: /\n{}\n"
_MOST: Final = 1 << 20


def check_robots(out: str, url: str) -> None:
    """Refuse to write ``robots.txt`` where it has no effect."""
    is_below = bool(urlsplit(url).path.strip("/"))
    if is_below or is_store(out):
        where = f"{url} is not the root of its host" if is_below else f"{out} is no folder"
        hint = f"add the Sitemap line to the {ROBOTS_FILE} of the host, and write none: "
        text = f"{where}, where {ROBOTS_FILE} must be"
        raise ConfigurationError(text, hint=f"{hint}-o robots=false")


def read_robots(folder: Path) -> tuple[str | None, bool]:
    """Return the ``robots.txt`` of a folder, if there is one, and whether publish wrote it so."""
    try:
        text = read_file(folder / ROBOTS_FILE, _MOST).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return None, False
    except OSError:
        return "", False
    line = text.removesuffix("\n").rpartition("\n")[2]
    return text, line.startswith("Sitemap: ") and text == _OURS.format(line)


def update_robots(out: Path, line: str) -> int | None:
    """Write our ``robots.txt``; return its bytes, 0 if it was removed, ``None`` if it was left."""
    (found, is_ours), text = read_robots(out), _OURS.format(line) if line else None
    if found == text or (found is not None and not is_ours):
        return None
    documents = FolderDocuments(out, folders=("",))
    if text is not None:
        return documents.write(ROBOTS_FILE, (text.encode(),))
    documents.delete(ROBOTS_FILE)
    return 0
