"""The documents that lead to all others: Source Description and Capability List (§8, §9)."""

from dataclasses import replace

from resourcesync.model.capabilities import CapabilityEntry, Header
from resourcesync.model.links import Link
from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.source import about, naming
from resourcesync.source.naming import Naming
from resourcesync.source.shelf import Shelf


def publish(shelf: Shelf, described_by: str = "") -> None:
    """Write what is not there of the Capability List and the Source Description, in this order.

    Args:
        shelf: Takes them.
        described_by: The URI of a document about the resources; empty writes one of our own.
    """
    if not described_by:
        described_by = shelf.naming.uri(naming.ABOUT)
        shelf.put_text(naming.ABOUT, about.render(shelf.naming))
    description = Link(rel=Relation.DESCRIBED_BY.value, href=described_by)
    if not shelf.has(naming.CAPABILITY_LIST, described_by):
        header = Header(
            capability=Capability.CAPABILITY_LIST,
            links=(up(shelf.naming, naming.DESCRIPTION), description),
        )
        shelf.put_entries(
            naming.CAPABILITY_LIST,
            described_by,
            header,
            (
                _entry(shelf.naming, naming.RESOURCE_LIST, Capability.RESOURCE_LIST),
                _entry(shelf.naming, naming.CHANGE_LIST, Capability.CHANGE_LIST),
            ),
        )
    if not shelf.has(naming.DESCRIPTION, described_by):
        sets = _entry(shelf.naming, naming.CAPABILITY_LIST, Capability.CAPABILITY_LIST)
        shelf.put_entries(
            naming.DESCRIPTION,
            described_by,
            Header(capability=Capability.DESCRIPTION, links=(description,)),
            (replace(sets, links=(description,)),),
        )


def up(names: Naming, name: str) -> Link:
    """Return the link to the document above (§6.2)."""
    return Link(rel=Relation.UP.value, href=names.uri(name))


def index(names: Naming, name: str) -> Link:
    """Return the link from a part to its index (§6.2)."""
    return Link(rel=Relation.INDEX.value, href=names.uri(name))


def _entry(names: Naming, name: str, capability: Capability) -> CapabilityEntry:
    return CapabilityEntry(uri=names.uri(name), capability=capability, label=capability.value)
