"""What the documents of dumps say of packages (§11.1, §13.1)."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from resourcesync.model.capabilities import Header, Package
from resourcesync.model.digests import Digest
from resourcesync.model.links import Link
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.source.dump_ledger import PublishedPackage
from resourcesync.source.naming import SourceNaming


def spanning_header(header: Header, packages: Sequence[PublishedPackage]) -> Header:
    """Return the header of a document that lists these packages of a dump."""
    since = from_microseconds(min(it.since for it in packages))
    if header.capability is Capability.RESOURCE_DUMP:
        return replace(header, at=since)
    return replace(header, from_=since, until=from_microseconds(packages[-1].until))


def package_entry(names: SourceNaming, packed: PublishedPackage, header: Header) -> Package:
    """Return what a dump says of a package (§11.1, §13.1)."""
    contents = Link(
        rel=Relation.CONTENTS.value,
        href=names.uri(packed.manifest),
        media_type="application/xml",
    )
    package = Package(
        uri=names.uri(packed.name),
        length=packed.length,
        digests=(Digest("sha-256", packed.digest),),
        media_type="application/zip",
        links=(contents,),
    )
    since = from_microseconds(packed.since)
    if header.capability is Capability.RESOURCE_DUMP:
        return replace(package, at=since)
    return replace(package, from_=since, until=from_microseconds(packed.until))


def dump_key(header: Header, packages: Sequence[PublishedPackage]) -> str:
    """Return what stands for a dump; when it was completed does not count."""
    names = [(it.name, it.digest) for it in packages]
    told = (header.capability, header.at, header.from_, names, *header.links)
    return hashlib.sha256(repr(told).encode()).hexdigest()
