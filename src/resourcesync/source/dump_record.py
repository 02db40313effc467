"""Record of the published dumps in the catalogue's notes, and the entries of their packages.

The entries follow §11.1 and §13.1.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.model.capabilities import Header, Package
from resourcesync.model.digests import Digest
from resourcesync.model.links import Link
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.source.naming import SourceNaming
from resourcesync.source.plan import DocumentRecord, encode, read_note

_NOTE: Final = "dump-record"


class PublishedPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A public package; it never changes.

    Attributes:
        name: Its name in the store.
        manifest: The name of the copy of its manifest.
        key: Identifies its contents.
        start: The first URI in it (Resource Dump).
        since: Its ``at`` (Resource Dump) or ``from`` (Change Dump), in microseconds.
        until: Its ``until``, in microseconds (Change Dump).
        last: The number of its last change (Change Dump).
        entries: Number of entries in its manifest.
        content: Size of all members, unpacked.
        length: Its size.
        digest: The sha-256 of its bytes.
        signature: The store's signatures of it and of the copy of its manifest.
    """

    name: str
    manifest: str
    key: str
    start: str = ""
    since: int
    until: int = 0
    last: int = 0
    entries: int
    content: int
    length: int
    digest: str
    signature: str


class ArchivedDump(msgspec.Struct, frozen=True, kw_only=True):
    """A dump in an archive.

    Attributes:
        capability: A value of ``Capability``.
        name: Its name in the archive.
        since: The time when it was superseded, in microseconds.
        start: Its ``at`` (Resource Dump) or ``from`` (Change Dump), in microseconds.
        until: Its ``until``, in microseconds (Change Dump).
        documents: The names of its packages, their manifests and its parts.
    """

    capability: str
    name: str
    since: int
    start: int
    until: int = 0
    documents: tuple[str, ...] = ()


class DumpRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Record of the public dumps.

    Attributes:
        base_uri: The URI of the resources' root; empty before the first dump.
        resources: The packages of the Resource Dump, in URI order.
        changes: The packages of the Change Dump, oldest first.
        number: The number of the next package of the Change Dump.
        documents: The documents that list them.
        former: Dumps in archives, oldest first.
        orphans: Documents that no longer belong to them, and when that was first seen, in
            microseconds.
    """

    base_uri: str = ""
    resources: tuple[PublishedPackage, ...] = ()
    changes: tuple[PublishedPackage, ...] = ()
    number: int = 1
    documents: dict[str, DocumentRecord] = msgspec.field(default_factory=dict)
    orphans: dict[str, int] = msgspec.field(default_factory=dict)
    former: tuple[ArchivedDump, ...] = ()


def read_dumps(catalogue: SourceCatalogue) -> DumpRecord:
    """Return the record of the dumps; an empty one before the first."""
    return read_note(catalogue, _NOTE, _record) or DumpRecord()


def write_dumps(catalogue: SourceCatalogue, record: DumpRecord) -> None:
    """Store the record durably."""
    catalogue.write_notes({_NOTE: encode(record)})


def _record(fields: dict[str, Any]) -> DumpRecord:
    resources, changes = (
        tuple(PublishedPackage(**item) for item in fields.pop(name))
        for name in ("resources", "changes")
    )
    documents = {name: DocumentRecord(**known) for name, known in fields.pop("documents").items()}
    former = tuple(
        ArchivedDump(documents=tuple(item.pop("documents")), **item)
        for item in fields.pop("former")
    )
    return DumpRecord(
        resources=resources, changes=changes, documents=documents, former=former, **fields
    )


def spanning_header(header: Header, packages: Sequence[PublishedPackage]) -> Header:
    """Return the header of a document that lists these packages of a dump."""
    since = from_microseconds(min(package.since for package in packages))
    if header.capability is Capability.RESOURCE_DUMP:
        return replace(header, at=since)
    return replace(header, from_=since, until=from_microseconds(packages[-1].until))


def package_entry(names: SourceNaming, packed: PublishedPackage, header: Header) -> Package:
    """Return the entry of a package in a dump (§11.1, §13.1)."""
    contents = Link(
        rel=Relation.CONTENTS.value, href=names.uri(packed.manifest), media_type="application/xml"
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
    """Return the key of a dump's content, which does not depend on its ``completed``."""
    names = [(package.name, package.digest) for package in packages]
    content = (header.capability, header.at, header.from_, names, *header.links)
    return hashlib.sha256(repr(content).encode()).hexdigest()
