"""Which entries go into which package, and where each stands in it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from resourcesync.documents.packages.naming import new_path
from resourcesync.documents.writing import render
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
    """

    max_entries: int = MAX_ENTRIES
    max_bytes: int = 256 * 2**20

    def __post_init__(self) -> None:
        """Refuse what the specification does not allow."""
        if not 1 <= self.max_entries <= MAX_ENTRIES or self.max_bytes < 1:
            raise ValueError(f"a package holds 1 to {MAX_ENTRIES:,} entries and at least 1 byte")


DEFAULT_SIZE = PackageSize()


def plan_packages(
    header: Header, entries: Iterable[ManifestEntry], *, size: PackageSize = DEFAULT_SIZE
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
    package: list[ManifestEntry] = []
    content = text = 0
    for entry in entries:
        length = length_of(entry)
        placed = _placed(entry, len(package))
        more = len(render(placed, header))
        if package and (
            len(package) >= size.max_entries
            or content + length > size.max_bytes
            or text + more > MAX_BYTES - _FRAME
        ):
            yield package
            package, content, text = [], 0, 0
            placed = _placed(entry, 0)
        package.append(placed)
        content += length
        text += more
    if package:
        yield package


_FRAME = 65_536
"""Bytes kept free in a manifest for its root and links."""


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
