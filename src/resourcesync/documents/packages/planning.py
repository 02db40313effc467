"""The plan of a dump: the package of each entry, and its place in it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, Final

from resourcesync.documents.packages.member_names import new_path
from resourcesync.documents.writer import render, write
from resourcesync.model.capabilities import Header
from resourcesync.model.resources import Change, Resource, many_resources
from resourcesync.model.vocabulary import MAX_BYTES, MAX_ENTRIES, ChangeKind

__all__ = ["ManifestEntry", "PackageSize", "content_of", "plan_packages"]

ManifestEntry = Resource | Change
"""Entry of a manifest: a resource (§11.2) or a change (§13.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSize:
    """The maximal size of one package.

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
            raise ValueError(f"a package contains 1 to {MAX_ENTRIES:,} entries and at least 1 byte")
        if not 1 <= self.max_manifest <= MAX_BYTES:
            raise ValueError(f"the manifest of a package has 1 to {MAX_BYTES:,} bytes")


_DEFAULT_SIZE: Final = PackageSize()


def plan_packages(
    header: Header, entries: Iterable[ManifestEntry], *, size: PackageSize = _DEFAULT_SIZE
) -> Iterator[list[ManifestEntry]]:
    """Yield the entries of one package after the other, in order, each with its new ``path``.

    A package ends before the entry that would make it too large, so the same entries always give
    the same packages, and more entries at the end change only the last one. The manifest, too,
    stays within the 50 MB that a document may have. Entries of one package are buffered in memory.

    Args:
        header: A header as the manifests will have it.
        entries: The entries to pack; an existing ``path`` is replaced.
        size: The maximal size of a package.

    Raises:
        ValueError: An entry has no ``length``, or could not be in such a manifest.
    """
    package = _PackageBuilder(header, size)
    for entry in entries:
        if not package.add(entry):
            yield package.placed_entries()
            package = _PackageBuilder(header, size)
            package.add(entry)
    if package:
        yield package.placed_entries()


class _PackageBuilder:
    """A package while it is planned."""

    def __init__(self, header: Header, size: PackageSize) -> None:
        self._entries: list[ManifestEntry] = []
        self._header = header
        self._size = size
        self._content = 0
        self._frame = sum(map(len, write(header, ())))
        self._text = self._frame  # of the entries that were measured
        self._measured = 0
        self._most = 0  # a bound for the others

    def __bool__(self) -> bool:
        return bool(self._entries)

    def placed_entries(self) -> list[ManifestEntry]:
        """Return the entries, each with its path."""
        return _placed(self._entries)

    def add(self, entry: ManifestEntry) -> bool:
        """Put the entry into this package, if it has room; for the first it always has."""
        length, text = length_of(entry), _most_text(entry, self._header)
        if self._entries and not self._measure_room(length, text):
            return False
        self._entries.append(entry)
        self._content += length
        self._most += text
        return True

    def _measure_room(self, length: int, text: int) -> bool:
        size = self._size
        if len(self._entries) >= size.max_entries or self._content + length > size.max_bytes:
            return False
        if self._text + self._most + text > size.max_manifest:
            # The bounds are generous, but measuring means writing: so that only where it matters.
            tail = _placed(self._entries[self._measured :], self._measured)
            self._text += sum(map(len, write(self._header, tail))) - self._frame
            self._measured, self._most = len(self._entries), 0
        return self._text + self._most + text <= size.max_manifest


_MARKUP: Final = 512
"""Bytes of an entry's elements, times and numbers, and of its new path: never as many."""
_ESCAPED: Final = 6
"""Most bytes of one character, as in ``&quot;``."""


def _most_text(entry: ManifestEntry, header: Header) -> int:
    """Return a bound for the bytes of an entry in its manifest."""
    resource = entry if isinstance(entry, Resource) else entry.resource
    if resource.links or resource.extra or resource.foreign:
        return _MARKUP + len(render(_placed([entry])[0], header))
    free = len(resource.uri) + len(resource.media_type) + len(resource.encoding)
    free += len(resource.changefreq)
    for algorithm, value in resource.digests:
        free += len(algorithm) + len(value) + 1
    return _MARKUP + _ESCAPED * free


def content_of(entry: ManifestEntry) -> Resource | None:
    """Return the resource whose bytes are in a package for the entry; none for a deletion."""
    if isinstance(entry, Resource):
        return entry
    return None if entry.kind is ChangeKind.DELETED else entry.resource


def length_of(entry: ManifestEntry) -> int:
    """Return the number of bytes in a package for the entry.

    Raises:
        ValueError: The entry has no length.
    """
    resource = content_of(entry)
    if resource is None:
        return 0
    if resource.length is None:
        raise ValueError(f"{resource.uri!r} has no length, so it cannot be packed")
    return resource.length + sum(link.length or 0 for link in resource.links if link.path)


def _placed(entries: Sequence[ManifestEntry], first: int = 0) -> list[ManifestEntry]:
    """Return the entries with the paths of those at ``first`` and after it."""
    if not entries:
        return []
    paths = [
        new_path(index, entry.uri) if content_of(entry) is not None else ""
        for index, entry in enumerate(entries, first)
    ]
    resources = [entry if isinstance(entry, Resource) else entry.resource for entry in entries]
    columns: dict[str, Iterable[Any]] = dict(
        zip(_FIELDS, zip(*map(_values_of, resources), strict=True), strict=True)
    )
    placed = many_resources(len(resources), {**columns, "path": paths})
    return [
        resource if isinstance(entry, Resource) else replace(entry, resource=resource)
        for entry, resource in zip(entries, placed, strict=True)
    ]


_FIELDS: Final = tuple(field.name for field in fields(Resource))
_values_of: Final = attrgetter(*_FIELDS)
