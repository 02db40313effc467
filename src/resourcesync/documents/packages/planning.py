"""The plan of a dump: the package of each entry, and its place in it."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from resourcesync.documents.packages.safety import new_path
from resourcesync.documents.writer import render, write
from resourcesync.model.entries import (
    Change,
    Header,
    Resource,
    ResourceRun,
    joined_runs,
    many_resources,
)
from resourcesync.model.vocabulary import MAX_BYTES, MAX_ENTRIES, ChangeKind

ManifestEntry = Resource | Change
"""Entry of a manifest: a resource (§11.2) or a change (§13.2)."""


class PackageSize(msgspec.Struct, frozen=True, kw_only=True):
    """The maximal size of one package.

    A manifest is a document like any other (§7): at most 50,000 entries. One entry larger than
    ``max_bytes`` still gets a package.
    """

    max_entries: int = MAX_ENTRIES
    max_bytes: int = 256 * 2**20
    max_manifest: int = MAX_BYTES

    def __post_init__(self) -> None:
        if not 1 <= self.max_entries <= MAX_ENTRIES or self.max_bytes < 1:
            raise ValueError(f"a package contains 1 to {MAX_ENTRIES:,} entries and at least 1 byte")
        if not 1 <= self.max_manifest <= MAX_BYTES:
            raise ValueError(f"the manifest of a package has 1 to {MAX_BYTES:,} bytes")


_DEFAULT_SIZE: Final = PackageSize()


def plan_packages(
    header: Header,
    entries: Iterable[ManifestEntry | ResourceRun],
    *,
    size: PackageSize = _DEFAULT_SIZE,
) -> Iterator[Sequence[ManifestEntry]]:
    """Yield the entries of one package after the other, in order, each with its new ``path``.

    A package ends before the entry that would make it too large, so the same entries always give
    the same packages, and more entries at the end change only the last one. The manifest, too,
    stays within the 50 MB that a document may have. Entries of one package are buffered in memory.
    """
    package = _PackageBuilder(header, size)
    for entry in entries:
        part: _Part = entry if isinstance(entry, ResourceRun) else [entry]
        if package.add(part):
            continue
        for at in range(len(part)):
            single = part[at : at + 1]
            if not package.add(single):
                yield _placed(package.parts)
                package = _PackageBuilder(header, size)
                package.add(single)
    if package:
        yield _placed(package.parts)


_Part = ResourceRun | list[ManifestEntry]


class _PackageBuilder:
    def __init__(self, header: Header, size: PackageSize) -> None:
        self.parts: list[_Part] = []
        self._count = 0
        self._header = header
        self._size = size
        self._content = 0
        self._frame = sum(map(len, write(header, ())))
        self._text = self._frame  # of the entries that were measured
        self._measured = 0
        self._most = 0  # a bound for the others

    def __bool__(self) -> bool:
        return bool(self.parts)

    def add(self, part: _Part) -> bool:
        """Put entries into this package, if it has room for all; for the first it always has."""
        if not part:
            return True
        length, text = _length_and_text(part, self._header)
        is_first = not self._count and len(part) == 1
        if not is_first and not self._measure_room(len(part), length, text):
            return False
        self.parts.append(part)
        self._count += len(part)
        self._content += length
        self._most += text
        return True

    def _measure_room(self, count: int, length: int, text: int) -> bool:
        size = self._size
        if self._count + count > size.max_entries or self._content + length > size.max_bytes:
            return False
        if self._text + self._most + text > size.max_manifest:
            # The bounds are generous, but measuring means writing: so that only where it matters.
            tail = _placed(self.parts)[self._measured :]
            self._text += sum(map(len, write(self._header, tail))) - self._frame
            self._measured, self._most = self._count, 0
        return self._text + self._most + text <= size.max_manifest


_MARKUP: Final = 512
"""Bytes of an entry's elements, times and numbers, and of its new path: never as many."""
_ESCAPED: Final = 6
"""Most bytes of one character, as in ``&quot;``."""


def _length_and_text(part: _Part, header: Header) -> tuple[int, int]:
    if isinstance(part, ResourceRun):
        lengths = [length for length in part.lengths if length is not None]
        if len(lengths) < len(part):
            length_of(part[part.lengths.index(None)])  # raises
        columns = (part.uris, part.hashes, part.media_types)
        text = sum(sum(map(len, column)) for column in columns)
        return sum(lengths), _MARKUP * len(part) + _ESCAPED * text
    (entry,) = part
    return length_of(entry), _most_text(entry, header)


def _most_text(entry: ManifestEntry, header: Header) -> int:
    resource = entry if isinstance(entry, Resource) else entry.resource
    if resource.links or resource.extra or resource.foreign:
        return _MARKUP + len(render(_placed([[entry]])[0], header))
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
    """Return the number of bytes in a package for the entry."""
    resource = content_of(entry)
    if resource is None:
        return 0
    if resource.length is None:
        raise ValueError(f"{resource.uri!r} has no length, so it cannot be packed")
    return resource.length + sum(link.length or 0 for link in resource.links if link.path)


def _placed(parts: Sequence[_Part]) -> Sequence[ManifestEntry]:
    runs = [part for part in parts if isinstance(part, ResourceRun)]
    if runs and len(runs) == len(parts):
        run = joined_runs(runs)
        return run.with_paths(list(map(new_path, count(), run.uris)))
    entries = list(chain.from_iterable(parts))
    if not entries:
        return []
    paths = [
        new_path(index, entry.uri) if content_of(entry) is not None else ""
        for index, entry in enumerate(entries)
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


_FIELDS: Final = Resource.__struct_fields__
_values_of: Final = attrgetter(*_FIELDS)
