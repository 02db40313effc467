"""Former versions of a Source's resources: their list and their bytes (§14.6, RFC 7089)."""

from collections.abc import Callable, Iterable
from typing import BinaryIO, Protocol

import msgspec


class VersionPatch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch from the version before to a version (§14.4).

    Attributes:
        sha256: Its digest, which is also its name in the store.
        length: Its bytes.
        media_type: Its format.
    """

    sha256: str
    length: int
    media_type: str


class ResourceVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One stored version of a resource.

    Attributes:
        uri: The resource.
        moment: Time when it was stored, in microseconds; unique among the versions of a resource.
        since: Time since when the resource is known to have been so, in microseconds: the
            Memento-Datetime of RFC 7089.
        length: Its bytes.
        sha256: Its digest, which is also its name in the store.
        media_type: Its media type; may be empty.
        patch: The patch from the version before, if that is stored too.
        is_superseded: True if another version, or a deletion, followed.
    """

    uri: str
    moment: int
    since: int
    length: int
    sha256: str
    media_type: str
    patch: VersionPatch | None = None
    is_superseded: bool = False


ContentKey = tuple[str, int]
"""The sha-256 and the length of bytes that are stored once for all their versions."""


class VersionIndex(Protocol):
    """The index of versions. Writes join the catalogue's open recording."""

    def newest(self, uri: str) -> ResourceVersion | None:
        """Return the newest stored version of a resource."""

    def find(self, uri: str, moment: int) -> ResourceVersion | None:
        """Return one version of a resource."""

    def add(self, version: ResourceVersion) -> None:
        """Add a version, newer than all others of its resource."""

    def recorded_hash(self, uri: str) -> str:
        """Return the ``hash`` that the catalogue has for a resource; empty for none."""

    def stored_bytes(self) -> int:
        """Return the bytes of all stored contents, each once."""

    def drop_oldest(self) -> tuple[ContentKey, ...] | None:
        """Drop the version that was followed by another the longest time ago.

        Returns:
            The contents no longer needed; ``None`` when there is no such version.
        """

    def drop_superseded(self, before: int, least: int) -> tuple[ContentKey, ...]:
        """Drop versions that were followed by another, or by a deletion, before a moment.

        Args:
            before: That moment, in microseconds.
            least: So many former versions of each resource stay in any case.

        Returns:
            The contents that nothing needs any more.
        """

    def drop_stored_before(self, moment: int) -> tuple[ContentKey, ...]:
        """Drop the versions stored before a moment; return the contents no longer needed."""

    def is_needed(self, sha256: str) -> bool:
        """True if a content belongs to a version, or is a patch."""


class VersionStore(Protocol):
    """The bytes of versions and of patches, by their sha-256."""

    def store(self, stream: BinaryIO, sha256: str, length: int) -> bool:
        """Store the bytes of a stream, unless they are stored; return whether they match.

        Raises:
            StorageError: They cannot be read or written. Nothing was stored.
        """

    def contains(self, sha256: str, length: int) -> bool:
        """True if a content is stored, by its name and length."""

    def open(self, sha256: str) -> BinaryIO | None:
        """Open a content; ``None`` if it is missing."""

    def flush(self) -> None:
        """Flush the stored contents to disk: call this before they are published."""

    def remove(self, contents: Iterable[ContentKey]) -> None:
        """Remove contents; missing ones are no error."""

    def sweep(self, is_needed: Callable[[str], bool], before: int) -> int:
        """Remove what nothing needs and has been there since before a moment, in microseconds.

        Returns:
            Number of were removed.
        """


class VersionReader(Protocol):
    """The versions of resources, read-only."""

    def find(self, uri: str, moment: int) -> ResourceVersion | None:
        """Return one version of a resource."""

    def at(self, uri: str, moment: int | None) -> ResourceVersion | None:
        """Return the version that a resource had at a moment, in microseconds.

        The first for a moment before it; the last for ``None``. ``None`` when none is stored.
        """

    def first_and_last(
        self, version: ResourceVersion
    ) -> tuple[ResourceVersion | None, ResourceVersion | None]:
        """Return the first and the last version of the same resource."""

    def versions(self, uri: str, after: int, most: int) -> list[ResourceVersion]:
        """Return up to so many versions stored after a moment, oldest first."""
