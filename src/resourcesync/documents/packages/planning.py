"""Which entries go into which package, and where each stands in it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from resourcesync.documents.packages.naming import new_path
from resourcesync.documents.writing import render, write
from resourcesync.model.capabilities import Header
from resourcesync.model.resources import Change, Resource
from resourcesync.model.vocabulary import MAX_BYTES, MAX_ENTRIES, ChangeKind

__all__ = ["ManifestEntry", "PackageSize", "content_of", "plan_packages"]

ManifestEntry = Resource | Change
"""What a manifest lists: resources (§11.2) or changes (§13.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSize:
    """The most that one package holds.

    Attributes:
        max_entries: Entries, 1 to 50,000: a manifest is a document like any other (§7).
        max_bytes: Bytes of all contents, not compressed; one larger entry still gets a package.
        max_manifest: Bytes of the manifest, 1 to 52,428,800.
    """

    max_entries: int = MAX_ENTRIES
    max_bytes: int = 256 * 2**20
    max_manifest: int = MAX_BYTES

    def __post_init__(self) -> None:
        """Refuse what the specification does not allow."""
        if not 1 <= self.max_entries <= MAX_ENTRIES or self.max_bytes < 1:
            raise ValueError(f"a package holds 1 to {MAX_ENTRIES:,} entries and at least 1 byte")
        if not 1 <= self.max_manifest <= MAX_BYTES:
            raise ValueError(f"the manifest of a package has 1 to {MAX_BYTES:,} bytes")


_DEFAULT_SIZE: Final = PackageSize()


def plan_packages(
    header: Header, entries: Iterable[ManifestEntry], *, size: PackageSize = _DEFAULT_SIZE
) -> Iterator[list[ManifestEntry]]:
    """Yield the entries of one package after the other, in order, each with its new ``path``.

    A package ends before the entry that would make it too large, so the same entries always give
    the same packages, and more entries at the end change only the last one. The manifest, too,
    stays within the 50 MB that a document may have. Entries of one package are held in memory.

    Args:
        header: A header as the manifests will have it.
        entries: What to pack; a path that is already there is replaced.
        size: The most that a package holds.

    Raises:
        ValueError: An entry has no ``length``, or could not be in such a manifest.
    """
    package = _Growing(header, size)
    for entry in entries:
        length = length_of(entry)
        if not package.has_room(entry, length):
            yield package.entries
            package = _Growing(header, size)
        package.add(entry, length)
    if package.entries:
        yield package.entries


class _Growing:
    """A package while it is planned."""

    def __init__(self, header: Header, size: PackageSize) -> None:
        self.entries: list[ManifestEntry] = []
        self._header = header
        self._size = size
        self._content = 0
        self._frame = sum(map(len, write(header, ())))
        self._text = self._frame  # of the entries that were measured
        self._measured = 0
        self._most = 0  # a bound for the others

    def has_room(self, entry: ManifestEntry, length: int) -> bool:
        """Whether the entry may go into this package; the first one always may."""
        if not self.entries:
            return True
        if (
            len(self.entries) >= self._size.max_entries
            or self._content + length > self._size.max_bytes
        ):
            return False
        more = _most_text(entry, self._header)
        if self._text + self._most + more > self._size.max_manifest:
            # The bounds are generous, but measuring means writing: so that only where it matters.
            tail = self.entries[self._measured :]
            self._text += sum(map(len, write(self._header, tail))) - self._frame
            self._measured, self._most = len(self.entries), 0
        return self._text + self._most + more <= self._size.max_manifest

    def add(self, entry: ManifestEntry, length: int) -> None:
        """Put the entry into this package."""
        self._content += length
        self._most += _most_text(entry, self._header)
        self.entries.append(_placed(entry, len(self.entries)))


_MARKUP: Final = 512
"""Bytes of an entry's elements, times and numbers, and of its new path: never as many."""
_ESCAPED: Final = 6
"""Bytes that one character takes at most, as in ``&quot;``."""


def _most_text(entry: ManifestEntry, header: Header) -> int:
    """Return a bound for the bytes that an entry takes in its manifest."""
    resource = entry if isinstance(entry, Resource) else entry.resource
    if resource.links or resource.extra or resource.foreign:
        return _MARKUP + len(render(_placed(entry, 0), header))
    free = len(resource.uri) + len(resource.media_type) + len(resource.encoding)
    free += len(resource.changefreq) + sum(len(str(digest)) for digest in resource.digests)
    return _MARKUP + _ESCAPED * free


def content_of(entry: ManifestEntry) -> Resource | None:
    """Return the resource whose bytes a package holds for the entry; none for a deletion."""
    if isinstance(entry, Resource):
        return entry
    return None if entry.kind is ChangeKind.DELETED else entry.resource


def length_of(entry: ManifestEntry) -> int:
    """Return how many bytes a package holds for the entry.

    Raises:
        ValueError: The entry does not say.
    """
    resource = content_of(entry)
    if resource is None:
        return 0
    if resource.length is None:
        raise ValueError(f"{resource.uri!r} has no length, so it cannot be packed")
    return resource.length


def _placed(entry: ManifestEntry, index: int) -> ManifestEntry:
    resource = content_of(entry)
    if isinstance(entry, Resource):
        return replace(entry, path=new_path(index, entry.uri))
    path = "" if resource is None else new_path(index, entry.uri)
    return replace(entry, resource=replace(entry.resource, path=path))
