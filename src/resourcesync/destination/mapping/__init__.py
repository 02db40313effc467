"""Mappings from URI to path and back: by the names of the Source, or by a rule. Pure.

Most names need no escape: what makes and reads escapes is imported at its first use.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from resourcesync import export_lazily
from resourcesync.discovery.uris import normalise
from resourcesync.errors import ConfigurationError, OutOfScopeError

if TYPE_CHECKING:
    from resourcesync.destination.mapping import escapes

__all__ = [
    "FOREIGN_FOLDER",
    "MAX_PATH",
    "PAGES",
    "TREE",
    "FileSystemProfile",
    "PathMapping",
    "check_base",
    "escapes",
]
__getattr__, __dir__ = export_lazily(__name__, {"escapes": "destination.mapping.escapes:"})

MAX_PATH: Final = 900
"""Largest number of bytes of a path in the mirror."""

FOREIGN_FOLDER: Final = "!6"
"""Folder of URIs that are not below the mirror's base."""
TREE: Final = "tree"
"""The mapping of every mirror unless another is chosen."""
PAGES: Final = "pages"
"""The same, with the folder of its own that a page without an ending has in its site."""


class FileSystemProfile(StrEnum):
    """Profile of the mirror's file system: the names that it distinguishes."""

    POSIX = "posix"
    PORTABLE = "portable"
    """Case-insensitive, as on macOS and Windows."""


class PathMapping(Protocol):
    """Mapping from URI to path and back."""

    def path(self, uri: str) -> str:
        """Return the path of a URI."""
        ...

    def uri(self, path: str) -> str | None:
        """Return the URI of a path; ``None`` if there is none."""
        ...


def check_base(base: str) -> None:
    """Check the base of a mirror."""
    try:
        normal = normalise(base)
    except OutOfScopeError as error:
        raise ConfigurationError(
            f"{base} cannot be a mirror's base: {error.message}",
            code="base",
            hint="give the Source's address as https://HOST/",
        ) from error
    if base != normal or "?" in normal or not normal.endswith("/"):
        raise ConfigurationError(
            f"{base} cannot be a mirror's base: it is not normalised, or does not end in a slash",
            hint=f"use {normal.partition('?')[0].rstrip('/')}/",
            code="base",
        )
