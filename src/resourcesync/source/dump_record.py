"""Record of the published dumps in the catalogue's notes, and the entries of their packages.

The entries follow §11.1 and §13.1.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from resourcesync.catalogue.database import SourceCatalogue
from resourcesync.model.digests import Digest
from resourcesync.model.entries import Header, Link, Package
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.source.naming import SourceNaming
from resourcesync.source.stored_plan import CatalogueNote, DocumentRecord


class PublishedPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A public package; it never changes.

    ``since`` is its ``at`` or ``from``; ``start``, its first URI, is of a Resource Dump, ``until``
    and ``last``, the number of its last change, of a Change Dump. Times are microseconds.
    """

    name: str
    manifest: str  # the name of the copy of it
    key: str  # identifies its contents
    start: str = ""
    since: int
    until: int = 0
    last: int = 0
    entries: int
    content: int  # bytes of all members, unpacked
    length: int
    digest: str  # the sha-256 of its bytes
    signature: str  # the store's, of it and of the copy of its manifest


class ArchivedDump(msgspec.Struct, frozen=True, kw_only=True):
    """A dump in an archive; it was superseded at ``since``. Times are microseconds.

    ``start`` is its ``at`` (Resource Dump) or ``from`` (Change Dump).
    """

    capability: str  # a value of ``Capability``
    name: str
    since: int
    start: int
    until: int = 0
    documents: tuple[str, ...] = ()


class DumpRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Record of the public dumps.

    Packages are in URI order, those of changes the oldest first; ``number`` is that of the next
    one. ``orphans`` no longer belong to them since a moment, in microseconds.
    """

    base_uri: str = ""  # empty before the first dump
    resources: tuple[PublishedPackage, ...] = ()
    changes: tuple[PublishedPackage, ...] = ()
    number: int = 1
    documents: dict[str, DocumentRecord] = msgspec.field(default_factory=dict)
    orphans: dict[str, int] = msgspec.field(default_factory=dict)
    former: tuple[ArchivedDump, ...] = ()  # in archives, oldest first


DUMPS: Final = CatalogueNote("dump-record", DumpRecord)


def read_dumps(catalogue: SourceCatalogue) -> DumpRecord:
    """Return the record of the dumps; an empty one before the first."""
    return DUMPS.read(catalogue) or DumpRecord()


def times_of(capability: Capability | None, since: int, until: int) -> dict[str, Any]:
    """Return the times of a Resource Dump, or those of a Change Dump, or of what one lists."""
    if capability is Capability.RESOURCE_DUMP:
        return {"at": from_microseconds(since)}
    return {"from_": from_microseconds(since), "until": from_microseconds(until)}


def spanning_header(header: Header, packages: Sequence[PublishedPackage]) -> Header:
    """Return the header of a document that lists these packages of a dump."""
    since = min(package.since for package in packages)
    return replace(header, **times_of(header.capability, since, packages[-1].until))


def package_entry(names: SourceNaming, packed: PublishedPackage, header: Header) -> Package:
    """Return the entry of a package in a dump (§11.1, §13.1)."""
    contents = Link(
        rel=Relation.CONTENTS.value, href=names.uri(packed.manifest), media_type="application/xml"
    )
    return Package(
        uri=names.uri(packed.name),
        length=packed.length,
        digests=(Digest("sha-256", packed.digest),),
        media_type="application/zip",
        links=(contents,),
        **times_of(header.capability, packed.since, packed.until),
    )


def dump_key(header: Header, packages: Sequence[PublishedPackage]) -> str:
    """Return the key of a dump's content, which does not depend on its ``completed``."""
    names = [(package.name, package.digest) for package in packages]
    content = (header.capability, header.at, header.from_, names, *header.links)
    return hashlib.sha256(repr(content).encode()).hexdigest()
