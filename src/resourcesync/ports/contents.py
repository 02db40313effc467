"""The bytes of a Source's resources, for packages."""

from typing import BinaryIO, Protocol

from resourcesync.model.links import Link
from resourcesync.model.resources import Resource
from resourcesync.ports.catalogue import Original


class OriginalReader(Protocol):
    """Originals whose bytes can be read."""

    def open(self, uri: str) -> BinaryIO | None:
        """Open an original; ``None`` when there is none.

        Raises:
            StorageError: It is there, but cannot be read.
        """
        ...

    def measure(self, original: Original) -> tuple[Resource, str]:
        """Read the bytes once; return the resource with its digests, and its fingerprint.

        Raises:
            OriginalChangedError: It changed or vanished meanwhile.
            StorageError: It cannot be read.
        """
        ...


class ResourceContents(Protocol):
    """The bytes of the resources, as far as they can still be had."""

    def contains(self, resource: Resource) -> bool:
        """Whether the bytes of a former version are kept."""
        ...

    def open(self, resource: Resource) -> BinaryIO | None:
        """Open the bytes that a resource had; ``None`` when they are gone.

        They may be those of a later version: who reads them compares length and digests.

        Raises:
            StorageError: They are there, and cannot be read.
        """
        ...

    def open_patch(self, patch: Link) -> BinaryIO | None:
        """Open a patch that leads to a version from the one before; ``None`` when it is not kept.

        Raises:
            StorageError: It is there, and cannot be read.
        """
        ...

    def measure(self, uri: str) -> Resource | None:
        """Read what is at a URI now; ``None`` when there is nothing any more.

        Raises:
            OriginalChangedError: It changed all the time while it was read.
            StorageError: It cannot be read.
        """
        ...
