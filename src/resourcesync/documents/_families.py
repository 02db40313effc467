"""What the entries of a document are, told by its header."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from resourcesync.documents._assembling import RawEntry
from resourcesync.documents._context import ReadingContext
from resourcesync.documents._entries import change_of, resource_of
from resourcesync.documents._referring import (
    capability_of,
    document_change_of,
    package_of,
    part_of,
)
from resourcesync.documents._values import CHANGE_KNOWN, REPRESENTATION
from resourcesync.model.capabilities import Entry, Header
from resourcesync.model.vocabulary import Capability, ChangeKind

_PATH: Final = frozenset({"path"})
_OF_RESOURCES: Final = {Capability.RESOURCE_LIST, Capability.RESOURCE_DUMP_MANIFEST, None}
_OF_CHANGES: Final = {
    Capability.CHANGE_LIST,
    Capability.CHANGE_DUMP_MANIFEST,
    Capability.CHANGE_NOTIFICATION,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFamily:
    """How the entries of one kind of document are read.

    Attributes:
        known: Attributes of ``rs:md`` that are values, not extra.
        is_regular: Whether its entries fit into columns.
        tells_changes: Whether each entry must tell what happened.
        make: Makes the value of any entry; is given what happened, when the entry tells it, and
            the document.
    """

    known: frozenset[str] = frozenset()
    is_regular: bool = False
    has_changes: bool = False
    make: Callable[[RawEntry, ChangeKind | None, ReadingContext], Entry]


def family_of(header: Header) -> EntryFamily:
    """Return how the entries under such a header are read."""
    kind = header.capability
    if header.is_index or (kind is not None and kind.is_archive):
        return EntryFamily(make=lambda entry, _, context: part_of(entry, context))
    path = _PATH if kind is not None and kind.is_manifest else frozenset()
    if kind in _OF_RESOURCES:
        return _resource_family(REPRESENTATION | path)
    if kind in _OF_CHANGES:
        return _change_family(CHANGE_KNOWN | path)
    if kind is not None and kind.is_dump:
        return EntryFamily(make=lambda entry, _, context: package_of(entry, context))
    if kind is Capability.FRAMEWORK_NOTIFICATION:
        return EntryFamily(has_changes=True, make=_document_change)
    return EntryFamily(make=lambda entry, _, context: capability_of(entry, context))


def _resource_family(known: frozenset[str]) -> EntryFamily:
    def make(entry: RawEntry, _kind: ChangeKind | None, context: ReadingContext) -> Entry:
        return resource_of(entry, known, context)

    return EntryFamily(known=known, is_regular=True, make=make)


def _change_family(known: frozenset[str]) -> EntryFamily:
    def make(entry: RawEntry, kind: ChangeKind | None, context: ReadingContext) -> Entry:
        assert kind is not None
        return change_of(entry, kind, known, context)

    return EntryFamily(known=known, is_regular=True, has_changes=True, make=make)


def _document_change(entry: RawEntry, kind: ChangeKind | None, context: ReadingContext) -> Entry:
    assert kind is not None
    return document_change_of(entry, kind, context)
