"""Bytes of resources for packages, if the originals still have them."""

from collections.abc import Callable
from typing import BinaryIO, Final

from resourcesync.errors import OriginalChangedError
from resourcesync.model.entries import Link, Resource
from resourcesync.model.timestamps import from_microseconds
from resourcesync.ports.originals import Original, Originals

OpenOriginal = Callable[[str], BinaryIO | None]

_EPOCH: Final = from_microseconds(0)


class PresentContents:
    """The bytes of the originals as they are now; former versions are not stored."""

    def __init__(self, originals: Originals, opening: OpenOriginal | None = None) -> None:
        self._originals = originals
        self._opening = opening or originals.open

    def contains(self, resource: Resource) -> bool:
        """True if the bytes of a former version are stored: never, in this class."""
        del resource
        return False

    def open(self, resource: Resource) -> BinaryIO | None:
        """Open the bytes that are at a resource's URI now; ``None`` when there are none."""
        return self._opening(resource.uri)

    def open_patch(self, patch: Link) -> BinaryIO | None:
        """Open a patch: always ``None``, since no former version is stored."""
        del patch
        none: BinaryIO | None = None
        return none

    def measure(self, uri: str) -> Resource | None:
        """Measure the resource at a URI; ``None`` when there is none any more."""
        try:
            resource, _ = self._originals.measure(Original(uri, "", 0, _EPOCH))
        except OriginalChangedError:
            stream = self._originals.open(uri)
            if stream is None:
                return None
            stream.close()
            raise
        return resource
