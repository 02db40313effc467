"""Archives of superseded lists and dumps (Archives §2 to §6)."""

from collections.abc import Container, Iterable, Iterator, Sequence

from msgspec.structs import replace

from resourcesync.model.entries import Header, Link, Part
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.source import description, naming
from resourcesync.source.document_writer import DocumentWriter
from resourcesync.source.dump_record import (
    ArchivedDump,
    PublishedPackage,
    dump_key,
    package_entry,
    times_of,
)
from resourcesync.source.stored_plan import Offer, PublicationPlan, SupersededList


def write_archive(writer: DocumentWriter, capability: Capability, parts: Iterable[Part]) -> None:
    """Write an archive of these documents, oldest first, unless it is stored already."""
    listed = tuple(parts)
    name, key = naming.ARCHIVES[capability], repr(listed)
    if not writer.has(name, key):
        up = description.up_link(writer.naming, naming.CAPABILITY_LIST)
        writer.put_entries(name, key, Header(capability=capability, links=(up,)), listed)


def with_archive_link(writer: DocumentWriter, header: Header) -> Header:
    """Return the header with the link to the archive of its documents (Archives §2)."""
    assert header.capability is not None
    assert header.capability.archive is not None
    target = writer.naming.uri(naming.ARCHIVES[header.capability.archive])
    return replace(header, links=(*header.links, Link(rel=Relation.ARCHIVES.value, href=target)))


def resource_list_parts(
    writer: DocumentWriter, plan: PublicationPlan, available: Container[int]
) -> Sequence[Part]:
    """Return the archived Resource Lists of the plan as entries of their archive, oldest first."""
    return [
        Part(uri=writer.naming.uri(superseded_list.name), at=from_microseconds(superseded_list.at))
        for superseded_list in plan.superseded
        if superseded_list.name and superseded_list.at in available
    ]


def archive_resource_list(writer: DocumentWriter, superseded_list: SupersededList) -> bool:
    """Copy a Resource List to its place in the archive before a newer one takes its own."""
    if writer.confirm_unharmed(superseded_list.name):
        return True
    return writer.copy(naming.RESOURCE_LIST, superseded_list.name, str(superseded_list.at))


def archive_resource_dump(
    writer: DocumentWriter, packages: Sequence[PublishedPackage], parts: Iterable[str], now: int
) -> ArchivedDump | None:
    """Copy the Resource Dump to its place in the archive before a newer one takes its own."""
    head = naming.RESOURCE_DUMP
    name = naming.dated(head, from_microseconds(now))
    known = writer.known.get(head)
    if known is None or not packages or name in writer.known:
        return None
    if not writer.copy(head, name, known.key):
        return None
    return ArchivedDump(
        capability=Capability.RESOURCE_DUMP.value,
        name=name,
        since=now,
        start=min(package.since for package in packages),
        documents=(*parts, *package_documents(packages)),
    )


def close_change_dump(
    writer: DocumentWriter, packages: Sequence[PublishedPackage], now: int
) -> ArchivedDump:
    """Write a closed Change Dump of packages that are no longer listed."""
    start, until = packages[0].since, packages[-1].until
    name = naming.dated(naming.CHANGE_DUMP, from_microseconds(until))
    header = Header(
        capability=Capability.CHANGE_DUMP,
        from_=from_microseconds(start),
        until=from_microseconds(until),
        links=(description.up_link(writer.naming, naming.CAPABILITY_LIST),),
    )
    key = dump_key(header, packages)
    if not writer.has(name, key):
        entries = (package_entry(writer.naming, package, header) for package in packages)
        writer.put_entries(name, key, header, entries)
    return ArchivedDump(
        capability=Capability.CHANGE_DUMP.value,
        name=name,
        since=now,
        start=start,
        until=until,
        documents=package_documents(packages),
    )


def write_dump_archive(
    writer: DocumentWriter, header: Header, former: Sequence[ArchivedDump]
) -> Header:
    """Write the archive of a kind of dump; return the dump's header with the link to it, if any."""
    kind = header.capability
    assert kind is not None
    own = [dump for dump in former if dump.capability == kind.value]
    if not own:
        return header
    assert kind.archive is not None, "dumps have archives"
    parts = (
        Part(uri=writer.naming.uri(dump.name), **times_of(kind, dump.start, dump.until))
        for dump in own
    )
    write_archive(writer, kind.archive, parts)
    return with_archive_link(writer, header)


def archive_offers(former: Sequence[ArchivedDump], base_uri: str) -> Iterator[Offer]:
    """Yield the archives that the Capability List leads to."""
    for capability in (Capability.RESOURCE_DUMP, Capability.CHANGE_DUMP):
        own = [dump for dump in former if dump.capability == capability.value]
        if own and capability.archive is not None:
            yield Offer(
                capability=capability.archive,
                name=naming.ARCHIVES[capability.archive],
                documents=tuple(
                    dict.fromkeys(name for dump in own for name in (dump.name, *dump.documents))
                ),
                base_uri=base_uri,
            )


def package_documents(packages: Sequence[PublishedPackage]) -> tuple[str, ...]:
    """Return the names of packages, and of the copies of their manifests."""
    return tuple(name for package in packages for name in (package.name, package.manifest))
