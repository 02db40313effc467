"""``robots.txt``: where search engines and Destinations look for lists (§6.3.4); only if asked."""

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from resourcesync.adapters.document_files import FolderDocuments
from resourcesync.errors import ConfigurationError

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
