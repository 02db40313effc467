"""Protocol of the mapping from URIs to paths, and of the plug-ins that provide one."""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, Protocol

from resourcesync.errors import ConfigurationError

TREE: Final = "tree"
"""The built-in mapper, of every mirror unless another is chosen."""


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


class Mapper(Protocol):
    """Mapper made by a plug-in's factory."""

    def to_path(self, uri: str) -> str:
        """Return the path of a normalised URI: relative, with ``/``."""

    def to_uri(self, path: str) -> str | None:
        """Return the URI of a path; ``None`` if there is none."""


MapperFactory = Callable[[str, bool], Mapper]
"""Factory, called with the mirror's base, a URI that ends in ``/``, and whether its file system is
case-sensitive.
"""


def load_no_mapper(name: str) -> MapperFactory:
    """Raise an error: there is no such mapper."""
    raise ConfigurationError(f"there is no mapper {name!r}", code="no-plugin")
