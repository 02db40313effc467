"""Lists that are not what they say: what they are by their first entries. Met in the wild."""

from functools import partial
from typing import Final

from msgspec.structs import replace

from resourcesync.documents import _entries, _values, expat
from resourcesync.documents._raw_entries import RawEntry
from resourcesync.model.entries import Header
from resourcesync.model.leniencies import Leniency
from resourcesync.model.vocabulary import Capability

_INTERVAL: Final = frozenset({"from", "until"})
_PACKED: Final = frozenset(
    {"application/zip", "application/x-tar", "application/gzip", "application/x-xz"}
)
"""Media types of packages."""
_PART: Final = frozenset({"at", "completed", "capability"})
_PARTS: Final = {
    Capability.RESOURCE_LIST: Leniency.PARTS_IN_RESOURCELIST,
    Capability.RESOURCE_DUMP: Leniency.PARTS_IN_RESOURCEDUMP,
    Capability.CHANGE_LIST: Leniency.PARTS_IN_CHANGELIST,
    Capability.CHANGE_DUMP: Leniency.PARTS_IN_CHANGEDUMP,
}
"""Reason for a document whose entries are those of an index."""


def _is_package(item: RawEntry) -> bool:
    values, _ = _values.partition_attributes(item.metadata, _INTERVAL)
    row = _entries.row_of(item)
    is_packed = (row.media_type or "").strip(_values.BLANKS).lower() in _PACKED
    return row.change is None and (is_packed or values.keys() >= _INTERVAL)


def _is_part(item: RawEntry) -> bool:
    names = (item.metadata or [])[::2]
    values, _ = _values.partition_attributes(item.metadata, _PART)
    told = values.get("capability", "resourcelist").strip(_values.BLANKS).lower() == "resourcelist"
    is_bare = len(names) == len(values) and item.texts.keys() == {expat.LOC}
    is_alone = not item.links and not item.foreign and item.fault is None
    return is_bare and is_alone and told and bool(values)


def _names_capability(item: RawEntry, kind: Capability) -> bool:
    values, _ = _values.partition_attributes(item.metadata, _values.CAPABILITY_KNOWN)
    return values.get("capability", "").strip(_values.BLANKS).lower() == kind and (
        _entries.row_of(item).change is None
    )


def header_from_entries(
    header: Header, first: list[RawEntry], context: expat.ReadingContext
) -> Header:
    """Return the header of what a list or a dump is by its first entries.

    A document whose entries name its own capability is an index, and so is a Resource List whose
    first entries have the moment of a snapshot and nothing of a resource. A Change List of
    packages is a Change Dump: the first entry has an interval or is a package, and has no change.
    """
    kind = header.capability
    assert kind is not None, "the caller looks at some capabilities only"
    context.set_place(first[0].line, first[0].column)
    is_part_of = (
        _is_part if kind is Capability.RESOURCE_LIST else partial(_names_capability, kind=kind)
    )
    if all(map(is_part_of, first)):
        context.tolerate(_PARTS[kind])
        return replace(header, is_index=True)
    if kind is not Capability.CHANGE_LIST or not _is_package(first[0]):
        return header
    context.tolerate(Leniency.PACKAGES_IN_CHANGELIST)
    return replace(header, capability=Capability.CHANGE_DUMP)
