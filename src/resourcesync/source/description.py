"""The documents that lead to all others: Source Description and Capability List (§8, §9)."""

from resourcesync.model.capabilities import CapabilityEntry, Header
from resourcesync.model.links import Link
from resourcesync.model.vocabulary import Capability, Relation
from resourcesync.source import naming
from resourcesync.source.naming import Naming
from resourcesync.source.shelf import Shelf

_KEY = "1"


def publish(shelf: Shelf) -> None:
    """Write what is not there of the Capability List and the Source Description, in this order."""
    if not shelf.has(naming.CAPABILITY_LIST, _KEY):
        header = Header(
            capability=Capability.CAPABILITY_LIST,
            links=(up(shelf.naming, naming.DESCRIPTION),),
        )
        shelf.put_entries(
            naming.CAPABILITY_LIST,
            _KEY,
            header,
            (
                _entry(shelf.naming, naming.RESOURCE_LIST, Capability.RESOURCE_LIST),
                _entry(shelf.naming, naming.CHANGE_LIST, Capability.CHANGE_LIST),
            ),
        )
    if not shelf.has(naming.DESCRIPTION, _KEY):
        shelf.put_entries(
            naming.DESCRIPTION,
            _KEY,
            Header(capability=Capability.DESCRIPTION),
            (_entry(shelf.naming, naming.CAPABILITY_LIST, Capability.CAPABILITY_LIST),),
        )


def up(names: Naming, name: str) -> Link:
    """Return the link to the document above (§6.2)."""
    return Link(rel=Relation.UP.value, href=names.uri(name))


def index(names: Naming, name: str) -> Link:
    """Return the link from a part to its index (§6.2)."""
    return Link(rel=Relation.INDEX.value, href=names.uri(name))


def _entry(names: Naming, name: str, capability: Capability) -> CapabilityEntry:
    return CapabilityEntry(uri=names.uri(name), capability=capability, label=capability.value)
