"""The bytes for packages, from the originals as they are now."""

from collections.abc import Callable
from typing import BinaryIO, Final

from resourcesync.errors import OriginalChangedError
from resourcesync.model.links import Link
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import from_microseconds
from resourcesync.ports import Original
from resourcesync.ports.originals import OriginalReader

OpenOriginal = Callable[[str], BinaryIO | None]

_EPOCH: Final = from_microseconds(0)


class PresentContents:
    """The bytes of the originals; of what they were before nothing is kept (``Contents``).

    Args:
        originals: The originals.
        opening: What opens them, by default as they do themselves.
    """

    def __init__(self, originals: OriginalReader, opening: OpenOriginal | None = None) -> None:
        self._originals = originals
        self._opening = opening or originals.open

    def contains(self, resource: Resource) -> bool:
        """Whether the bytes of a former version are kept: they never are."""
        del resource
        return False

    def open(self, resource: Resource) -> BinaryIO | None:
        """Open the bytes that are at a resource's URI now; ``None`` when there are none.

        Raises:
            StorageError: They are there, and cannot be read.
        """
        return self._opening(resource.uri)

    def open_patch(self, patch: Link) -> BinaryIO | None:
        """Open a patch: there are none where nothing is kept of what was."""
        del patch
        none: BinaryIO | None = None
        return none

    def measure(self, uri: str) -> Resource | None:
        """Read what is at a URI now; ``None`` when there is nothing any more.

        Raises:
            OriginalChangedError: It changed all the time while it was read.
            StorageError: It cannot be read.
        """
        try:
            resource, _ = self._originals.measure(Original(uri, "", 0, _EPOCH))
        except OriginalChangedError:
            stream = self._originals.open(uri)
            if stream is None:
                return None
            stream.close()
            raise
        return resource
