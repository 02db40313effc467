"""Keep a Resource Dump in step with the catalogue: only what changed is packed again (§11).

Each package holds a range of URIs. Its name is never used again and its bytes never change: a
range in which nothing changed keeps its package, with the ``at`` that it had. The dump's own
``at`` is that of its oldest package, so whoever starts from the dump applies all later changes.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Final

from resourcesync.documents.packages.planning import PackageSize, plan_packages
from resourcesync.documents.writer import body, closing, opening
from resourcesync.model.capabilities import Header
from resourcesync.model.resources import Resource
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability
from resourcesync.ports import CatalogueSnapshot
from resourcesync.ports.originals import ResourceContents
from resourcesync.source import description, naming
from resourcesync.source.dump_ledger import PublishedPackage
from resourcesync.source.packaging import PackageNames, Packager
from resourcesync.source.shelf import DocumentWriter

_EPOCH: Final = from_microseconds(0)


def pack_resources(  # noqa: PLR0913 - what to pack, how, and what is packed already
    snapshot: CatalogueSnapshot,
    known: Sequence[PublishedPackage],
    packager: Packager,
    contents: ResourceContents,
    *,
    shelf: DocumentWriter,
    size: PackageSize,
    taken: set[str],
    oldest: int = 0,
) -> tuple[PublishedPackage, ...]:
    """Pack what is not packed yet; return the packages of the whole dump, in URI order.

    Args:
        snapshot: What to pack.
        known: The packages of the last dump.
        packager: Makes packages.
        contents: Tells the length of what has none.
        shelf: Where documents are, and what they are called.
        size: The most that one package holds.
        taken: Names that are in use; new ones are added.
        oldest: Packages older than this are made anew, in microseconds.

    Raises:
        OriginalChangedError: Something changed each time it was packed.
        StorageError: A package could not be written. What is public is as it was.
    """
    header = manifest_header(shelf, snapshot.at)
    usable = {it.key: it for it in known if it.since >= oldest}
    packages: list[PublishedPackage] = []
    for start, end in _ranges(known, size):
        resources = _sized(snapshot.resources(start, end), contents)
        for entries in plan_packages(header, resources, size=size):
            text = body(entries, header)
            key = _key(header, text)
            packed = usable.get(key)
            if packed is None or not packager.is_unharmed(packed):
                names = _new_names(snapshot.at, taken)
                made = packager.pack(names, header, entries, key, text)
                packed = replace(made, since=to_microseconds(snapshot.at))
            packages.append(packed)
    return tuple(packages)


def manifest_header(shelf: DocumentWriter, at: datetime) -> Header:
    """Return the root of the manifest of a package of the moment ``at`` (§11.2)."""
    return Header(
        capability=Capability.RESOURCE_DUMP_MANIFEST,
        at=at,
        links=(description.up_link(shelf.naming, naming.CAPABILITY_LIST),),
    )


def _ranges(
    known: Sequence[PublishedPackage], size: PackageSize
) -> Iterator[tuple[str, str | None]]:
    """Yield the ranges of URIs to pack: those of last time, small neighbours together."""
    starts: list[str] = [""]
    entries = content = 0
    for packed in known:
        fits = (
            entries + packed.entries <= size.max_entries // 2
            and content + packed.content <= size.max_bytes // 2
        )
        if not fits and entries:
            starts.append(packed.start)
            entries = content = 0
        entries += packed.entries
        content += packed.content
    yield from pairwise([*starts, None])


def _sized(resources: Iterable[Resource], contents: ResourceContents) -> Iterator[Resource]:
    """Yield the resources with their lengths; one that is gone meanwhile is left out."""
    for resource in resources:
        if resource.length is not None:
            yield resource
            continue
        found = contents.measure(resource.uri)
        if found is not None:
            yield replace(found, links=resource.links)


def _new_names(at: datetime, taken: set[str]) -> PackageNames:
    number = 1
    while (names := naming.resource_package(at, number))[0] in taken:
        number += 1
    taken.add(names[0])
    return PackageNames(package=names[0], manifest=names[1])


def _key(header: Header, text: bytes) -> str:
    """Return what stands for the entries, whenever they are packed."""
    timeless = replace(header, at=_EPOCH)
    return hashlib.sha256(opening(timeless) + text + closing(timeless)).hexdigest()
