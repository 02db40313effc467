"""Packages of dumps: only changed ranges of a Resource Dump are packed again (§11, §13).

Each package of a Resource Dump contains a range of URIs. Its name is never used again and its bytes
never change: a range in which nothing changed keeps its package, with the ``at`` that it had. The
dump's own ``at`` is that of its oldest package, so whoever starts from the dump applies all later
changes.

A Change Dump only grows (§13): each publication adds packages, and each interval begins where the
one before it ends. A package contains every change of its interval, so the bytes of each must be
available: former versions are, where versions are stored. After a change whose bytes are gone the
Change Dump starts over, at a moment from which it is complete.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import count, pairwise
from typing import Final

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.database import CatalogueSnapshot
from resourcesync.documents.packages.planning import ManifestEntry, PackageSize, plan_packages
from resourcesync.documents.writer import closing, opening
from resourcesync.model.digests import disagree
from resourcesync.model.entries import Change, Header, Link, Resource, ResourceRun
from resourcesync.model.timestamps import from_microseconds, to_microseconds
from resourcesync.model.vocabulary import Capability, ChangeKind, Dialect
from resourcesync.ports.originals import ResourceContents
from resourcesync.source import description, naming
from resourcesync.source.document_writer import DocumentWriter, checking_entries, renderer
from resourcesync.source.dump_record import PublishedPackage, times_of
from resourcesync.source.dumps.package_writer import PackageJob, Packager

_EPOCH: Final = from_microseconds(0)


def pack_resources(  # noqa: PLR0913 - what to pack, how, and what is packed already
    snapshot: CatalogueSnapshot,
    known: Sequence[PublishedPackage],
    packager: Packager,
    *,
    writer: DocumentWriter,
    size: PackageSize,
    taken: set[str],
    oldest: int = 0,
) -> tuple[PublishedPackage, ...]:
    """Pack the unpacked resources; return the packages of the whole dump, in URI order."""
    unharmed = filter(None, map(packager.confirm, known))
    usable = {package.key: package for package in unharmed if package.since >= oldest}

    def planned() -> Iterator[PublishedPackage | PackageJob]:
        header = _root(writer, Capability.RESOURCE_DUMP_MANIFEST, at=snapshot.at)
        for start, end in _ranges(known, size):
            resources = _sized(snapshot.batches(start, end), packager.contents)
            for entries in _planned(header, resources, size):
                text = renderer(header, writer.dialect)(entries)
                key = _key(header, text, writer.dialect)
                if key in usable:
                    yield usable[key]
                    continue
                yield PackageJob(
                    names=_new_names(snapshot.at, taken),
                    header=header,
                    entries=entries,
                    key=key,
                    text=text,
                    since=to_microseconds(snapshot.at),
                    dialect=writer.dialect,
                )

    return tuple(packager.pack_all(planned()))


def _root(writer: DocumentWriter, capability: Capability, **times: datetime) -> Header:
    up = description.up_link(writer.naming, naming.CAPABILITY_LIST)
    return replace(Header(capability=capability, links=(up,)), **times)


def _ranges(
    known: Sequence[PublishedPackage], size: PackageSize
) -> Iterator[tuple[str, str | None]]:
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


def _sized(
    batches: Iterable[Sequence[Resource]], contents: ResourceContents
) -> Iterator[Resource | ResourceRun]:
    for batch in batches:
        if isinstance(batch, ResourceRun) and None not in batch.lengths:
            yield batch
            continue
        for resource in batch:
            if resource.length is not None:
                yield resource
                continue
            found = contents.measure(resource.uri)
            if found is not None:
                yield replace(found, links=resource.links)


def _new_names(at: datetime, taken: set[str]) -> naming.PackageNames:
    numbered = (naming.resource_package(at, number) for number in count(1))
    names = next(names for names in numbered if names.package not in taken)
    taken.add(names.package)
    return names


def _key(header: Header, text: bytes, dialect: Dialect) -> str:
    timeless = replace(header, at=_EPOCH)
    around = opening(timeless, dialect), closing(timeless, dialect)
    return hashlib.sha256(text.join(around)).hexdigest()


class PackedUntil(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of the Change Dump."""

    last: int  # the number of the last change in the packages
    until: int  # the end of the last package's interval, microseconds
    number: int = 1  # of the next package


def pack_changes(
    snapshot: CatalogueSnapshot,
    reached: PackedUntil,
    packager: Packager,
    *,
    writer: DocumentWriter,
    size: PackageSize,
) -> tuple[PublishedPackage, ...]:
    """Pack the changes since the last package; return the new packages, oldest first.

    Nothing is packed when nothing has changed. The bytes of every change must be available; see
    ``find_lost_changes``.
    """
    last, at = snapshot.last_change(), to_microseconds(snapshot.at)
    here = _packable(snapshot, reached.last, packager.contents)
    packages: list[PublishedPackage] = []
    since, number = reached.until, reached.number
    latest = snapshot.at.replace(microsecond=1)  # it takes as many characters as any
    widest = _root(writer, Capability.CHANGE_DUMP_MANIFEST, from_=latest, until=latest)
    for entries, is_last in _with_last_flag(_planned(widest, here, size)):
        until = at if is_last else _time_of(entries[-1])
        header = replace(widest, **times_of(Capability.CHANGE_DUMP, since, until))
        names = naming.change_package(number)
        job = PackageJob(
            names=names,
            header=header,
            entries=entries,
            key=names.package,
            text=renderer(header, writer.dialect)(entries),
            since=since,
            dialect=writer.dialect,
        )
        made = packager.pack(job)
        packages.append(replace(made, start="", until=until, last=last if is_last else 0))
        since, number = until, number + 1
    return tuple(packages)


class LostChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that cannot be packed, since their bytes are gone."""

    count: int
    last: int  # the number of the last one
    time: int  # its time, microseconds


def find_lost_changes(
    snapshot: CatalogueSnapshot, after: int, contents: ResourceContents
) -> LostChanges | None:
    """Return the changes after a number that cannot be packed; ``None`` when all can."""
    found: LostChanges | None = None
    for number, change in snapshot.changes(after=after):
        if not _is_available(snapshot, change, contents):
            lost = 1 if found is None else found.count + 1
            found = LostChanges(count=lost, last=number, time=_time_of(change))
    return found


def _is_available(snapshot: CatalogueSnapshot, change: Change, contents: ResourceContents) -> bool:
    was = change.resource
    if change.kind is ChangeKind.DELETED or contents.contains(was):
        return True
    now = next(snapshot.resources(was.uri, was.uri + "\0"), None)
    # A version known by other digests may be the same one: packing compares its bytes.
    is_same = now is not None and not disagree(now.digests, was.digests)
    return is_same and was.length is not None  # nothing is known of a row that was mended


def _packable(
    snapshot: CatalogueSnapshot, after: int, contents: ResourceContents
) -> Iterator[Change]:
    for number, change in snapshot.changes(after=after):
        resource = change.resource
        if not resource.patches:
            yield change
            continue
        links = tuple(
            replace(link, path=f"/patches/{number:08}") if link in resource.patches else link
            for link in resource.links
            if link not in resource.patches or _has_patch(link, contents)
        )
        yield replace(change, resource=replace(resource, links=links))


def _has_patch(patch: Link, contents: ResourceContents) -> bool:
    stream = contents.open_patch(patch)
    if stream is not None:
        stream.close()
    return stream is not None


def _planned(
    header: Header, entries: Iterable[ManifestEntry | ResourceRun], size: PackageSize
) -> Iterator[Sequence[ManifestEntry]]:
    with checking_entries():
        yield from plan_packages(header, entries, size=size)


def _with_last_flag(
    packages: Iterator[Sequence[ManifestEntry]],
) -> Iterator[tuple[Sequence[ManifestEntry], bool]]:
    waiting = next(packages, None)
    while waiting is not None:
        after = next(packages, None)
        yield waiting, after is None
        waiting = after


def _time_of(entry: ManifestEntry) -> int:
    assert isinstance(entry, Change), "a Change Dump holds changes"
    assert entry.time is not None, "the catalogue knows the time of each change"
    return to_microseconds(entry.time)
