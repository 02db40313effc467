"""Archives: what was published before, and is superseded (Archives §2 to §6)."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from resourcesync.model.capabilities import Header, Part
from resourcesync.model.links import Link
from resourcesync.model.timestamps import from_microseconds
from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.source import description, naming
from resourcesync.source.ledger import PublicationPlan, SupersededList
from resourcesync.source.shelf import DocumentWriter


def write_archive(shelf: DocumentWriter, capability: Capability, parts: Iterable[Part]) -> None:
    """Write an archive of these documents, oldest first, unless it is there just so.

    Args:
        shelf: Takes it.
        capability: Which archive, such as ``Capability.RESOURCE_DUMP_ARCHIVE``.
        parts: The documents, 50,000 at most.

    Raises:
        StorageError: It could not be written; what was there is still there.
    """
    listed = tuple(parts)
    name, key = naming.ARCHIVES[capability], repr(listed)
    if not shelf.has(name, key):
        up = description.up_link(shelf.naming, naming.CAPABILITY_LIST)
        shelf.put_entries(name, key, Header(capability=capability, links=(up,)), listed)


def with_archive_link(shelf: DocumentWriter, header: Header) -> Header:
    """Return the header with the link to the archive of its documents (Archives §2)."""
    assert header.capability is not None
    assert header.capability.archive is not None
    target = shelf.naming.uri(naming.ARCHIVES[header.capability.archive])
    link = Link(rel=Relation.ARCHIVES.value, href=target)
    return replace(header, links=(*header.links, link))


def resource_list_parts(
    shelf: DocumentWriter, plan: PublicationPlan, there: Container[int]
) -> Sequence[Part]:
    """Return the entries of the archive of Resource Lists, of those that are there by ``at``."""
    return [
        Part(uri=shelf.naming.uri(one.name), at=from_microseconds(one.at))
        for one in plan.superseded
        if one.name and one.at in there
    ]


def archive_resource_list(shelf: DocumentWriter, one: SupersededList) -> bool:
    """Copy a Resource List to its place in the archive before a newer one takes its own.

    Returns:
        Whether it is there; what was lost before it was copied cannot be kept.

    Raises:
        StorageError: It could not be copied.
    """
    if shelf.is_unharmed(one.name):
        return True
    return shelf.copy(naming.RESOURCE_LIST, one.name, str(one.at))
